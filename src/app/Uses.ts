import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { countIn } from "../domain/words/Series.ts"
import type { Watch } from "../engine/http/Listener.ts"

/**
 * Counts the requests and attempts that use a generation, so that the generation stays open until the last of them has
 * ended.
 */
export interface Uses {
  /** Called when a request or an attempt begins to use the generation. The use lasts until the fiber ends. */
  readonly begun: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /** Counts an answered request in the metrics. A request that belongs to no profile is counted under `none`. */
  readonly answered: Watch["answered"]
  /** Waits until the last use has ended. */
  readonly ended: Effect.Effect<void>
}

export const makeUses = (): Uses => {
  const over = Deferred.makeUnsafe<void>()
  let [uses, isRetired] = [0, false]
  const leave = () => {
    uses--
    if (isRetired && uses === 0) Deferred.doneUnsafe(over, Exit.void)
  }
  return {
    begun: (fiber) => {
      uses++
      fiber.addObserver(leave)
    },
    answered: (fiber, { facts: { profile = "none" }, pattern: route, status }, seconds) => {
      countIn(fiber, "acme_svc_requests_total", { profile, route, status })
      countIn(fiber, "acme_svc_request_duration_seconds", { profile, route }, seconds)
    },
    ended: Effect.suspend(() => {
      isRetired = true
      return uses === 0 ? Effect.void : Deferred.await(over)
    })
  }
}
