import { Console } from "effect"
import type { Effect } from "effect"

/** Prints an object as JSON or as text. */
export const print = (json: boolean, object: unknown, text: () => string): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(object) : text())
