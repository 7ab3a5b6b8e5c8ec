import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { Rendered } from "../../surfaces/cli/Rendered.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Host } from "../Host.ts"

/** Prints an object as JSON or as text. */
export const print = (json: boolean, object: unknown, text: () => string | Rendered): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(object) : text())

/**
 * Undoes the creation of something if its output could not be written, because this output is shown only once. `taken`
 * describes in the past tense what was undone.
 */
export const orTakeBack = <E, R>(taken: string, undo: Effect.Effect<unknown, E, R>) =>
  Effect.gen(function*() {
    const lost = yield* (yield* Host).stdout.flushed
    if (lost === undefined) return
    yield* undo
    return yield* new CommandFailed({ code: 1, message: `The output could not be written (${lost}), so ${taken}.` })
  })
