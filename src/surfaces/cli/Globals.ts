import * as Context from "effect/Context"
import * as Result from "effect/Result"
import type { LevelWord } from "../../engine/telemetry/LogFilter.ts"
import { levelOf, levelWords } from "../../engine/telemetry/LogFilter.ts"
import type { Flag } from "./CommandTree.ts"

const colours = ["auto", "always", "never"] as const

/**
 * The flags that are allowed anywhere on the command line (docs/contribute/decisions/command-line.md, "What every
 * command keeps to").
 */
export class Globals extends Context.Service<Globals, {
  readonly logLevel: LevelWord | undefined
  readonly color: (typeof colours)[number]
  readonly yes: boolean
  /** Whether to print times in RFC 3339 even on a terminal. */
  readonly utc: boolean
  /** Whether to print errors as JSON. Commands that list this flag also read it themselves, for their output. */
  readonly json: boolean
  /** Set if the help or the version was requested instead of the command itself. */
  readonly asks: "help" | "version" | undefined
  /** The arguments that are left for the command tree. */
  readonly rest: ReadonlyArray<string>
}>()("acme/surfaces/cli/Globals") {}

const globalFlag = (
  name: string,
  text: string,
  words: ReadonlyArray<string> = [],
  { aliases = [], value = words.join(" | ") || undefined }: Partial<Pick<Flag, "aliases" | "value">> = {}
): Flag => ({
  name,
  aliases,
  value,
  words,
  isClosed: words.length > 0,
  isNeeded: false,
  isRepeated: false,
  fallback: undefined,
  text
})

/** The flags of every command, as data. */
export const globalFlags: ReadonlyArray<Flag> = [
  globalFlag("--yes", "Answer yes to every question.", [], { aliases: ["-y"] }),
  globalFlag("--color", "When to use colours; auto means on a terminal.", colours),
  globalFlag("--log-level", "Log to standard error.", levelWords),
  globalFlag("--utc", "Print times in RFC 3339, not how long ago."),
  globalFlag("--help", "Print what a command does, and what it takes.", [], { aliases: ["-h"] }),
  globalFlag("--version", "Print the version.", [], { aliases: ["-V"] })
]

const wordOf = <W extends string>(words: ReadonlyArray<W>, flag: string, word: W | undefined) =>
  word === undefined ? Result.fail(`${flag} takes one of ${words.join(", ")}.`) : Result.succeed(word)

/**
 * Separates the global flags from the other arguments. After `--` there are no flags. Fails with a sentence that names
 * the wrong flag.
 */
export const readGlobals = (argv: ReadonlyArray<string>): Result.Result<Globals["Service"], string> =>
  Result.gen(function*() {
    let logLevel: Globals["Service"]["logLevel"]
    let color: Globals["Service"]["color"] = "auto"
    let asks: Globals["Service"]["asks"]
    let [json, yes, utc] = [false, false, false]
    const rest: Array<string> = []
    for (let at = 0; at < argv.length; at++) {
      const argument = argv[at] ?? ""
      if (argument === "--") {
        rest.push(...argv.slice(at))
        break
      }
      const [flag, inline] = argument.startsWith("--") && argument.includes("=")
        ? [argument.slice(0, argument.indexOf("=")), argument.slice(argument.indexOf("=") + 1)]
        : [argument, undefined]
      if (inline !== undefined && globalFlags.some(({ name, value }) => name === flag && value === undefined)) {
        return yield* Result.fail(`${flag} takes no value.`)
      }
      const value = () => inline ?? argv[++at]
      if (flag === "--log-level") logLevel = yield* wordOf(levelWords, flag, levelOf(value() ?? ""))
      else if (flag === "--color") {
        const given = value()
        color = yield* wordOf(colours, flag, colours.find((one) => one === given))
      } else if (argument === "-y" || argument === "--yes") yes = true
      else if (argument === "--utc") utc = true
      else if (argument === "-h" || argument === "--help") asks = "help"
      else if (argument === "-V" || argument === "--version") asks ??= "version"
      else {
        json ||= argument === "--json"
        rest.push(argument)
      }
    }
    return { logLevel, color, yes, utc, json, asks, rest }
  })
