import * as CliConfig from "effect/cli/CliConfig"
import type * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { noted } from "../engine/sql/Unreadable.ts"
import { escapedLines } from "../surfaces/cli/Escaped.ts"
import { Globals, readGlobals } from "../surfaces/cli/Globals.ts"
import { Rendered } from "../surfaces/cli/Rendered.ts"
import { CommandFailed, messageOf } from "./CommandFailed.ts"
import { Operator } from "./CommandOperator.ts"
import type { Among } from "./Commands.ts"
import { meant, showHelp, tree, wrong } from "./Commands.ts"
import { commandTree, wrongValues } from "./commands/Descriptor.ts"
import { readWords, wordsOf } from "./commands/Usage.ts"
import { Confirmation } from "./Confirmation.ts"
import type { Output } from "./Host.ts"
import { Host } from "./Host.ts"
import * as Logging from "./Logging.ts"
import { Progress } from "./Progress.ts"
import { Settings } from "./Settings.ts"
import { viewOn } from "./StreamView.ts"

/**
 * Writes why a command has failed, and returns its exit code. With `--json` this is one object, which also has the
 * remarks that the command kept.
 */
const report = (
  json: boolean,
  code: number,
  message: string,
  remarks: ReadonlyArray<string> = []
): Effect.Effect<number, never, Host> =>
  Effect.map(Host, ({ stderr }) => {
    const failure = message === "" ? {} : { error: errorWords[code] ?? "failed", message }
    const ending = { ...failure, ...remarks.length === 0 ? {} : { remarks } }
    if (json && Object.keys(ending).length > 0) stderr.write(`${JSON.stringify(ending)}\n`)
    if (!json && message !== "") stderr.write(`${escapedLines(message)}\n`)
    return code
  })

const errorWords: { readonly [code: number]: string } = {
  1: "host_failed",
  2: "usage",
  3: "refused",
  130: "stopped",
  143: "stopped"
}

/**
 * Writes the output of a command to the streams of the host. A text whose form depends on the stream is rendered for
 * that stream. With `--json`, remarks are kept in `remarks`, so that a program finds one object on standard error. A
 * person at a terminal has to see them before the command asks something.
 */
const printedThere = <A, E, R>(remarks: Array<string>, self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const { env, stderr, stdout } = yield* Host
    const globals = yield* Globals
    const clock = yield* Clock.Clock
    const textOn = (output: Output, args: ReadonlyArray<unknown>): string => {
      const view = viewOn(output, env, globals, Math.floor(clock.currentTimeMillisUnsafe() / 1000))
      return args.map((arg) => arg instanceof Rendered ? arg.on(view) : String(arg)).join(" ").replace(/\n+$/, "")
    }
    const print = (output: Output) => (...args: ReadonlyArray<unknown>): void =>
      output.write(`${textOn(output, args)}\n`)
    const keep = (...args: ReadonlyArray<unknown>): void => void remarks.push(textOn(stderr, args))
    const console = yield* Console.Console
    return yield* Effect.provideService(self, Console.Console, {
      ...console,
      log: print(stdout),
      error: globals.json && !stderr.isTerminal ? keep : print(stderr)
    })
  })

/**
 * With these settings the library itself prints nothing. This file makes the help and the refusals, and `Globals` reads
 * the global flags.
 */
const silent = Context.make(CliConfig.CliConfig, CliConfig.make({ builtIns: [] })).pipe(
  Context.add(CliOutput.Presenter, { present: () => Effect.void })
)

/** Returns the refusal of an argument. The library wraps such a refusal together with a help page. */
const refused = (error: CommandFailed | CliError.CliError): CommandFailed =>
  error._tag === "CommandFailed"
    ? error
    : wrong(error._tag === "ShowHelp" ? error.errors.map(({ message }) => message).join("\n\n") : error.message)

/** Runs the command that a command line names. If the words are wrong, fails and says what is wrong. */
const runWords = Effect.fnUntraced(function*(version: string, words: ReadonlyArray<string>, among: Among) {
  const root = tree(yield* among(words[0]))
  const given = yield* Effect.fromResult(Result.mapError(readWords(commandTree(root), words), wrong))
  const faults = yield* wrongValues(root, given)
  if (faults.length > 0) return yield* wrong(faults.join("\n\n"))
  yield* Effect.mapError(Command.runWith(root, { version })(wordsOf(given)), refused)
})

/** Returns the services that commands need besides the host, for one command line. */
const services = (globals: Globals["Service"]) =>
  Layer.mergeAll(Settings.layer, Operator.layer, Confirmation.layer, Progress.layer).pipe(
    Layer.provideMerge(Layer.succeed(Globals, globals))
  )

/** Interprets the words after the program's name. */
const interpreted = Effect.fnUntraced(function*(among: Among) {
  const { process, stdout } = yield* Host
  const { asks, rest } = yield* Globals
  if (asks === "version") return yield* Console.log(`acme-svc ${process.version}`)
  // Somebody who types only the name of the program wants to know what it does.
  if (asks === "help" || (rest.length === 0 && stdout.isTerminal)) return yield* showHelp(rest)
  yield* Logging.checkVariable
  yield* Effect.provide(runWords(process.version, rest, among), silent)
})

/** Returns whether a command line with this first word runs the service. */
const serves = (word: string | undefined): boolean => word === undefined || word === "serve"

const graceMs = 2000
const signalled = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * Ends a command when a signal arrives. If the command can undo its work quickly, the work is undone; otherwise the
 * command ends with the process. A command that handles signals itself, as `serve` always does, ends in its own way.
 */
const untilSignal = <R>(word: string | undefined, self: Effect.Effect<number, never, R>) =>
  serves(word) ? self : Effect.gen(function*() {
    const host = yield* Host
    const { stopSignal } = host.process
    let listens = false
    const heard = Effect.suspend(() => {
      listens = true
      return stopSignal
    })
    const running = yield* Effect.forkDetach(
      Effect.provideService(self, Host, { ...host, process: { ...host.process, stopSignal: heard } })
    )
    const first = yield* Effect.raceFirst(Fiber.await(running), stopSignal).pipe(
      Effect.onInterrupt(() => Fiber.interrupt(running))
    )
    if (typeof first !== "string") return yield* first
    if (listens) return yield* Fiber.join(running)
    yield* Effect.timeoutOption(Fiber.interrupt(running), graceMs)
    return signalled[first]
  })

/** Remarks which rows a command could not read correctly, because its output about these rows is wrong. */
const telling = <A, E, R>(command: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    noted(command),
    ([, unreadable]) =>
      Effect.forEach(
        unreadable,
        ({ error, row }) => Console.error(`A row of the database cannot be read as it is: ${row}: ${error}`),
        { discard: true }
      )
  )

/**
 * Returns the exit code of a successful command. Fails if the output did not arrive, unless the reader stopped reading.
 * A service does not wait long for the reader of its log, which may hang: the service has been told to stop.
 */
const printed = (
  { asks, json, rest }: Globals["Service"],
  remarks: ReadonlyArray<string>
): Effect.Effect<number, never, Host> =>
  Effect.flatMap(Host, ({ stdout }) =>
    Effect.flatMap(
      asks === undefined && serves(rest[0])
        ? Effect.map(Effect.timeoutOption(stdout.flushed, graceMs), Option.getOrUndefined)
        : stdout.flushed,
      (lost) =>
        lost === undefined || lost === "EPIPE"
          ? report(json, 0, "", remarks)
          : report(json, 1, `The output could not be written (${lost}).`, remarks)
    ))

/** Runs a command line. The effect succeeds with the exit code. A failure is never shown as a stack trace. */
export const run = (
  argv: ReadonlyArray<string>,
  among: Among = meant
): Effect.Effect<number, never, Host | Command.Environment> =>
  Result.match(readGlobals(argv), {
    onFailure: (fault) => report(argv.includes("--json"), 2, fault),
    onSuccess: (globals) =>
      Effect.suspend(() => {
        const remarks: Array<string> = []
        const failed = (code: number, message: string) => report(globals.json, code, message, remarks)
        return printedThere(remarks, telling(interpreted(among))).pipe(
          Effect.andThen(printed(globals, remarks)),
          Effect.catch(({ code, message }) => failed(code, message)),
          Effect.catchDefect((defect) => failed(1, `acme-svc failed unexpectedly: ${messageOf(defect)}`)),
          Effect.provide(services(globals)),
          (command) => untilSignal(globals.rest[0], command)
        )
      })
  })
