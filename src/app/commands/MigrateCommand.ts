import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Database } from "../../engine/sql/Database.ts"
import * as Migrations from "../../engine/sql/Migrations.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { database, isAbsent } from "../OpenDatabase.ts"
import { Progress } from "../Progress.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, switchFlag } from "./Flags.ts"

const migrateProgram = (options: { readonly check: boolean; readonly json: boolean }) =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const config = yield* Settings.forRecords
    const failure = (error: { readonly message: string; readonly detail?: string }) =>
      new CommandFailed({ code: 1, message: error.detail ?? error.message })
    const program = Effect.gen(function*() {
      const { dialect } = yield* Database
      const migrations = yield* Migrations.read(process.migrations, dialect)
      const missing = yield* Migrations.pending(migrations)
      if (options.check) return { applied: [], pending: missing.map(({ name }) => name) }
      const total = missing.reduce((sum, { statements }) => sum + statements.length, 0)
      const applied = yield* Progress.run(
        { title: "Migrating", total },
        (stepped) => Migrations.migrate(migrations, { stepped, waiting: Console.error })
      )
      return { applied, pending: [] }
    }).pipe(Effect.mapError(failure))
    const nothingThere = Effect.map(
      Effect.mapError(Migrations.read(process.migrations, "sqlite"), failure),
      (migrations) => ({ applied: [], pending: migrations.map(({ name }) => name) })
    )
    const result = yield* options.check && (yield* isAbsent(config))
      ? nothingThere
      : program.pipe(
        Effect.provide(database(config, { creates: !options.check })),
        Effect.provide(Logging.quiet({ config }))
      )
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

/** `migrate`: the schema. */
export const migrateCommand = command(
  "migrate",
  "Apply pending schema migrations. Example: acme-svc migrate --check. Exit codes: 0, 1, 3 behind.",
  {
    check: switchFlag("check", "Apply nothing, and exit with 3 if migrations are pending."),
    json: jsonOption
  },
  migrateProgram
)
