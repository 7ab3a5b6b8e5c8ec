import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type * as Param from "effect/cli/Param"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { readWhole } from "../../domain/WholeNumber.ts"
import type { Queue } from "../../kernel/queue/Queue.ts"
import type { Database } from "../../kernel/sql/Database.ts"
import type { Exported } from "../../operations/Exports.ts"
import type { Entropy } from "../../pki/Entropy.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import type { Globals } from "../../surfaces/cli/Globals.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import type { AnyAct, Cli, Noun } from "../../surfaces/operator/Act.ts"
import { Acting, Configured } from "../../surfaces/operator/Acting.ts"
import { encoded } from "../../surfaces/operator/ActOutput.ts"
import type { Field, Fields, Written } from "../../surfaces/operator/Field.ts"
import { isFile } from "../../surfaces/operator/FileOutput.ts"
import type { GivenMembers } from "../../surfaces/operator/MemberInput.ts"
import { judged } from "../../surfaces/operator/MemberInput.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Host } from "../Host.ts"
import type { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { write } from "./ExportCommand.ts"
import { jsonOption, refusal, switchFlag } from "./Flags.ts"
import { orTakeBack, print } from "./Print.ts"

/* The commands of acts: flags and arguments from their members, and what they print from what they answer. */

type AnyCli = Cli<Fields, unknown, unknown>
type ActCli = Cli<Fields, unknown, CommandServices>

/** A flag or an argument, by the name under which the library gives its value. */
type Parameter = readonly [name: string, parameter: Param.Any]

/** What an act may need on the command line. */
export type CommandServices = Acting | Configured | Database | Entropy | Notifier | Queue

/** The most rows that a command prints at once. */
const mostRows = 10_000

const hyphened = (member: string): string => member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The name of the flag of a member. */
const flagOf = (cli: AnyCli, member: string): string => cli.flags?.[member]?.flag ?? hyphened(member)

/** A text of the command line in the form of its member. */
const writtenIn = ({ form }: Field<unknown>, text: string): Written | undefined =>
  form === "integer" ? readWhole(text) : text

/**
 * The value of a member. A word outside of a closed set is no fault of the command line: the act refuses it with code 3
 * (docs/decisions/command-line.md). So it is passed on as it is.
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
    onFailure: (error) => error._tag === "UnknownWord" ? Result.succeed(written) : Result.fail(error)
  })
}

const helpOf = (cli: AnyCli, member: string, field: Field<unknown>): string => {
  const text = cli.flags?.[member]?.help ?? field.help ?? field.description
  return field.words.length > 0 ? `${text} One of ${field.words.join(", ")}.` : text
}

/** A flag whose value is judged by the field of its member. */
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

/** The flags of a member: one, or one for each of its words if they are spelt as flags. */
const flagsOf = (cli: AnyCli, member: string, field: Field<unknown>): ReadonlyArray<Parameter> => {
  const words = cli.spelt?.[member]
  if (words !== undefined) return Object.values(words).map(([name, help]) => [name, switchFlag(name, help)])
  const name = flagOf(cli, member)
  if (field.form === "boolean") return [[member, switchFlag(name, helpOf(cli, member, field))]]
  if (field.form === "integer" || field.form === "text") return [[member, valueFlag(cli, member, field)]]
  const several = Flag.String(name).pipe(
    Flag.withMetavar(field.shown),
    Flag.withDescription(helpOf(cli, member, field)),
    Flag.atLeast(field.isNeeded ? 1 : 0)
  )
  return [[member, several]]
}

const argumentOf = (cli: AnyCli, member: string, field: Field<unknown>) => {
  const argument = Argument.String(hyphened(member)).pipe(Argument.withDescription(helpOf(cli, member, field)))
  if (field.form === "texts") return Argument.atLeast(argument, field.isNeeded ? 1 : 0)
  return field.isNeeded ? argument : Argument.map(Argument.optional(argument), Option.getOrUndefined)
}

type Read = { readonly [name: string]: unknown }

/** What the command line gives for a member. */
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

/** The input of an act from what the library has read. */
const inputOf = Effect.fnUntraced(function*(fields: Fields, cli: AnyCli, read: Read) {
  const input: { [member: string]: unknown } = {}
  for (const [member, field] of Object.entries(fields)) {
    const given = yield* givenFor(cli, member, read)
    const isAbsent = given === undefined ||
      (field.form === "texts" && !field.isNeeded && (given as GivenMembers)["length"] === 0)
    input[member] = isAbsent || cli.omits?.includes(member)
      ? field.absent
      : yield* Effect.mapError(
        Effect.fromResult(judged(field, `--${flagOf(cli, member)}`, given as Written)),
        (error) =>
          error._tag === "UnknownWord"
            ? refusedFor(error)
            : wrong(refusedFor(error).message)
      )
  }
  return input
})

const textOf = (cli: AnyCli, output: unknown) => {
  if (cli.text !== undefined) return cli.text(output)
  const { columns } = cli
  if (columns !== undefined) {
    const { items, total = items.length } = output as { readonly items: ReadonlyArray<never>; readonly total?: number }
    const rows = items.map((item) => columns(item))
    return renderTable(Object.keys(rows[0] ?? {}), rows.map((row) => Object.values(row)), total)
  }
  return renderDetail(cli.members?.(output) ?? output as NonNullable<ReturnType<NonNullable<typeof cli.members>>>)
}

/** Refuses members that do not go together, by their flags. */
const checked = (act: AnyAct<CommandServices>, cli: ActCli, input: Read): Effect.Effect<void, CommandFailed> =>
  Effect.mapError(act.fits?.(input) ?? Effect.void, (error) =>
    wrong(
      refusedFor(error).message.replaceAll(
        /\w+/g,
        (word) => Object.hasOwn(act.input, word) ? `--${flagOf(cli, word)}` : word
      )
    ))

/** Runs an act with what the library has read, and prints what it answers. */
const running = (act: AnyAct<CommandServices>, cli: ActCli, input: Read, isJson: boolean) =>
  Effect.gen(function*() {
    const question = cli.confirm === undefined ? undefined : yield* cli.confirm(input)
    if (question !== undefined) yield* Confirmation.ask(question)
    const output = yield* act.run(input)
    if (isFile(act.output)) {
      return yield* write(output as Exported)
    }
    const object = yield* encoded(act, output)
    yield* print(isJson, cli.json?.(object) ?? object, () => textOf(cli, object))
    if (cli.undo !== undefined) yield* orTakeBack(cli.undo.taken, cli.undo.undo(output))
    const remark = cli.remark?.(output)
    if (remark !== undefined) yield* Console.error(remark)
    const faults = cli.faults?.(output) ?? []
    if (faults.length === 0) return
    return yield* new CommandFailed({
      code: faults.some(({ code }) => code === 1) ? 1 : 3,
      message: faults.map(({ message }) => message).join("\n")
    })
  })

/** The services of acts that the command line has besides the database: who is at the keyboard, and the configuration. */
const surroundings = (needsConfig: boolean) =>
  Effect.gen(function*() {
    const { config, sources } = needsConfig
      ? yield* Settings.loaded
      : { config: yield* Settings.forRecords, sources: new Map<string, never>() }
    const { process } = yield* Host
    return Context.make(Acting, { operator: yield* Operator, role: "admin" }).pipe(
      Context.add(Configured, { resolved: { config, sources }, version: process.version, mostRows })
    )
  })

const commandOf = (act: AnyAct<CommandServices>, cli: ActCli, services: Services<never>) => {
  const { http, input, output } = act
  const holes = [...http?.route.matchAll(/\{(\w+)\}/g) ?? []].map(([, hole = ""]) => hole)
  const args = cli.args ?? holes
  const isFlag = (member: string): boolean => !args.includes(member) && !(cli.omits?.includes(member) ?? false)
  const parameters = Object.fromEntries<Param.Any>([
    ...args.flatMap((member): ReadonlyArray<Parameter> => {
      const field = input[member]
      return field === undefined ? [] : [[member, argumentOf(cli, member, field)]]
    }),
    ...Object.entries(input).filter(([member]) => isFlag(member)).flatMap(([member, field]) =>
      flagsOf(cli, member, field)
    ),
    ...isFile(output) ? [] : [["json", jsonOption] as const]
  ])
  const name = cli.command.split(" ").at(-1) ?? ""
  const text = `${cli.help ?? `${act.does}.`} Example: acme-svc ${cli.example}. Exit codes: 0, 1, 2, 3.`
  return command(name, text, parameters, (read) =>
    Effect.gen(function*() {
      const given = yield* inputOf(input, cli, read)
      yield* checked(act, cli, given)
      const context = yield* surroundings(cli.needsConfig?.(given) ?? false)
      const run = running(act, cli, given, read["json"] === true)
      const own = services[cli.command]
      yield* withRecords(Effect.provideContext(own === undefined ? run : Effect.provide(run, own), context))
    }))
}

/** A command with its errors and what it needs. */
// The library has no type for a command of whatever name.
// oxlint-disable-next-line typescript/no-explicit-any
type Made = Command.Command<any, never, object, CommandFailed, Surroundings>

type Surroundings = Confirmation | Globals | Host | Operator | Progress | Settings

/** The services that only some acts of a noun need, by the words of the command. */
interface Services<R> {
  readonly [command: string]: Layer.Layer<R, CommandFailed, CommandServices | Surroundings>
}

/**
 * The commands of a noun below a word: `nonce` with `count` and `cleanup`. `more` are commands that are no acts, by the words of
 * their group. `services` are what single commands need besides the services of all of them.
 */
export const actCommand = <R = never>(
  noun: Noun<CommandServices | R>,
  name: string,
  more: { readonly [words: string]: ReadonlyArray<Made> } = {},
  services: Services<R> = {}
) => {
  // Each command has got the services of its own before it runs.
  const { acts, commands } = noun as Noun<CommandServices>
  const below = (words: string): ReadonlyArray<Made> => [
    ...acts.flatMap((act) =>
      act.cli?.command.split(" ").slice(0, -1).join(" ") === words ? [commandOf(act, act.cli, services)] : []
    ),
    ...Object.keys(commands).filter((path) => path.split(" ").slice(0, -1).join(" ") === words).map(groupOf),
    ...more[words] ?? []
  ]
  const groupOf = (words: string): Made =>
    Command.make(words.split(" ").at(-1) ?? words).pipe(
      Command.withDescription(commands[words] ?? ""),
      Command.withSubcommands(below(words))
    )
  return groupOf(name)
}
