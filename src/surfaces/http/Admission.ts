import { Effect } from "effect"
import { Shed } from "../../domain/Problem.ts"
import { emit } from "../../subsystems/log/EventLog.ts"

/** A bound on requests being worked on: `server.max_concurrent_requests` and `server.admission_wait_ms`. */
export interface Admission {
  /** Runs `self` once there is a slot; sheds it when none comes free in time. The slot returns on every exit. */
  readonly admit: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Shed, R>
}

export const make = (options: { readonly slots: number; readonly waitMillis: number }): Effect.Effect<Admission> =>
  Effect.gen(function*() {
    const semaphore = yield* Effect.makeSemaphore(options.slots)
    const shed = Effect.zipRight(emit("request_shed", {}), new Shed())
    const release = semaphore.release(1)
    let free = options.slots
    const take = Effect.suspend(() => {
      // The uncontended path needs neither a timer nor a fiber.
      if (free > 0) return Effect.as(semaphore.take(1), true)
      return Effect.map(
        Effect.timeoutOption(Effect.interruptible(semaphore.take(1)), options.waitMillis),
        (slot) => slot._tag === "Some"
      )
    })
    const admit = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Shed, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(take, (admitted): Effect.Effect<A, E | Shed, R> => {
          if (!admitted) return shed
          free--
          return Effect.ensuring(
            restore(self),
            Effect.suspend(() => {
              free++
              return release
            })
          )
        })
      )
    return { admit }
  })
