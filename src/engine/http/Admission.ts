import * as Effect from "effect/Effect"
import { makeFairSemaphore } from "../net/FairSemaphore.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { Shed } from "./HttpRefused.ts"

/**
 * A bound on the requests that are handled at once: `server.max_concurrent_requests` and `server.admission_wait_ms`.
 */
export interface Admission {
  /**
   * Runs `self` once there is a slot for its sender. Sheds it if no slot becomes free in time. Every exit returns the
   * slot.
   */
  readonly admit: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Shed, R>
}

const shed = Effect.andThen(emit("request_shed", {}), new Shed())

export const make = (options: { readonly slots: number; readonly waitMillis: number }): Effect.Effect<Admission> =>
  Effect.sync(() => {
    const turns = makeFairSemaphore(options.slots)
    return { admit: (self) => turns.takeWithin(options.waitMillis, self, shed) }
  })
