import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { Rendered } from "../../surfaces/cli/Rendered.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Host } from "../Host.ts"

/** Prints an object as JSON or as text. */
export const print = (json: boolean, object: unknown, text: () => string | Rendered): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(object) : text())

/**
 * Undoes a command whose output is shown only once, if this output could not be written, and fails. `outcome` is the
 * clause of the failure that says what has become of the thing that was to be shown.
 */
export const orTakeBack = <E, R>(outcome: string, undo: Effect.Effect<unknown, E, R>) =>
  Effect.gen(function*() {
    const lost = yield* (yield* Host).stdout.flushed
    if (lost === undefined) return
    yield* undo
    return yield* new CommandFailed({
      code: 1,
      message: `The output could not be written (${lost}), so ${outcome}. Repeat the command when it can be written.`
    })
  })
