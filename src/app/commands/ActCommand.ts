import * as Command from "effect/cli/Command"
import type * as Param from "effect/cli/Param"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Entropy } from "../../crypto/Entropy.ts"
import type { Queue } from "../../engine/queue/Queue.ts"
import type { Database } from "../../engine/sql/Database.ts"
import type { Exported } from "../../operations/operator/Exports.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import type { Globals } from "../../surfaces/cli/Globals.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import type { AnyAct, Cli, Noun } from "../../surfaces/operator/Act.ts"
import { encoded, isFile } from "../../surfaces/operator/Act.ts"
import { Acting, ActingAtKeyboard, Configured } from "../../surfaces/operator/Acting.ts"
import type { Fields } from "../../surfaces/operator/Field.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Host } from "../Host.ts"
import type { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import type { AnyCli, Read } from "./ActParameters.ts"
import { argsOf, checked, demanded, flagOf, inputOf, parametersOf, spellingOf, spelt } from "./ActParameters.ts"
import { command } from "./Descriptor.ts"
import { write } from "./ExportCommand.ts"
import { filesOf } from "./FileInput.ts"
import { jsonOption } from "./Flags.ts"
import { orTakeBack, print } from "./Print.ts"
import { secretsOf } from "./SecretInput.ts"

/* The commands of acts: they run the acts and print their output. */

type ActCli = Cli<Fields, unknown, CommandServices>

/** The services that an act on the command line may need. */
export type CommandServices = Acting | ActingAtKeyboard | Configured | Database | Entropy | Notifier | Queue

/** The highest number of rows that a command prints at once. */
const mostRows = 10_000

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

/** Runs an act with the values that the library has read. Prints the output of the act. */
const running = (act: AnyAct<CommandServices>, cli: ActCli, input: Read, more: Read, read: Read) =>
  Effect.gen(function*() {
    const question = cli.confirm === undefined ? undefined : yield* cli.confirm(input)
    if (question !== undefined) yield* Confirmation.ask(question)
    const secrets = yield* secretsOf(act.input, (member) => flagOf(cli, member), read)
    const args = argsOf(act, cli)
    const files = yield* filesOf(act.input, (member) => spellingOf(cli, args, member), read)
    const output = yield* Effect.mapError(
      act.run({ ...input, ...secrets, ...files }),
      (error) => spelt(act, cli, error)
    )
    if (isFile(act.output)) return yield* write(output as Exported)
    const object = yield* encoded(act, output)
    const text = textOf(cli, object)
    const isJson = read["json"] === true
    if (isJson || text !== "") yield* print(isJson, cli.json?.(object) ?? object, () => text)
    if (cli.ifLost !== undefined) {
      yield* orTakeBack(cli.ifLost.outcome, cli.ifLost.undo?.(output) ?? Effect.void)
    }
    const remark = cli.remark?.(output)
    if (remark !== undefined) yield* Console.error(remark)
    const ended = yield* cli.also?.after(more, output, isJson ? Console.error : Console.log) ?? Effect.succeed([])
    const faults = [...ended, ...cli.faults?.(output) ?? []]
    if (faults.length === 0) return
    return yield* new CommandFailed({
      code: faults.some(({ code }) => code === 1) ? 1 : 3,
      message: faults.map(({ message }) => message).join("\n")
    })
  })

/** Provides the services that acts need besides the database: the person at the keyboard, and the configuration. */
const surroundings = (needsConfig: boolean) =>
  Effect.gen(function*() {
    const { config, sources } = needsConfig
      ? yield* Settings.loaded
      : { config: yield* Settings.forRecords, sources: new Map<string, never>() }
    const isRefused = Option.isNone(yield* Effect.option(Settings.loaded))
    const { process } = yield* Host
    const operator = yield* Operator
    return Context.make(Acting, { operator, role: "admin" }).pipe(
      Context.add(ActingAtKeyboard, operator),
      Context.add(Configured, { resolved: { config, sources }, version: process.version, mostRows, isRefused })
    )
  })

/** Returns the parts of an act's command: its parameters, and its handler for the values that the library has read. */
export const partsOf = (act: AnyAct<CommandServices>, cli: ActCli, services: Services<never> = {}) => {
  const args = argsOf(act, cli)
  const input = demanded(act.input, cli)
  const parameters = Object.fromEntries<Param.Any>([
    ...parametersOf(input, cli, args),
    ...parametersOf(cli.also?.flags ?? {}, cli, []),
    ...isFile(act.output) ? [] : [["json", jsonOption] as const]
  ])
  const name = cli.command.split(" ").at(-1) ?? ""
  const text = `${cli.help ?? `${act.does}.`} Example: acme-svc ${cli.example}. Exit codes: 0, 1, 2, 3.`
  const run = Effect.fnUntraced(function*(read: Read) {
    const given = yield* inputOf(input, cli, read, args)
    const more = yield* inputOf(cli.also?.flags ?? {}, cli, read, [])
    yield* checked(act, cli, given)
    const context = yield* surroundings(cli.needsConfig?.(given) ?? false)
    const run = running(act, cli, given, more, read)
    const own = services[cli.command]
    yield* withRecords(Effect.provideContext(own === undefined ? run : Effect.provide(run, own), context))
  })
  return { name, text, parameters, run }
}

/** Makes the command of an act. */
const commandOf = (act: AnyAct<CommandServices>, cli: ActCli, services: Services<never>) => {
  const { name, parameters, run, text } = partsOf(act, cli, services)
  return command(name, text, parameters, run)
}

/** A command, with its errors and its requirements. */
// The library has no type for a command with any name.
// oxlint-disable-next-line typescript/no-explicit-any
type Made = Command.Command<any, never, object, CommandFailed, Surroundings>

type Surroundings = Confirmation | Globals | Host | Operator | Progress | Settings

/** The services that only some acts of a noun need, by the words of their commands. */
interface Services<R> {
  readonly [command: string]: Layer.Layer<R, CommandFailed, CommandServices | Surroundings>
}

/**
 * Makes the commands of a noun below a word, for example `nonce` with `count` and `cleanup`. `more` lists additional
 * commands, by the words of their group. An additional command can replace the command of an act. `services` lists the
 * services that only individual commands need.
 */
export const actCommand = <R = never>(
  noun: Noun<CommandServices | R>,
  name: string,
  more: { readonly [words: string]: ReadonlyArray<Made> } = {},
  services: Services<R> = {}
) => {
  // Each command is given its own services before it runs.
  const { acts, commands } = noun as Noun<CommandServices>
  const below = (words: string): ReadonlyArray<Made> => {
    const others = more[words] ?? []
    const ofActs = acts.flatMap((act) => {
      if (act.cli?.command.split(" ").slice(0, -1).join(" ") !== words) return []
      return [others.find(({ name }) => act.cli?.command === `${words} ${name}`) ?? commandOf(act, act.cli, services)]
    })
    return [
      ...ofActs,
      ...Object.keys(commands).filter((path) => path.split(" ").slice(0, -1).join(" ") === words).map(groupOf),
      ...others.filter((other) => !ofActs.includes(other))
    ]
  }
  const groupOf = (words: string): Made =>
    Command.make(words.split(" ").at(-1) ?? words).pipe(
      Command.withDescription(commands[words] ?? ""),
      Command.withSubcommands(below(words))
    )
  return groupOf(name)
}

/** Makes the command of the one act of a noun, which has no word before it. */
export const soleCommand = <R = never>(noun: Noun<CommandServices | R>, services: Services<R> = {}) => {
  const [act] = (noun as Noun<CommandServices>).acts
  if (act?.cli === undefined) throw new Error(`${noun.name} has no command`)
  return commandOf(act, act.cli, services as Services<never>)
}
