import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { countIn } from "../domain/words/Series.ts"
import type { Watch } from "../engine/http/Listener.ts"

/** The requests and attempts that use a generation, so that it stays open until the last of them has ended. */
export interface Uses {
  /** A request or an attempt begins to use it, until its fiber ends. */
  readonly begun: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /** Counts an answered request in the metrics. Those of no profile are counted as of `none`. */
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
