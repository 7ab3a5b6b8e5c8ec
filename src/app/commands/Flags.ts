import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readWhole } from "../../domain/WholeNumber.ts"
import { hiddenIn } from "../../engine/HiddenText.ts"

/** The values that a flag accepts. `read` returns undefined for every other value. */
interface Values<A> {
  /** The placeholder of the value in the help. */
  readonly shown: string
  /** What the flag accepts: the end of a sentence that begins with the flag and the word "takes". */
  readonly takes: string
  readonly read: (text: string) => A | undefined
}

/** Returns the refusal of a value: a sentence that names the flag. */
export const refusal = (sentence: string): CliError.ValidationError =>
  new CliError.ValidationError({ message: sentence })

/** Makes a flag with a value. A refusal names the flag. */
export const flag = <A>(name: string, { read, shown, takes }: Values<A>): Flag.Flag<A> =>
  Flag.String(name).pipe(
    Flag.withMetavar(shown),
    Flag.mapEffect((text) => {
      const value = read(text)
      return value === undefined
        ? Effect.fail(refusal(`--${name} takes ${takes}.`))
        : Effect.succeed(value)
    })
  )

/** Makes a flag optional. */
export const optional = <A>(self: Flag.Flag<A>, text: string): Flag.Flag<A | undefined> =>
  self.pipe(Flag.optional, Flag.withDescription(text), Flag.map(Option.getOrUndefined))

/** Makes a flag with a whole number within bounds. */
export const numberFlag = (
  name: string,
  { least, most, of = "a whole number" }: { readonly least: number; readonly most: number; readonly of?: string }
): Flag.Flag<number> =>
  flag(name, {
    shown: "number",
    takes: `${of} from ${least} to ${most}`,
    read: (text) => {
      const value = readWhole(text) ?? Number.NaN
      return value >= least && value <= most ? value : undefined
    }
  })

/** Makes a flag with a non-blank text of one line. Blanks around it are ignored. */
const textFlag = (name: string, longest = 1000): Flag.Flag<string> =>
  flag(name, {
    shown: "text",
    takes: `1 to ${longest} characters, none of them hidden, as controls are`,
    read: (given) => {
      const text = given.trim()
      return text === "" || text.length > longest || hiddenIn(text) !== undefined ? undefined : text
    }
  })

/** Makes an optional {@link textFlag}. */
export const optionalText = (name: string, text: string): Flag.Flag<string | undefined> =>
  optional(textFlag(name), text)

/** Makes a flag with a text that must be given. */
export const neededText = (name: string, text: string): Flag.Flag<string> =>
  textFlag(name).pipe(Flag.withDescription(text))

/** Makes a flag that may be given several times. Blanks around a value are ignored. */
export const repeatedFlag = (name: string, shown: string): Flag.Flag<ReadonlyArray<string>> =>
  Flag.String(name).pipe(Flag.withMetavar(shown), Flag.map((text) => text.trim()), Flag.atLeast(0))

/** Makes a flag without a value. */
export const switchFlag = (name: string, text: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(Flag.withoutNegation, Flag.withDefault(false), Flag.withDescription(text))

// The library has no public way to read the words of a flag. So the list of words is also used as the placeholder of
// the value.
const listed = (words: ReadonlyArray<string>): string => words.join(" | ")

/** Makes a flag whose value is one of a closed set of words. */
export const choiceFlag = <const Words extends ReadonlyArray<string>>(name: string, words: Words) =>
  Flag.Literals(name, words).pipe(Flag.withMetavar(listed(words)))

/** Makes an argument that is one of a closed set of words. */
export const choiceArgument = <const Words extends ReadonlyArray<string>>(name: string, words: Words) =>
  Argument.Literals(name, words).pipe(Argument.withMetavar(listed(words)))

/** The flag that prints a result as an object, for programs. */
export const jsonOption = switchFlag("json", "Print JSON.")
