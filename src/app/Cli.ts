import { Args, CliConfig, Command, ValidationError } from "@effect/cli"
import type { CliApp } from "@effect/cli"
import { Console, Effect, Either } from "effect"
import { stripVTControlCharacters } from "node:util"
import type { Globals } from "../surfaces/cli/globals.ts"
import { readGlobals } from "../surfaces/cli/globals.ts"
import { crlCommand } from "./commands/crl.ts"
import { eabCommand } from "./commands/eab.ts"
import { filterCommand } from "./commands/filter.ts"
import { jobsCommand, workerCommand } from "./commands/jobs.ts"
import type { Host, Kit } from "./commands/Kit.ts"
import * as Kits from "./commands/Kit.ts"
import { orderCommand } from "./commands/order.ts"
import { messageOf, serverCommands } from "./commands/server.ts"
import { transferCommand } from "./commands/transfer.ts"
import { upstreamCommand } from "./commands/upstream.ts"
import type { Streams } from "./Logging.ts"
import * as Logging from "./Logging.ts"

/** The command tree. */
const tree = (kit: Kit) => {
  const { commands, serveProgram } = serverCommands(kit)
  const all = [
    ...commands,
    transferCommand(kit),
    eabCommand(kit),
    orderCommand(kit),
    crlCommand(kit),
    jobsCommand(kit),
    workerCommand(kit),
    filterCommand(kit),
    upstreamCommand(kit)
  ] as const
  const withoutCompletions = Command.make("acme-svc", {}, () => serveProgram).pipe(Command.withSubcommands(all))
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
    Command.make("acme-svc", {}, () => serveProgram).pipe(Command.withSubcommands([...all, completionsCommand])),
    "An ACME server for an organisation's own clients. Without a command it serves. Everywhere: --log-level off|error|warn|info|debug|trace, --color auto|always|never, -y/--yes, -h/--help, --version."
  )
}

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

/** Runs a command line; the effect's value is the exit code. Nothing escapes as a stack trace. */
export const run = (
  host: Host,
  argv: ReadonlyArray<string>
): Effect.Effect<number, never, CliApp.CliApp.Environment> => {
  const globals = readGlobals(argv)
  if (Either.isLeft(globals)) return report(host, false, 2, globals.left)
  const { json, rest } = globals.right
  const execute = Command.run(tree(Kits.make(host, globals.right)), { name: "acme-svc", version: host.process.version })
  return execute(["node", "acme-svc", ...rest]).pipe(
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
