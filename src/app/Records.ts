import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Entropy } from "../crypto/Entropy.ts"
import type { OperatorError } from "../domain/OperatorError.ts"
import { knownKinds } from "../domain/words/JobKind.ts"
import { Queue } from "../engine/queue/Queue.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import * as Migrations from "../engine/sql/Migrations.ts"
import { Notifier } from "../services/notify/Notifier.ts"
import type { Loaded } from "../settings/Load.ts"
import type { Globals } from "../surfaces/cli/Globals.ts"
import { CommandFailed, refusedFor } from "./CommandFailed.ts"
import { Host } from "./Host.ts"
import * as Logging from "./Logging.ts"
import { database } from "./OpenDatabase.ts"
import { Settings } from "./Settings.ts"

const checked = Effect.gen(function*() {
  const { dialect } = yield* Database
  const { process } = yield* Host
  const migrations = yield* Migrations.read(process.migrations, dialect)
  return yield* Migrations.pending(migrations)
}).pipe(
  Effect.mapError((error) =>
    new CommandFailed({ code: 1, message: error._tag === "SchemaUnusable" ? error.detail : error.message })
  ),
  Effect.filterOrFail(
    (pending) => pending.length === 0,
    () =>
      new CommandFailed({
        code: 1,
        message:
          "The schema of the database is behind; a process with the worker role applies what is missing when it starts, or run `acme-svc migrate`."
      })
  )
)

/** The services that a command on stored records needs. */
type Surroundings = Host | Globals | Settings

/** Provides the configured database, whose schema must be current, and the services that its operations use. */
const layer: Layer.Layer<Database | Entropy | Notifier | Queue, CommandFailed, Surroundings> = Layer
  .unwrap(
    Effect.map(Settings.forRecords, (config) => {
      return Notifier.layer(() => config).pipe(
        Layer.provideMerge(Queue.layer({ kinds: knownKinds, config: () => config })),
        Layer.provideMerge(
          Layer.tap(database(config, { anyEncoding: true }), (context) => Effect.provide(checked, context))
        ),
        Layer.provideMerge(Layer.merge(Entropy.layer, Logging.quiet({ config })))
      )
    })
  )

/**
 * Runs a program with the configured database, whose schema must be current. If the database does not answer, this
 * counts as a failure of the host. The program also runs if the configuration is refused, as long as `database.*` can
 * be read.
 */
export const withRecords = <A, R>(program: Effect.Effect<A, CommandFailed | StorageFailed | OperatorError, R>) =>
  program.pipe(
    Effect.mapError((error) =>
      error._tag === "CommandFailed"
        ? error
        : error._tag === "StorageFailed"
        ? new CommandFailed({ code: 1, message: error.message })
        : refusedFor(error)
    ),
    Effect.provide(layer)
  )

/** Does the same as {@link withRecords} for a program that needs more of the configuration than the database. */
export const withRecordsAndConfig = <A, R>(
  program: (loaded: Loaded) => Effect.Effect<A, CommandFailed | StorageFailed | OperatorError, R>
) => Effect.flatMap(Settings.loaded, (loaded) => withRecords(program(loaded)))
