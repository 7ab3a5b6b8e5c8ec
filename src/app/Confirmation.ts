import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { escapedLines } from "../surfaces/cli/Escaped.ts"
import { Globals } from "../surfaces/cli/Globals.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"

/** Asks for confirmation before a change that cannot be undone. */
export class Confirmation extends Context.Service<Confirmation, {
  /** Asks the question. Fails unless the answer is yes. */
  readonly ask: (question: string) => Effect.Effect<void, CommandFailed>
}>()("acme/app/Confirmation") {
  /** Asks the person at the terminal. With `--yes` the answer is yes, and no question is asked. */
  static readonly layer: Layer.Layer<Confirmation, never, Host | Globals> = Layer.effect(
    this,
    Effect.gen(function*() {
      const { stderr, stdin } = yield* Host
      const { yes } = yield* Globals
      const ask = (question: string) => {
        if (yes) return Effect.void
        if (!stdin.isTerminal) {
          return new CommandFailed({
            code: 2,
            message: "There is no terminal to ask for confirmation: pass --yes to go ahead."
          })
        }
        return Effect.sync(() => stderr.write(`${escapedLines(question)} [y/N] `)).pipe(
          Effect.andThen(stdin.readLine),
          Effect.filterOrFail(
            (answer) => /^y(?:es)?$/i.test(answer.trim()),
            () => new CommandFailed({ code: 3, message: "Nothing was changed." })
          ),
          Effect.asVoid
        )
      }
      return { ask }
    })
  )

  /** Asks the question, and continues only if the answer is yes. */
  static readonly ask = (question: string): Effect.Effect<void, CommandFailed, Confirmation> =>
    Effect.flatMap(this, ({ ask }) => ask(question))
}
