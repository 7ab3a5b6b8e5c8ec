import { Args, CliConfig, Command, CommandDescriptor, HelpDoc, ValidationError } from "@effect/cli"
import type { CliApp } from "@effect/cli"
import type { Array } from "effect"
import { Console, Effect, Either } from "effect"
import { stripVTControlCharacters } from "node:util"
import type { Globals } from "../surfaces/cli/Globals.ts"
import { readGlobals } from "../surfaces/cli/Globals.ts"
import { CommandFailed, messageOf } from "./CommandFailed.ts"
import type { Host, Kit } from "./commands/Kit.ts"
import * as Kits from "./commands/Kit.ts"
import { wrongWords } from "./commands/Usage.ts"
import type { Streams } from "./Logging.ts"
import * as Logging from "./Logging.ts"

/** The commands by their word, each loaded only when it is meant: what a command does not need costs its start. */
const commands = {
  serve: async (kit: Kit) => (await import("./commands/Serve.ts")).serveCommand(kit),
  init: async (kit: Kit) => (await import("./commands/Init.ts")).initCommand(kit),
  migrate: async (kit: Kit) => (await import("./commands/Migrate.ts")).migrateCommand(kit),
  profile: async (kit: Kit) => (await import("./commands/Profile.ts")).profileCommand(kit),
  health: async (kit: Kit) => (await import("./commands/Health.ts")).healthCommand(kit),
  transfer: async (kit: Kit) => (await import("./commands/Transfer.ts")).transferCommand(kit),
  eab: async (kit: Kit) => (await import("./commands/Eab.ts")).eabCommand(kit),
  order: async (kit: Kit) => (await import("./commands/Order.ts")).orderCommand(kit),
  crl: async (kit: Kit) => (await import("./commands/Crl.ts")).crlCommand(kit),
  jobs: async (kit: Kit) => (await import("./commands/Jobs.ts")).jobsCommand(kit),
  worker: async (kit: Kit) => (await import("./commands/Jobs.ts")).workerCommand(kit),
  filter: async (kit: Kit) => (await import("./commands/Filter.ts")).filterCommand(kit),
  upstream: async (kit: Kit) => (await import("./commands/Upstream.ts")).upstreamCommand(kit)
}

type AnyCommand = Awaited<ReturnType<(typeof commands)[keyof typeof commands]>>

const isWord = (word: string): word is keyof typeof commands => Object.hasOwn(commands, word)
const words = Object.keys(commands).filter(isWord)

/** The command that the first word names, or every one where none is: help and completions tell of all. */
const meant = (kit: Kit): Effect.Effect<Array.NonEmptyReadonlyArray<AnyCommand>> => {
  const [word = ""] = kit.globals.rest
  return Effect.promise(async () =>
    isWord(word)
      ? [await commands[word](kit)]
      : [
        await commands.serve(kit),
        ...await Promise.all(words.filter((other) => other !== "serve").map((other) => commands[other](kit)))
      ]
  )
}

/** The command tree, as far as this command line needs it. */
const tree = (kit: Kit, all: Array.NonEmptyReadonlyArray<AnyCommand>) => {
  const serve = Effect.flatMap(
    Effect.promise(() => import("./commands/Serve.ts")),
    ({ serveEverything }) => serveEverything(kit)
  )
  const withoutCompletions = Command.make("acme-svc", {}, () => serve).pipe(Command.withSubcommands(all))
  const shells = {
    bash: Command.getBashCompletions,
    fish: Command.getFishCompletions,
    zsh: Command.getZshCompletions
  } as const
  const completionsCommand = Kits.described(
    Command.make(
      "completions",
      { shell: Args.choice([["bash", "bash"], ["fish", "fish"], ["zsh", "zsh"]] as const, { name: "shell" }) },
      ({ shell }) =>
        Effect.flatMap(shells[shell](withoutCompletions, "acme-svc"), (lines) => Console.log(lines.join("\n")))
    ),
    "Print a completion script. Example: acme-svc completions bash. Exit codes: 0, 2."
  )
  return Kits.described(
    Command.make("acme-svc", {}, () => serve).pipe(Command.withSubcommands([...all, completionsCommand])),
    "An ACME server for an organisation's own clients. Without a command it serves. Everywhere: --log-level off|error|warn|info|debug|trace, --color auto|always|never, -y/--yes, -h/--help, --version."
  )
}

/** The commands a command line may mean, and what each does. */
export const treeOf = (kit: Kit) => Effect.map(meant(kit), (found) => tree(kit, found))

const report = (host: Host, json: boolean, code: number, message: string): Effect.Effect<number> =>
  Effect.sync(() => {
    if (message !== "") {
      host.stderr.write(json ? `${JSON.stringify({ error: errorWords[code] ?? "failed", message })}\n` : `${message}\n`)
    }
    return code
  })

const errorWords: { readonly [code: number]: string } = { 1: "host_failed", 2: "usage", 3: "refused" }

/** The library colours its help whatever it is written to, and ends some texts with empty lines. */
const colouredWhereWanted =
  (host: Host, { color }: Globals) => <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Console.consoleWith((console) => {
      const print = (output: Streams["stdout"], write: Console.Console["log"]): Console.Console["log"] => (...args) => {
        const text = args.map(String).join(" ").replace(/\n+$/, "")
        return write(Logging.wantsColour(color, output, host.env) ? text : stripVTControlCharacters(text))
      }
      return Effect.withConsole(self, {
        ...console,
        log: print(host.stdout, console.log),
        error: print(host.stderr, console.error)
      })
    })

const configured = CliConfig.layer({ showBuiltIns: false }) // the tree names the flags there are

/** What the flags themselves have against their values; the library alone would tell it in its own way. */
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

/** Runs a command line; the effect's value is the exit code. Nothing escapes as a stack trace. */
export const run = (
  host: Host,
  argv: ReadonlyArray<string>
): Effect.Effect<number, never, CliApp.CliApp.Environment> => {
  const globals = readGlobals(argv)
  if (Either.isLeft(globals)) return report(host, false, 2, globals.left)
  const { json, rest } = globals.right
  const kit = Kits.make(host, globals.right)
  const program = { name: "acme-svc", version: host.process.version }
  return Effect.gen(function*() {
    const root = yield* treeOf(kit)
    const wrong = wrongWords(root.descriptor, rest) ?? (yield* wrongValue(root.descriptor, rest))
    if (wrong !== undefined) return yield* new CommandFailed({ code: 2, message: wrong })
    yield* Command.run(root, program)(["node", "acme-svc", ...rest])
  }).pipe(
    Effect.as(0),
    Effect.catchAll((error) =>
      ValidationError.isValidationError(error)
        ? Effect.succeed(2) // the library has said what is wrong
        : report(host, json, error.code, error.message)
    ),
    Effect.catchAllDefect((defect) =>
      report(
        host,
        json,
        1,
        `acme-svc failed unexpectedly: ${messageOf(defect)}`
      )
    ),
    colouredWhereWanted(host, globals.right),
    Effect.provide(configured)
  )
}
