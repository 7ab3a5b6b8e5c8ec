import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { countIn } from "../domain/words/Series.ts"
import type { Watch } from "../engine/http/Listener.ts"

/** The requests and attempts that use a generation, so that it stays open until the last of them has ended. */
export interface Uses {
  /** For its listeners: each request is a use, and is counted in the metrics. Those of no profile are counted as of `none`. */
  readonly requests: Watch
  /** Makes what a fiber of its own does, as attempts have one, a use. */
  readonly counted: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
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
  const enter = (fiber: Fiber.Fiber<unknown, unknown>) => {
    uses++
    fiber.addObserver(leave)
  }
  return {
    requests: {
      begun: enter,
      answered: (fiber, { facts: { profile = "none" }, pattern: route, status }, seconds) => {
        countIn(fiber, "acme_svc_requests_total", { profile, route, status })
        countIn(fiber, "acme_svc_request_duration_seconds", { profile, route }, seconds)
      }
    },
    counted: (self) =>
      Effect.withFiber((fiber) => {
        enter(fiber)
        return self
      }),
    ended: Effect.suspend(() => {
      isRetired = true
      return uses === 0 ? Effect.void : Deferred.await(over)
    })
  }
}
