import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { aside } from "../../engine/sql/Database.ts"

const patienceMillis = 2000

/** A reading took longer than two seconds. */
export class TooSlow extends Data.TaggedError("TooSlow") {
  override get message(): string {
    return "took longer than two seconds"
  }
}

/**
 * Makes an effect that can be abandoned: an interruption does not wait for its end, because an engine that does not
 * answer cannot be interrupted.
 */
const abandonable = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkDetach(restore(self), { startImmediately: true }),
      (fiber) => Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )

/**
 * Reads the database on an ordinary connection, as a request does. After two seconds, the reading is abandoned, even if
 * it still waits for a connection or the engine does not end it.
 */
export const prompt = <A>(
  reading: Effect.Effect<A, StorageFailed, Database>
): Effect.Effect<A, StorageFailed | TooSlow, Database> =>
  Effect.timeoutOrElse(abandonable(reading), { duration: patienceMillis, orElse: () => new TooSlow() })

/**
 * Reads the database like {@link prompt}, but on a separate connection. This is for readings whose cost grows with the
 * database. The engine itself ends a reading that takes too long.
 */
export const brief = <A>(
  reading: Effect.Effect<A, StorageFailed, Database>
): Effect.Effect<A, StorageFailed | TooSlow, Database> => prompt(aside(reading, patienceMillis))
