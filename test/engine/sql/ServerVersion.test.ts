import { it } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted } from "effect"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe } from "vitest"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import type { PostgresCluster } from "../../support/Postgres.ts"
import { startPostgres } from "../../support/Postgres.ts"

/* `npm run postgres -- 12` runs these tests on a server of version 12. */

let server: PostgresCluster
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** Runs a statement without the service. */
const ask = async (url: string, text: string): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Creates a database whose server claims to have this version. */
const databaseOf = (version: number): Effect.Effect<string> =>
  Effect.promise(async () => {
    const url = await server.createDatabase()
    await ask(
      url,
      `CREATE FUNCTION public.current_setting(name text) RETURNS text LANGUAGE sql AS $$
       SELECT CASE name WHEN 'server_version_num' THEN '${version}' ELSE pg_catalog.current_setting(name) END $$`
    )
    // Without this setting, PostgreSQL's own function would be found first.
    await ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = public, pg_catalog`)
    return url
  })

const opened = (url: string) =>
  Effect.scoped(
    Layer.build(Postgres.layer({ url: Redacted.make(url), pool_max: 1, acquire_timeout_ms: 30_000 }))
  )

describe("the version of a PostgreSQL server", () => {
  it.live("is refused at once with a clear message if it is older than 13", () =>
    Effect.gen(function*() {
      const { cause } = yield* Effect.flip(opened(yield* databaseOf(120_022)))
      assert.strictEqual(
        String(cause),
        "Error: the server is PostgreSQL 12, and the service needs 13 or newer (docs/operate/databases.md)"
      )
    }))

  it.live("is accepted from 13 on", () =>
    Effect.gen(function*() {
      yield* opened(yield* databaseOf(130_000))
    }))

  it.live("is the one that the server itself reports", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => server.createDatabase())
      const [row] = yield* Effect.promise(() => ask(url, "SHOW server_version_num"))
      const isNewEnough = Number(row?.["server_version_num"]) >= 130_000
      assert.strictEqual(Exit.isSuccess(yield* Effect.exit(opened(url))), isNewEnough)
    }))
})
