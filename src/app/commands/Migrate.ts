import { Command, Options } from "@effect/cli"
import { Console, Effect } from "effect"
import { Database } from "../../kernel/sql/Database.ts"
import * as Migrations from "../../kernel/sql/Migrations.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { database } from "../OpenDatabase.ts"
import { migrate } from "../Schema.ts"
import type { Kit } from "./Kit.ts"
import { described, jsonOption } from "./Kit.ts"

const migrateProgram = ({ host, load, quiet }: Kit, options: { readonly check: boolean; readonly json: boolean }) =>
  Effect.gen(function*() {
    const loaded = yield* load
    const failure = (error: { readonly message: string; readonly detail?: string }) =>
      new CommandFailed({ code: 1, message: error.detail ?? error.message })
    const program = Effect.gen(function*() {
      const { dialect } = yield* Database
      if (!options.check) return { applied: yield* migrate(host.process, dialect), pending: [] }
      const migrations = yield* Effect.mapError(Migrations.read(host.process.migrations, dialect), failure)
      const missing = yield* Effect.mapError(Migrations.pending(migrations), failure)
      return { applied: [], pending: missing.map(({ name }) => name) }
    })
    const result = yield* program.pipe(Effect.provide(database(loaded.config)), Effect.provide(quiet(loaded)))
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
export const migrateCommand = (kit: Kit) =>
  described(
    Command.make("migrate", {
      check: Options.boolean("check").pipe(Options.withDescription("Apply nothing; exit 3 when behind.")),
      json: jsonOption
    }, (options) => migrateProgram(kit, options)),
    "Apply pending schema migrations. Example: acme-svc migrate --check. Exit codes: 0, 1, 3 behind."
  )
