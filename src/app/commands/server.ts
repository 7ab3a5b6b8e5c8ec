import { Command, Options } from "@effect/cli"
import { Cause, Console, Effect, Either, Fiber, Layer } from "effect"
import * as Path from "node:path"
import type { Roles } from "../../domain/Role.ts"
import { everyRole, parseRoles } from "../../domain/Role.ts"
import type { Config } from "../../subsystems/config/AppConfig.ts"
import { Entropy } from "../../subsystems/crypto/Entropy.ts"
import { Database } from "../../subsystems/db/Database.ts"
import * as Migrations from "../../subsystems/db/Migrations.ts"
import { emit } from "../../subsystems/log/EventLog.ts"
import { Resolver } from "../../subsystems/outside/Resolver.ts"
import { renderProfiles } from "../../surfaces/cli/profiles.ts"
import { renderWelcome } from "../../surfaces/cli/welcome.ts"
import { CommandFailed } from "../CommandFailed.ts"
import * as Graph from "../Graph.ts"
import { health } from "../Health.ts"
import * as Logging from "../Logging.ts"
import type { Process } from "../Serve.ts"
import { checkSchema, migrate, serve } from "../Serve.ts"
import * as Setup from "../Setup.ts"
import type { Kit } from "./Kit.ts"
import { described, jsonOption } from "./Kit.ts"

// The lines of the start are written at the end of the turn of the event loop, and what is for people comes after them.
const turnEnd = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

const openDatabase = Effect.map(Database, ({ dialect }) => dialect)

/** What a command that ends unexpectedly says of it. */
export const messageOf = (defect: unknown): string => defect instanceof Error ? defect.message : String(defect)

const programs = ({ globals, host, load, quiet }: Kit) => {
  const serveProgram = (roles: Roles) =>
    Effect.gen(function*() {
      const loaded = yield* load
      const { config } = loaded
      const log = Logging.make(config, host, globals)
      // Heard all the time: what happens between two steps of the start is met at the next.
      const process: Process = { ...host.process, uncaught: Fiber.join(yield* Effect.fork(host.process.uncaught)) }
      let current = config
      const enforce = (next: Config) =>
        Effect.suspend(() => {
          current = next
          return log.enforce(next)
        })
      const program = Effect.gen(function*() {
        if (loaded.fileNamedButAbsent) yield* emit("server_config_file_absent", { path: loaded.path })
        yield* emit("server_config_loaded", {
          path: loaded.path,
          file_present: loaded.filePresent,
          keys_from_file: loaded.keysFromFile,
          keys_from_env: loaded.keysFromEnv
        })
        yield* Logging.advisories(config)
        const isShown = roles.has("acme") && !config.logging.json_format
        const welcome = isShown ? renderWelcome(config, (path) => Path.resolve(host.cwd, path)) : ""
        const settle: (
          process: Process,
          dialect: "sqlite" | "postgres"
        ) => Effect.Effect<unknown, CommandFailed, Database> = roles.has("worker") ? migrate : checkSchema
        const settled = Effect.flatMap(openDatabase, (dialect) => settle(process, dialect))
        yield* Effect.raceFirst(settled, process.uncaught)
        const announce = Effect.zipRight(turnEnd, Effect.sync(() => host.stdout.write(welcome)))
        const again = Effect.map(load, (fresh) => fresh.config)
        yield* Effect.provide(
          serve({ config, roles, process, announce, load: again, enforce }),
          Graph.kept(() => current, roles)
        )
      })
      return yield* program.pipe(
        Effect.provide(Graph.database(config)),
        Effect.tapError(({ message }) => emit("server_fatal_error", { error: message })),
        Effect.tapDefect((cause) => emit("server_fatal_error", { error: messageOf(Cause.squash(cause)) })),
        Effect.provide(log.layer)
      )
    })

  const initProgram = Effect.gen(function*() {
    const { created, loaded } = yield* Setup.loadOrCreate(host.env, host.cwd)
    const { config } = loaded
    const program = Effect.gen(function*() {
      const applied = yield* Effect.flatMap(openDatabase, (dialect) => migrate(host.process, dialect))
      const files = yield* Setup.createFiles(config)
      const print = (lines: ReadonlyArray<string>) =>
        lines.length === 0 ? Effect.void : Console.log(lines.map((line) => `created ${line}`).join("\n"))
      const first = [
        ...(created === undefined ? [] : [`configuration ${created}`]),
        ...(applied.length === 0 ? [] : [`schema        ${applied.length} migration(s)`]),
        ...files
      ]
      yield* print(first)
      const accounts = yield* Effect.provide(
        Setup.createAccounts(config),
        Layer.provide(Graph.web(config, host.process.version), Resolver.layer(config.dns.resolver))
      )
      yield* print(accounts)
      if (first.length + accounts.length === 0) yield* Console.log("Nothing to do: everything exists.")
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

  return { serveProgram, initProgram, migrateProgram }
}

/** Commands that run, make or watch the service itself, and the program that serves. */
export const serverCommands = (kit: Kit) => {
  const { host, load, quiet } = kit
  const { initProgram, migrateProgram, serveProgram } = programs(kit)
  const isRoleGiven = kit.globals.rest.includes("--role")
  const serveCommand = described(
    Command.make("serve", {
      role: Options.text("role").pipe(
        Options.repeated,
        Options.withDescription(`Of ${everyRole.join(", ")}; repeated or comma-separated. Every role without it.`)
      )
    }, ({ role }) =>
      // The library drops an empty value, and without any word this would be every role.
      Either.match(parseRoles(role.length === 0 && isRoleGiven ? [""] : role), {
        onLeft: (word) =>
          new CommandFailed({
            code: 2,
            message: `--role takes ${everyRole.join(", ")}, and not ${JSON.stringify(word)}.`
          }),
        onRight: serveProgram
      })),
    "Run the service until SIGTERM or SIGINT; SIGHUP reloads the configuration. Example: acme-svc serve --role worker. Exit codes: 0 stopped, 1 the host refused, 2 no such role, 3 the configuration was refused."
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
  const serveEverything = serveProgram(new Set(everyRole))
  return {
    serveProgram: serveEverything,
    commands: [serveCommand, initCommand, migrateCommand, profileCommand, healthCommand] as const
  }
}
