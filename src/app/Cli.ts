import type * as CliApp from "@effect/cli/CliApp"
import * as CliConfig from "@effect/cli/CliConfig"
import * as Command from "@effect/cli/Command"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as HelpDoc from "@effect/cli/HelpDoc"
import * as ValidationError from "@effect/cli/ValidationError"
import type * as Array from "effect/Array"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { stripVTControlCharacters } from "node:util"
import { currentSeconds } from "../kernel/Time.ts"
import type { CommandNode } from "../surfaces/cli/CommandTree.ts"
import { escapedLines } from "../surfaces/cli/Escaped.ts"
import { Globals, readGlobals } from "../surfaces/cli/Globals.ts"
import type { Sections } from "../surfaces/cli/HelpPage.ts"
import { renderHelp } from "../surfaces/cli/HelpPage.ts"
import { Rendered } from "../surfaces/cli/Rendered.ts"
import { CommandFailed, messageOf } from "./CommandFailed.ts"
import { commandTree } from "./commands/Descriptor.ts"
import { helpOn, wrongWords } from "./commands/Usage.ts"
import { Confirmation } from "./Confirmation.ts"
import type { Output } from "./Host.ts"
import { Host } from "./Host.ts"
import { Operator } from "./Operator.ts"
import { Progress } from "./Progress.ts"
import { Settings } from "./Settings.ts"
import { viewOn } from "./View.ts"

/** The commands by name. Each is loaded only when it is used, so that it does not slow down the start of the others. */
const commands = {
  serve: async () => (await import("./commands/Serve.ts")).serveCommand,
  init: async () => (await import("./commands/Init.ts")).initCommand,
  migrate: async () => (await import("./commands/Migrate.ts")).migrateCommand,
  config: async () => (await import("./commands/Config.ts")).configCommand,
  profile: async () => (await import("./commands/Profile.ts")).profileCommand,
  health: async () => (await import("./commands/Health.ts")).healthCommand,
  transfer: async () => (await import("./commands/Transfer.ts")).transferCommand,
  account: async () => (await import("./commands/Account.ts")).accountCommand,
  eab: async () => (await import("./commands/Eab.ts")).eabCommand,
  admin: async () => (await import("./commands/Admin.ts")).adminCommand,
  order: async () => (await import("./commands/Order.ts")).orderCommand,
  nonce: async () => (await import("./commands/Nonce.ts")).nonceCommand,
  audit: async () => (await import("./commands/Audit.ts")).auditCommand,
  crl: async () => (await import("./commands/Crl.ts")).crlCommand,
  jobs: async () => (await import("./commands/Jobs.ts")).jobsCommand,
  worker: async () => (await import("./commands/Jobs.ts")).workerCommand,
  filter: async () => (await import("./commands/Filter.ts")).filterCommand,
  notify: async () => (await import("./commands/Notify.ts")).notifyCommand,
  upstream: async () => (await import("./commands/Upstream.ts")).upstreamCommand,
  completions: async () => (await import("./commands/Help.ts")).completionsCommand(whole),
  help: async () => (await import("./commands/Help.ts")).helpCommand(showHelp)
}

/** What each command is for, in the order of the help; a word that is in none of them is listed last. */
export const sections: Sections = [
  ["Serve", ["serve", "init", "health", "config"]],
  ["Certificates", ["account", "order", "eab", "crl", "upstream"]],
  ["Policy", ["profile", "filter"]],
  ["Queue", ["jobs", "worker"]],
  ["Operators", ["admin", "audit"]],
  ["Database", ["migrate", "transfer", "nonce"]],
  ["Other", ["notify", "completions", "help"]]
]

type AnyCommand = Awaited<ReturnType<(typeof commands)[keyof typeof commands]>>

const isWord = (word: string): word is keyof typeof commands => Object.hasOwn(commands, word)
const words = Object.keys(commands).filter(isWord)

/** The command that the first word names. Without one, all commands: help and completions list them all. */
const meant = (word = ""): Effect.Effect<Array.NonEmptyReadonlyArray<AnyCommand>> =>
  Effect.promise(async () =>
    isWord(word)
      ? [await commands[word]()]
      : [
        await commands.serve(),
        ...await Promise.all(words.filter((other) => other !== "serve").map((other) => commands[other]()))
      ]
  )

/** The command tree, with only the commands this command line needs. */
const tree = (all: Array.NonEmptyReadonlyArray<AnyCommand>) => {
  const serve = Effect.flatMap(
    Effect.promise(() => import("./commands/Serve.ts")),
    ({ serveEverything }) => serveEverything
  )
  return Command.withDescription(
    Command.make("acme-svc", {}, () => serve).pipe(Command.withSubcommands(all)),
    "An ACME server for an organisation's own clients. Without a command it serves."
  )
}

/** The commands a command line may mean by its first word, and what each does. */
const treeOf = (word?: string) => Effect.map(meant(word), tree)

/** Every command there is, as data. */
export const whole: Effect.Effect<CommandNode> = Effect.suspend(() =>
  Effect.map(treeOf(), ({ descriptor }) => commandTree(descriptor))
)

/** Prints the help page that words lead to. */
const showHelp = (words: ReadonlyArray<string>): Effect.Effect<void, CommandFailed> =>
  Effect.flatMap(treeOf(words.find((word) => !word.startsWith("-"))), ({ descriptor }) => {
    const node = helpOn(commandTree(descriptor), words)
    return typeof node === "string"
      ? new CommandFailed({ code: 2, message: node })
      : Console.log(new Rendered((view) => renderHelp(node, view, sections)))
  })

const report = (json: boolean, code: number, message: string): Effect.Effect<number, never, Host> =>
  Effect.map(Host, ({ stderr }) => {
    if (message !== "") {
      stderr.write(
        json ? `${JSON.stringify({ error: errorWords[code] ?? "failed", message })}\n` : `${escapedLines(message)}\n`
      )
    }
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
 * What is printed goes to the streams of the host, and what depends on where it goes is asked for it there. The library ends
 * some texts with empty lines.
 */
const printedThere = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Host | Globals> =>
  Effect.gen(function*() {
    const { env, stderr, stdout } = yield* Host
    const globals = yield* Globals
    const print = (output: Output): Console.Console["log"] => (...args) =>
      Effect.map(currentSeconds, (now) => {
        const view = viewOn(output, env, globals, now)
        const text = args.map((arg: unknown) => arg instanceof Rendered ? arg.on(view) : String(arg)).join(" ")
        output.write(`${text.replace(/\n+$/, "")}\n`)
      })
    const console = yield* Effect.console
    return yield* Effect.withConsole(self, { ...console, log: print(stdout), error: print(stderr) })
  })

const configured = CliConfig.layer({ showBuiltIns: false }) // the tree itself describes these flags

/** The fault a flag finds in its own value. The library alone would report it in its own style. */
const wrongValue = (command: CommandDescriptor.Command<unknown>, words: ReadonlyArray<string>) =>
  Effect.flatMap(
    CliConfig.CliConfig,
    (config) =>
      Effect.match(CommandDescriptor.parse(command, ["acme-svc", ...words], config), {
        onSuccess: () => undefined,
        onFailure: (error) =>
          ValidationError.isInvalidValue(error)
            ? stripVTControlCharacters(HelpDoc.toAnsiText(error.error)).trim()
            : undefined
      })
  )

/** The services of commands besides the host, for one command line. */
const services = (globals: Globals["Type"]) =>
  Layer.mergeAll(Settings.layer, Operator.layer, Confirmation.layer, Progress.layer).pipe(
    Layer.provideMerge(Layer.succeed(Globals, globals))
  )

/** Reads the words behind the program's name, and does what they say. */
const interpreted = Effect.gen(function*() {
  const { process } = yield* Host
  const { asks, rest } = yield* Globals
  if (asks === "version") return yield* Console.log(process.version)
  if (asks === "help") return yield* showHelp(rest)
  const root = yield* treeOf(rest[0])
  const wrong = wrongWords(commandTree(root.descriptor), rest) ?? (yield* wrongValue(root.descriptor, rest))
  if (wrong !== undefined) return yield* new CommandFailed({ code: 2, message: wrong })
  yield* Command.run(root, { name: "acme-svc", version: process.version })(["node", "acme-svc", ...rest])
})

const graceMs = 2000
const signalled = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * Ends a command at a signal: what it began is taken back where that is quick, and otherwise ends with the process. A command
 * that listens for signals ends in its own way. `serve` always does.
 */
const untilSignal = <R>(word: string | undefined, self: Effect.Effect<number, never, R>) =>
  word === undefined || word === "serve" ? self : Effect.gen(function*() {
    const host = yield* Host
    const { stopSignal } = host.process
    let listens = false
    const heard = Effect.suspend(() => {
      listens = true
      return stopSignal
    })
    const running = yield* Effect.forkDaemon(
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

/** Runs a command line; the effect's value is the exit code. Nothing escapes as a stack trace. */
export const run = (argv: ReadonlyArray<string>): Effect.Effect<number, never, Host | CliApp.CliApp.Environment> =>
  Either.match(readGlobals(argv), {
    onLeft: (fault) => report(argv.includes("--json"), 2, fault),
    onRight: (globals) =>
      printedThere(interpreted).pipe(
        Effect.as(0),
        Effect.catchAll((error) =>
          ValidationError.isValidationError(error)
            ? Effect.succeed(2) // the library has said what is wrong
            : report(globals.json, error.code, error.message)
        ),
        Effect.catchAllDefect((defect) =>
          report(globals.json, 1, `acme-svc failed unexpectedly: ${messageOf(defect)}`)
        ),
        Effect.provide(services(globals)),
        Effect.provide(configured),
        (command) => untilSignal(globals.rest[0], command)
      )
  })
