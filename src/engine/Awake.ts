import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"

/** Repeats a check only while there is something to check, so that an idle process has no timer for it. */
export interface Awake {
  /** Reports that there is something to check. */
  readonly wake: () => void
  /** Repeats the check until it is interrupted. */
  readonly repeat: <E, R>(look: Effect.Effect<void, E, R>) => Effect.Effect<unknown, E, R>
}

/** Makes an {@link Awake} that checks every `millis` milliseconds. It sleeps while `isIdle` returns true. */
export const makeAwake = (millis: number, isIdle: () => boolean): Awake => {
  const latch = Latch.makeUnsafe()
  const busy = Effect.suspend(() => {
    if (isIdle()) latch.closeUnsafe()
    return latch.await
  })
  return {
    wake: () => void latch.openUnsafe(),
    repeat: (look) => Effect.repeat(Effect.andThen(busy, look), Schedule.spaced(millis))
  }
}
