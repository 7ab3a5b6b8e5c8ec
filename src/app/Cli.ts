import { Args, CliConfig, Command, Options, ValidationError } from "@effect/cli"
import type { CliApp } from "@effect/cli"
import { Cause, Console, Effect, Either, Layer } from "effect"
import * as Path from "node:path"
import { stripVTControlCharacters } from "node:util"
import type { Loaded } from "../subsystems/config/Load.ts"
import { Entropy } from "../subsystems/crypto/Entropy.ts"
import { Database } from "../subsystems/db/Database.ts"
import * as Migrations from "../subsystems/db/Migrations.ts"
import type { EventLog } from "../subsystems/log/EventLog.ts"
import { emit } from "../subsystems/log/EventLog.ts"
import type { Globals } from "../surfaces/cli/globals.ts"
import { readGlobals } from "../surfaces/cli/globals.ts"
import { renderProfiles } from "../surfaces/cli/profiles.ts"
import { renderWelcome } from "../surfaces/cli/welcome.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Graph from "./Graph.ts"
import { health } from "./Health.ts"
import type { Streams } from "./Logging.ts"
import * as Logging from "./Logging.ts"
import type { Process } from "./Serve.ts"
import { migrate, serve } from "./Serve.ts"
import * as Setup from "./Setup.ts"

/** The surroundings of a command. */
export interface Host extends Streams {
  readonly cwd: string
  readonly process: Process
}

// The lines of the start are written at the end of the turn of the event loop, and what is for people comes after them.
const turnEnd = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

const openDatabase = Effect.map(Database, ({ dialect }) => dialect)

const programs = (host: Host, globals: Globals) => {
  const load = Setup.load(host.env, host.cwd)

  /** Commands keep silent unless a level is asked for, and then speak on stderr. */
  const quiet = ({ config }: Loaded): Layer.Layer<EventLog> => {
    const level = globals.logLevel ?? ((host.env["RUST_LOG"] ?? "") === "" ? "off" as const : undefined)
    return Logging.layer({ logging: { ...config.logging, target: "stderr" } }, host, { ...globals, logLevel: level })
  }

  const serveProgram = Effect.gen(function*() {
    const loaded = yield* load
    const { config } = loaded
    const program = Effect.gen(function*() {
      if (loaded.fileNamedButAbsent) yield* emit("server_config_file_absent", { path: loaded.path })
      yield* emit("server_config_loaded", {
        path: loaded.path,
        file_present: loaded.filePresent,
        keys_from_file: loaded.keysFromFile,
        keys_from_env: loaded.keysFromEnv
      })
      yield* Logging.advisories(config)
      const welcome = config.logging.json_format ? "" : renderWelcome(config, (path) => Path.resolve(host.cwd, path))
      yield* Effect.flatMap(openDatabase, (dialect) => migrate(host.process, dialect))
      yield* Effect.provide(
        serve(config, host.process, Effect.zipRight(turnEnd, Effect.sync(() => host.stdout.write(welcome)))),
        Graph.subsystems(config, host.process.version)
      )
    })
    return yield* program.pipe(
      Effect.provide(Graph.database(config)),
      Effect.raceFirst(host.process.uncaught),
      Effect.tapError(({ message }) => emit("server_fatal_error", { error: message })),
      Effect.tapDefect((cause) => emit("server_fatal_error", { error: messageOf(Cause.squash(cause)) })),
      Effect.provide(Logging.layer(config, host, globals))
    )
  })

  const initProgram = Effect.gen(function*() {
    const { created, loaded } = yield* Setup.loadOrCreate(host.env, host.cwd)
    const { config } = loaded
    const program = Effect.gen(function*() {
      const applied = yield* Effect.flatMap(openDatabase, (dialect) => migrate(host.process, dialect))
      const files = yield* Setup.createFiles(config)
      const lines = [
        ...(created === undefined ? [] : [`configuration ${created}`]),
        ...(applied.length === 0 ? [] : [`schema        ${applied.length} migration(s)`]),
        ...files
      ]
      yield* Console.log(
        lines.length === 0 ? "Nothing to do: everything exists." : lines.map((line) => `created ${line}`).join("\n")
      )
    })
    yield* program.pipe(Effect.provide(Graph.database(config)), Effect.provide(quiet(loaded)))
  }).pipe(Effect.provide(Entropy.layer))

  const migrateProgram = (options: { readonly check: boolean; readonly json: boolean }) =>
    Effect.gen(function*() {
      const loaded = yield* load
      const failure = (error: { readonly message: string; readonly detail?: string }) =>
        new CommandFailed({ code: 1, message: error.detail ?? error.message })
      const program = Effect.gen(function*() {
        const dialect = yield* openDatabase
        if (!options.check) return { applied: yield* migrate(host.process, dialect), pending: [] }
        const migrations = yield* Effect.mapError(Migrations.read(host.process.migrations, dialect), failure)
        const missing = yield* Effect.mapError(Migrations.pending(migrations), failure)
        return { applied: [], pending: missing.map(({ name }) => name) }
      })
      const result = yield* program.pipe(Effect.provide(Graph.database(loaded.config)), Effect.provide(quiet(loaded)))
      yield* Console.log(
        options.json
          ? JSON.stringify(result)
          : options.check
          ? `${result.pending.length} migration(s) pending.`
          : `${result.applied.length} migration(s) applied.`
      )
      if (result.pending.length > 0) {
        return yield* new CommandFailed({ code: 3, message: `The database lacks ${result.pending.join(", ")}.` })
      }
    })

  return { load, quiet, serveProgram, initProgram, migrateProgram }
}

const jsonOption = Options.boolean("json").pipe(Options.withDescription("Print JSON."))

/** The command tree. */
const tree = (host: Host, globals: Globals) => {
  const { initProgram, load, migrateProgram, quiet, serveProgram } = programs(host, globals)
  const described = <N extends string, R, E, A>(self: Command.Command<N, R, E, A>, text: string) =>
    Command.withDescription(self, text)

  const serveCommand = described(
    Command.make("serve", {}, () => serveProgram),
    "Run the service until SIGTERM or SIGINT. Example: acme-svc serve. Exit codes: 0 stopped, 1 the host refused, 3 the configuration did."
  )
  const initCommand = described(
    Command.make("init", {}, () => initProgram),
    "Migrate the database and create what is missing: a first config.toml, the CA, the TLS pair. Nothing that exists is touched. Example: acme-svc init. Exit codes: 0, 1, 3."
  )
  const migrateCommand = described(
    Command.make("migrate", {
      check: Options.boolean("check").pipe(Options.withDescription("Apply nothing; exit 3 when behind.")),
      json: jsonOption
    }, migrateProgram),
    "Apply pending schema migrations. Example: acme-svc migrate --check. Exit codes: 0, 1, 3 behind."
  )
  const profileList = described(
    Command.make(
      "list",
      { json: jsonOption },
      ({ json }) => Effect.flatMap(load, ({ config }) => Console.log(renderProfiles(config, json)))
    ),
    "List the configured endpoints. Example: acme-svc profile list --json. Exit codes: 0, 3."
  )
  const profileCommand = described(
    Command.make("profile").pipe(Command.withSubcommands([profileList])),
    "ACME endpoints."
  )
  const healthCommand = described(
    Command.make(
      "health",
      {
        role: Options.choice("role", ["acme", "worker"]).pipe(
          Options.withDefault("acme" as const),
          Options.withDescription("Whose health.")
        ),
        timeout: Options.integer("timeout-ms").pipe(
          Options.withDefault(3000),
          Options.withDescription("How long to wait.")
        )
      },
      ({ role, timeout }) =>
        Effect.flatMap(
          load,
          (loaded) => Effect.provide(health(loaded.config, host.process.version, role, timeout), quiet(loaded))
        )
    ),
    "Ask a running service whether it is well. Silent. Example: acme-svc health --role worker. Exit codes: 0 well, 1 not."
  )
  const withoutCompletions = Command.make("acme-svc", {}, () => serveProgram).pipe(
    Command.withSubcommands([serveCommand, initCommand, migrateCommand, profileCommand, healthCommand])
  )
  const shells = {
    bash: Command.getBashCompletions,
    fish: Command.getFishCompletions,
    zsh: Command.getZshCompletions
  } as const
  const completionsCommand = described(
    Command.make(
      "completions",
      { shell: Args.choice([["bash", "bash"], ["fish", "fish"], ["zsh", "zsh"]] as const, { name: "shell" }) },
      ({ shell }) =>
        Effect.flatMap(shells[shell](withoutCompletions, "acme-svc"), (lines) => Console.log(lines.join("\n")))
    ),
    "Print a completion script. Example: acme-svc completions bash. Exit codes: 0, 2."
  )
  return described(
    Command.make("acme-svc", {}, () => serveProgram).pipe(
      Command.withSubcommands([
        serveCommand,
        initCommand,
        migrateCommand,
        profileCommand,
        healthCommand,
        completionsCommand
      ])
    ),
    "An ACME server for an organisation's own clients. Without a command it serves. Everywhere: --log-level off|error|warn|info|debug|trace, --color auto|always|never, -y/--yes, -h/--help, --version."
  )
}

const messageOf = (defect: unknown): string => defect instanceof Error ? defect.message : String(defect)

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
  const execute = Command.run(tree(host, globals.right), { name: "acme-svc", version: host.process.version })
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
