import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import type * as Param from "effect/cli/Param"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, UnknownWord } from "../../domain/OperatorError.ts"
import { readWhole } from "../../domain/WholeNumber.ts"
import type { AnyAct, Cli } from "../../surfaces/operator/Act.ts"
import type { Field, Fields, Written } from "../../surfaces/operator/Field.ts"
import { judged } from "../../surfaces/operator/MemberInput.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import { neededText, optionalText, refusal, switchFlag } from "./Flags.ts"
import { secretFlag } from "./SecretInput.ts"

/*
 * Makes the flags and arguments of acts' commands from the members of the acts, and turns the values of the flags and
 * arguments into members.
 */

/** The command-line form of any act. */
export type AnyCli = Cli<Fields, unknown, unknown>

/** A flag or an argument, with the name under which the library returns its value. */
type Parameter = readonly [name: string, parameter: Param.Any]

const hyphened = (member: string): string => member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Returns the name of a member's flag. */
export const flagOf = (cli: AnyCli, member: string): string => cli.flags?.[member]?.flag ?? hyphened(member)

/** Returns how the command line writes a member: as a flag or as an argument. */
export const spellingOf = (cli: AnyCli, args: ReadonlyArray<string>, member: string): string =>
  args.includes(member) ? `<${flagOf(cli, member)}>` : `--${flagOf(cli, member)}`

/** Converts a text of the command line to the form of its member. */
const writtenIn = ({ form }: Field<unknown>, text: string): Written | undefined =>
  form === "integer" ? readWhole(text) : text

/**
 * Returns whether a text is a word outside a closed set. Such a word does not make the command line wrong, so it is
 * refused with code 3 (docs/contribute/decisions/command-line.md). A blank text is not a word.
 */
const isUnknown = ({ _tag }: OperatorError, given: unknown): boolean =>
  _tag === "UnknownWord" && typeof given === "string" && given.trim() !== ""

/**
 * Returns the value of a member. An unknown word is returned unchanged. It is refused only if everything else on the
 * command line is right.
 */
const valueOf = (
  field: Field<unknown>,
  spelling: string,
  text: string
): Result.Result<Written, OperatorError | undefined> => {
  const written = writtenIn(field, text)
  if (written === undefined) return Result.fail(undefined)
  return Result.match(judged(field, spelling, written), {
    onSuccess: () => Result.succeed(written),
    onFailure: (error) => isUnknown(error, text) ? Result.succeed(written) : Result.fail(error)
  })
}

const helpOf = (cli: AnyCli, member: string, field: Field<unknown>): string => {
  const text = cli.flags?.[member]?.help ?? field.help ?? field.description
  return field.words.length > 0 ? `${text} One of ${field.words.join(", ")}.` : text
}

/** Makes a flag whose value is checked by the field of its member. */
const valueFlag = (cli: AnyCli, member: string, field: Field<unknown>) => {
  const name = flagOf(cli, member)
  const alias = cli.flags?.[member]?.alias
  const judging = Flag.String(name).pipe(
    Flag.withMetavar(field.shown),
    Flag.withDescription(helpOf(cli, member, field)),
    Flag.mapEffect((text) =>
      Effect.fromResult(
        Result.mapError(
          valueOf(field, `--${name}`, text),
          (error) => refusal(error === undefined ? `--${name} takes ${field.takes}.` : refusedFor(error).message)
        )
      )
    )
  )
  const named = alias === undefined ? judging : Flag.withAlias(judging, alias)
  if (field.isNeeded) return named
  const { absent } = field
  return typeof absent === "string" || typeof absent === "number"
    ? Flag.withDefault(named, absent)
    : Flag.map(Flag.optional(named), Option.getOrUndefined)
}

/** Makes a flag for the path of the file that contains the value. The file is read later (`FileInput.ts`). */
const fileFlag = (cli: AnyCli, member: string, field: Field<unknown>) =>
  (field.isNeeded ? neededText : optionalText)(flagOf(cli, member), helpOf(cli, member, field))

/** Returns the flags of a member. There is one flag, or one for each word of the member if its words are flags. */
const flagsOf = (cli: AnyCli, member: string, field: Field<unknown>): ReadonlyArray<Parameter> => {
  const words = cli.spelt?.[member]
  if (words !== undefined) return Object.values(words).map(([name, help]) => [name, switchFlag(name, help)])
  const name = flagOf(cli, member)
  if (field.isSecret === true) return [[member, secretFlag(name)]]
  if (field.isFile === true) return [[member, fileFlag(cli, member, field)]]
  if (field.form === "boolean") return [[member, switchFlag(name, helpOf(cli, member, field))]]
  if (field.form !== "texts") return [[member, valueFlag(cli, member, field)]]
  const several = Flag.String(name).pipe(
    Flag.withMetavar(field.shown),
    Flag.withDescription(helpOf(cli, member, field)),
    Flag.atLeast(field.isNeeded ? 1 : 0)
  )
  return [[member, several]]
}

const argumentOf = (cli: AnyCli, member: string, field: Field<unknown>) => {
  const argument = Argument.String(flagOf(cli, member)).pipe(Argument.withDescription(helpOf(cli, member, field)))
  if (field.form === "texts") return Argument.atLeast(argument, field.isNeeded ? 1 : 0)
  return field.isNeeded ? argument : Argument.map(Argument.optional(argument), Option.getOrUndefined)
}

/**
 * Returns the members that are written as arguments, in order. By default these are the members in the path of the
 * route.
 */
export const argsOf = <R>({ http }: AnyAct<R>, cli: AnyCli): ReadonlyArray<string> =>
  cli.args ?? [...http?.route.matchAll(/\{(\w+)\}/g) ?? []].map(([, hole = ""]) => hole)

/**
 * Returns the members of an act as its command requires them. Some members that are optional elsewhere are required on
 * the command line.
 */
export const demanded = (fields: Fields, { needs = [] }: AnyCli): Fields => ({
  ...fields,
  ...Object.fromEntries(
    Object.entries(fields).flatMap(([member, field]) =>
      needs.includes(member) ? [[member, { ...field, isNeeded: true }]] : []
    )
  )
})

/** Returns the arguments and flags of members, the arguments first. */
export const parametersOf = (fields: Fields, cli: AnyCli, args: ReadonlyArray<string>): ReadonlyArray<Parameter> => [
  ...args.flatMap((member): ReadonlyArray<Parameter> => {
    const field = fields[member]
    return field === undefined ? [] : [[member, argumentOf(cli, member, field)]]
  }),
  ...Object.entries(fields).flatMap(([member, field]) =>
    args.includes(member) || cli.omits?.includes(member) ? [] : flagsOf(cli, member, field)
  )
]

/** The values that the library has read, by member or flag. */
export type Read = { readonly [name: string]: unknown }

/** Returns the value that the command line gives for a member. */
const givenFor = (cli: AnyCli, member: string, read: Read) =>
  Effect.gen(function*(): Effect.fn.Return<unknown, CommandFailed> {
    const words = cli.spelt?.[member]
    if (words === undefined) return read[member]
    const chosen = Object.entries(words).filter(([, [name]]) => read[name] === true)
    if (chosen.length > 1) {
      const flags = chosen.map(([, [name]]) => `--${name}`).join(" and ")
      return yield* wrong(`${flags} exclude each other.`)
    }
    return chosen[0]?.[0]
  })

const wrong = (message: string): CommandFailed => new CommandFailed({ code: 2, message })

/**
 * Returns the input of an act, made from the values that the library has read. `args` lists the members that are
 * written as arguments.
 */
export const inputOf = Effect.fnUntraced(function*(
  fields: Fields,
  cli: AnyCli,
  read: Read,
  args: ReadonlyArray<string>
) {
  const input: { [member: string]: unknown } = {}
  for (const [member, field] of Object.entries(fields)) {
    // Secrets and files are read last, when nothing else can be refused (`SecretInput.ts`, `FileInput.ts`).
    if (field.isSecret === true || field.isFile === true) continue
    const given = yield* givenFor(cli, member, read)
    // A flag without a value counts as absent if it was left out.
    const isAbsent = given === undefined || given === false ||
      (!field.isNeeded && Array.isArray(given) && given.length === 0)
    input[member] = isAbsent || cli.omits?.includes(member)
      ? field.absent
      : yield* Effect.mapError(
        Effect.fromResult(
          judged(
            field,
            spellingOf(cli, args, member),
            given as Written
          )
        ),
        (error) => isUnknown(error, given) ? refusedFor(error) : wrong(refusedFor(error).message)
      )
  }
  return input
})

/** Refuses members that do not fit together. The refusal names their flags. */
export const checked = <R>(act: AnyAct<R>, cli: AnyCli, input: Read): Effect.Effect<void, CommandFailed> =>
  Effect.mapError(act.fits?.(input) ?? Effect.void, (error) =>
    wrong(
      refusedFor(error).message.replaceAll(
        /\w+/g,
        (word) => Object.hasOwn(act.input, word) ? spellingOf(cli, argsOf(act, cli), word) : word
      )
    ))

/** Returns the refusal of a running act. If the refusal names a member, it names the flag or the argument instead. */
export const spelt = <R, E extends { readonly _tag: string }>(
  act: AnyAct<R>,
  cli: AnyCli,
  error: E
): BadRequest | E | UnknownWord => {
  const isMember = (name: string | undefined): name is string => name !== undefined && Object.hasOwn(act.input, name)
  // A secret is given in a file (`SecretInput.ts`).
  const spelling = (member: string) =>
    `${spellingOf(cli, argsOf(act, cli), member)}${act.input[member]?.isSecret === true ? "-file" : ""}`
  if (error instanceof BadRequest && isMember(error.member)) {
    return new BadRequest({ member: spelling(error.member), detail: error.detail })
  }
  return error instanceof UnknownWord && isMember(error.name)
    ? new UnknownWord({ name: spelling(error.name), word: error.word, known: error.known })
    : error
}
