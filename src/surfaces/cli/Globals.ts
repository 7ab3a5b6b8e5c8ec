import { Context, Either } from "effect"

const levels = ["off", "error", "warn", "info", "debug", "trace"] as const
const colours = ["auto", "always", "never"] as const

/** Flags that may stand anywhere on the command line (docs/decisions/command-line.md, "What every command keeps to"). */
export class Globals extends Context.Tag("acme/surfaces/cli/Globals")<Globals, {
  readonly logLevel: (typeof levels)[number] | undefined
  readonly color: (typeof colours)[number]
  readonly yes: boolean
  /** Errors as JSON too; also a flag of the commands that list it. */
  readonly json: boolean
  /** What is left for the command tree. */
  readonly rest: ReadonlyArray<string>
}>() {}

const wordOf = <W extends string>(words: ReadonlyArray<W>, flag: string, value: string | undefined) => {
  const word = words.find((one) => one === value)
  return word === undefined ? Either.left(`${flag} takes one of ${words.join(", ")}.`) : Either.right(word)
}

/** Takes the global flags out of the arguments; the sentence says which one is wrong. */
export const readGlobals = (argv: ReadonlyArray<string>): Either.Either<Globals["Type"], string> =>
  Either.gen(function*() {
    let logLevel: Globals["Type"]["logLevel"]
    let color: Globals["Type"]["color"] = "auto"
    let yes = false
    const rest: Array<string> = []
    for (let at = 0; at < argv.length; at++) {
      const argument = argv[at] ?? ""
      const [flag, inline] = argument.startsWith("--") && argument.includes("=")
        ? [argument.slice(0, argument.indexOf("=")), argument.slice(argument.indexOf("=") + 1)]
        : [argument, undefined]
      const value = () => inline ?? argv[++at]
      if (flag === "--log-level") logLevel = yield* wordOf(levels, flag, value())
      else if (flag === "--color") color = yield* wordOf(colours, flag, value())
      else if (flag === "-y" || flag === "--yes") yes = true
      else rest.push(argument)
    }
    return { logLevel, color, yes, json: rest.includes("--json"), rest }
  })
