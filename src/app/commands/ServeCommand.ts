import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import * as Path from "node:path"
import type { Roles } from "../../domain/Role.ts"
import { everyRole, parseRoles } from "../../domain/Role.ts"
import { emit } from "../../domain/words/Log.ts"
import { Database } from "../../engine/sql/Database.ts"
import { Globals } from "../../surfaces/cli/Globals.ts"
import type { SignInState } from "../../surfaces/cli/Welcome.ts"
import { renderWelcome } from "../../surfaces/cli/Welcome.ts"
import { checkAddresses } from "../Addresses.ts"
import { CommandFailed, messageOf } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { signInState } from "../FirstSteps.ts"
import * as Graph from "../Graph.ts"
import type { Process } from "../Host.ts"
import { Host } from "../Host.ts"
import { InForce } from "../InForce.ts"
import * as Logging from "../Logging.ts"
import { database } from "../OpenDatabase.ts"
import { placing } from "../Places.ts"
import { processesOf } from "../ProcessPlan.ts"
import { FailingElsewhere } from "../Readiness.ts"
import { checkSchema, migrate, tellMissingRights } from "../Schema.ts"
import { serve } from "../Serve.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { repeatedFlag, switchFlag } from "./Flags.ts"

// The log lines of the startup are written at the end of the event loop's turn. The text for people must come after
// these lines.
const turnEnd = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

/** What this process has to do for its parent, if it has one. */
const ownTask = Effect.flatMap(
  Host,
  ({ process: { parent } }) =>
    parent === undefined
      ? Effect.undefined
      : Effect.flatMap(Effect.promise(() => import("../Child.ts")), ({ begun }) => begun(parent))
)

const serveProgram = (given: Roles, acceptsEmptyDatabase = false) =>
  Effect.gen(function*() {
    const host = yield* Host
    const child = yield* ownTask
    const roles = child?.roles ?? given
    const { fresh } = yield* Settings
    const loaded = yield* child?.loaded ?? fresh(roles)
    const { config } = loaded
    const log = Logging.make(config, { ...host, isShared: child !== undefined }, yield* Globals)
    // The process listens for exceptions all the time. If one occurs between two steps of the startup, the next step
    // fails with it.
    const process: Process = {
      ...host.process,
      uncaught: Fiber.join(
        yield* Effect.forkChild(host.process.uncaught, { startImmediately: true })
      )
    }
    const toldOfFile = Effect.gen(function*() {
      if (loaded.fileNamedButAbsent) yield* emit("server_config_file_absent", { path: loaded.path })
      yield* emit("server_config_loaded", {
        path: loaded.path,
        file_present: loaded.filePresent,
        keys_from_file: loaded.keysFromFile,
        keys_from_env: loaded.keysFromEnv
      })
      yield* Logging.advisories(config)
    })
    const servesPanel = roles.has("admin") && config.admin.enabled
    const welcome = (signIn: SignInState | undefined) =>
      config.logging.json_format ? Effect.void : Effect.andThen(
        turnEnd,
        Effect.sync(() =>
          host.stdout.write(renderWelcome(config, {
            servesClients: roles.has("acme"),
            servesPanel,
            signIn,
            program: host.process.program,
            absolute: (path) => Path.resolve(host.cwd, path)
          }))
        )
      )
    const operator = yield* Operator
    const signIn = signInState(config, { isTerminal: host.stdout.isTerminal, operator })
    // No link is made unless it is printed.
    const announce = <R>(asked: Effect.Effect<SignInState | undefined, never, R>) =>
      servesPanel && !config.logging.json_format ? Effect.flatMap(asked, welcome) : welcome(undefined)
    const serveHere = Effect.gen(function*() {
      if (child === undefined) yield* toldOfFile
      const settle: (
        process: Process,
        dialect: "sqlite" | "postgres"
      ) => Effect.Effect<unknown, CommandFailed, Database> = roles.has("worker") ? migrate : checkSchema
      const settled = Effect.flatMap(Database, ({ dialect }) => settle(process, dialect))
      yield* Effect.raceFirst(Effect.andThen(settled, tellMissingRights(roles)), process.uncaught)
      const run = { roles, loaded, acceptsEmptyDatabase, announce, signIn, child }
      yield* Effect.provide(serve(run), Graph.kept(roles, child?.number))
    }).pipe(Effect.provide(database(config, { creates: true, serving: true })))
    const serveByProcesses = (count: number) =>
      Effect.gen(function*() {
        yield* toldOfFile
        const { superviseProcesses } = yield* Effect.promise(() => import("../Processes.ts"))
        yield* superviseProcesses({ roles, loaded, count, announce })
      })
    const count = child === undefined && roles.has("acme") ? processesOf(config) : 1
    return yield* (count > 1 ? serveByProcesses(count) : serveHere).pipe(
      Effect.provide(InForce.layer(config, log)),
      Effect.provideService(Host, { ...host, process }),
      child === undefined ? identity : Effect.provideService(FailingElsewhere, child.failingElsewhere),
      (self) => Effect.andThen(checkAddresses(config, roles), self), // this comes before any access to the database
      Effect.catchTag("CommandFailed", placing(loaded)),
      // A child that failed has already said why.
      Effect.tapError(({ message }) => message === "" ? Effect.void : emit("server_fatal_error", { error: message })),
      Effect.tapDefect((defect) => emit("server_fatal_error", { error: messageOf(defect) })),
      Effect.provide(log.layer)
    )
  })

/** Serves with all roles. A command line without a command does the same. */
export const serveEverything = serveProgram(new Set(everyRole))

/** `serve`: runs the service. */
export const serveCommand = command(
  "serve",
  "Run the service until SIGTERM or SIGINT; SIGHUP reloads the configuration. Example: acme-svc serve --role worker. Exit codes: 0 stopped, 1 the host refused, 2 no such role, 3 the configuration was refused.",
  {
    role: repeatedFlag("role", everyRole.join()).pipe(
      Flag.withDescription(`Any of ${everyRole.join(", ")}; repeated or comma-separated. Without it, every role.`)
    ),
    acceptsEmptyDatabase: switchFlag(
      "accept-empty-database",
      "Start with an empty database even if a revocation list shows that another one was lost."
    )
  },
  ({ acceptsEmptyDatabase, role }) =>
    Result.match(parseRoles(role), {
      onFailure: (word) =>
        new CommandFailed({
          code: 2,
          message: `--role takes ${everyRole.join(", ")}, and not ${JSON.stringify(word)}.`
        }),
      onSuccess: (roles) => serveProgram(roles, acceptsEmptyDatabase)
    })
)
