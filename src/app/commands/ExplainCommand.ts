import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { escapeHidden } from "../../engine/HiddenText.ts"
import { everyWord, nearestNames, wordsNamed, wordsWith } from "../../operations/operator/Catalogue.ts"
import { renderFound, renderKinds, renderWords } from "../../surfaces/cli/WordText.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText } from "./Flags.ts"
import { print } from "./Print.ts"

const longest = 200

/** Returns a text of the command line in a form that is safe to print. */
const quoted = (text: string): string =>
  escapeHidden(JSON.stringify(text.length > longest ? `${text.slice(0, longest)}…` : text))

/** `explain`: what a word of the log, of an error, of the configuration or of the metrics means, and what to do. */
export const explainCommand = command(
  "explain",
  "Print what a word means, and what to do: an event of the log, an error, a configuration key or a metric; it needs no configuration and no database. Example: acme-svc explain job_run_abandoned. Exit codes: 0, 2 also if there is no such word.",
  {
    word: Argument.String("word").pipe(
      Argument.optional,
      Argument.withDescription("The word. Without it, the kinds of words; with --json, every word."),
      Argument.map(Option.getOrUndefined)
    ),
    search: optionalText("search", "List the words whose name, meaning or remedy contains this text."),
    json: jsonOption
  },
  ({ json, search, word }) =>
    Effect.gen(function*() {
      if (word !== undefined && search !== undefined) {
        return yield* new CommandFailed({ code: 2, message: "explain takes a word or --search, not both." })
      }
      if (search !== undefined) {
        const words = wordsWith(search)
        return yield* print(json, { words, total: words.length }, () => renderFound(words))
      }
      if (word === undefined) {
        const words = everyWord()
        return yield* print(json, { words, total: words.length }, () => renderKinds(words))
      }
      const words = wordsNamed(word)
      if (words.length === 0) {
        return yield* new CommandFailed({
          code: 2,
          message: `There is no word ${quoted(word)}; the nearest are ${nearestNames(word).join(", ")}.`
        })
      }
      yield* print(json, { words, total: words.length }, () => renderWords(words))
    })
)
