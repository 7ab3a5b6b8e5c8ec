import * as Effect from "effect/Effect"
import type { Roles } from "../domain/Role.ts"
import { rolesText } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import type { Database } from "../engine/sql/Database.ts"
import * as Migrations from "../engine/sql/Migrations.ts"
import * as rights from "../store/Rights.ts"
import { CommandFailed } from "./CommandFailed.ts"

/** The folder of the migrations. It has a subfolder for each kind of database. */
interface Files {
  readonly migrations: string
}

const failed = (error: { readonly message: string; readonly detail?: string }) =>
  new CommandFailed({ code: 1, message: error.detail ?? error.message })

/** Refuses an old schema: only a process with the worker role may migrate the schema. */
export const checkSchema = (
  files: Files,
  dialect: "sqlite" | "postgres"
): Effect.Effect<void, CommandFailed, Database> =>
  Effect.flatMap(Migrations.read(files.migrations, dialect), Migrations.check).pipe(
    Effect.mapError(failed)
  )

/** Migrates the schema. A process with the worker role does this at startup. */
export const migrate = (
  files: Files,
  dialect: "sqlite" | "postgres"
): Effect.Effect<ReadonlyArray<string>, CommandFailed, Database> =>
  Effect.flatMap(Migrations.read(files.migrations, dialect), (migrations) => Migrations.migrate(migrations)).pipe(
    Effect.mapError(failed)
  )

/**
 * Warns about rights that the user of the database lacks for these roles, such as the rights on a table that an upgrade
 * has added. This is only a warning, because the process can still do the work that needs fewer rights.
 */
export const tellMissingRights = (roles: Roles): Effect.Effect<void, CommandFailed, Database> =>
  rights.missing(roles).pipe(
    Effect.mapError(failed),
    Effect.flatMap((missing) =>
      missing.length === 0
        ? Effect.void
        : emit("db_rights_missing", { roles: rolesText(roles), rights: missing.join(", ") })
    )
  )
