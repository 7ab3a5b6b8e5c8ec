import * as Effect from "effect/Effect"
import { Database } from "../engine/sql/Database.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { CommandFailed } from "./CommandFailed.ts"
import type { Host } from "./Host.ts"
import { database } from "./OpenDatabase.ts"

/**
 * Compares the standby of a configuration with the database, and returns how far behind the standby is, as a sentence.
 * Fails if the standby would not be used.
 */
export const compareStandby = (
  { database: settings }: Pick<Config, "database">
): Effect.Effect<string, CommandFailed | { readonly detail: string }, Host> =>
  Effect.gen(function*() {
    // The module is loaded only when it is needed, because only PostgreSQL has a standby.
    const { lagOf, position } = yield* Effect.promise(() => import("../engine/sql/PostgresStandby.ts"))
    const state = Effect.flatMap(Database, (driver) => Effect.mapError(position(driver), driver.describe))
    const primary = yield* Effect.provide(state, database({ database: settings }))
    const standby = database({ database: { ...settings, url: settings.read_url } }, {
      name: "database.read_url",
      reading: true
    })
    const at = yield* Effect.provide(state, standby)
    const lag = lagOf(primary, at, settings.read_max_lag_seconds)
    if (typeof lag !== "number") return yield* Effect.fail({ detail: lag.detail })
    return at.isStandby ? `opened; at most ${Math.ceil(lag)} s behind` : "opened; it is the server of database.url"
  })
