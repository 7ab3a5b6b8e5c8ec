import * as Console from "effect/Console"
import type * as Effect from "effect/Effect"
import type { Rendered } from "../../surfaces/cli/Rendered.ts"

/** Prints an object as JSON or as text. */
export const print = (json: boolean, object: unknown, text: () => string | Rendered): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(object) : text())
