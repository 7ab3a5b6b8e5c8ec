import { Effect, Exit, Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, inject } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Driver } from "../../src/engine/sql/Driver.ts"
import { afterFile } from "./Cleanup.ts"
import { migrated, openDriver, sql } from "./Graph.ts"
import { createPostgresDatabase, dropPostgresDatabase } from "./Postgres.ts"

const askRun = async (service: "postgres" | "build"): Promise<string> => {
  const response = await fetch(`${inject("runServices")}/${service}`, { method: "POST" })
  const text = await response.text()
  if (!response.ok) throw new Error(`the test run could not provide ${service}: ${text}`)
  return text
}

/**
 * Returns the URL of a PostgreSQL database that nothing else uses, and that is dropped when the test file has ended.
 */
export const freshPostgresUrl = async (): Promise<string> => {
  const adminUrl = await askRun("postgres")
  const url = await createPostgresDatabase(adminUrl)
  afterFile(() => dropPostgresDatabase(adminUrl, url))
  return url
}

/** Makes a temporary directory that is removed when the test file has ended. */
export const freshDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "acme-test-"))
  afterFile(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }))
  return directory
}

/** Returns the URL of a SQLite file that does not exist yet, in a temporary directory. */
const freshSqliteUrl = (): Promise<string> => Promise.resolve(`sqlite://${join(freshDirectory(), "acme.db")}`)

/** A database backend in the form that tests get. */
export interface Backend {
  readonly name: "SQLite" | "PostgreSQL"
  readonly dialect: "sqlite" | "postgres"
  readonly freshUrl: () => Promise<string>
}

/** SQLite, for tests that concern only SQLite. */
export const sqlite: Backend = { name: "SQLite", dialect: "sqlite", freshUrl: freshSqliteUrl }

/** PostgreSQL, for tests that concern only PostgreSQL. */
export const postgres: Backend = { name: "PostgreSQL", dialect: "postgres", freshUrl: freshPostgresUrl }

/** Both backends, in every run, for tests that involve both at once. */
export const bothDatabases: ReadonlyArray<Backend> = [sqlite, postgres]

/** Whether the run tests a PostgreSQL other than the one of the packages (`npm run postgres`). */
const isOfPostgres = process.env["ACME_TEST_POSTGRES_BIN"] !== undefined

/**
 * The backends on which tests run, for `describe.each(databases)("… on $name", ({ freshUrl }) => …)`. Tests of
 * statements, and all tests of the gate, run on both, and other tests on SQLite. `npm run postgres` runs tests only on
 * PostgreSQL. Programs that import this module outside a test run also use SQLite.
 */
export const databases: ReadonlyArray<Backend> = process.env["VITEST"] === undefined
  ? [sqlite]
  : isOfPostgres
  ? [postgres]
  : inject("everyDatabase")
  ? bothDatabases
  : [sqlite]

/** Waits until `dist/main.js` has been built from the tree, which happens once in a test run. */
export const builtServer = async (): Promise<void> => {
  await askRun("build")
}

const tables = [
  "audit_log",
  "audit_chain",
  "audit_chain_checks",
  "audit_receivers",
  "renewal_hours",
  "jobs",
  "workers",
  "nonces",
  "accounts",
  "eab_keys",
  "revocations",
  "crls",
  "burnt_keys",
  "compromised_issuers",
  "alternate_chains",
  "campaigns",
  "orphaned_certificates",
  "http01_tokens",
  "admin_users",
  "login_attempts",
  "login_failures",
  "expiry_digests",
  "authority_notices",
  "reminded_addresses",
  "profile_states"
]

/**
 * Empties every table. `TRUNCATE` would make PostgreSQL rewrite every table and index, which takes a hundred times as
 * long as deleting the few rows of a test. On PostgreSQL all statements go in one message, and on SQLite they share
 * one commit, because they begin together.
 */
export const emptied = (dialect: "sqlite" | "postgres"): Effect.Effect<void, never, Database> => {
  const statements = tables.map((table) => `DELETE FROM ${table}`)
  return Effect.forEach(dialect === "postgres" ? [statements.join("; ")] : statements, (one) => sql(one), {
    concurrency: "unbounded",
    discard: true
  })
}

/** The functions that {@link useDatabase} gives to a describe block. */
export interface TestDatabase {
  readonly dialect: "sqlite" | "postgres"
  readonly url: () => string
  readonly driver: () => Driver
  /** Runs an effect on the block's database. */
  readonly use: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, Exclude<R, Database>>
  /** A second connection to the same database, like that of another process. */
  readonly another: Effect.Effect<Driver, never, Scope.Scope>
}

/** Provides one migrated database for a describe block. The database is emptied before every test. */
export const useDatabase = ({ dialect, freshUrl }: Backend): TestDatabase => {
  let url = ""
  let driver: Driver | undefined
  let close: Effect.Effect<void> = Effect.void
  const current = (): Driver => {
    if (driver === undefined) throw new Error("the database is open only while tests run")
    return driver
  }
  beforeAll(async () => {
    url = await freshUrl()
    const scope = await Effect.runPromise(Scope.make())
    close = Scope.close(scope, Exit.void)
    driver = await Effect.runPromise(Scope.provide(openDriver(url), scope))
    await Effect.runPromise(Effect.provideService(migrated, Database, driver))
  })
  beforeEach(async () => {
    await Effect.runPromise(Effect.provideService(emptied(dialect), Database, current()))
  })
  afterAll(() => Effect.runPromise(close))
  return {
    dialect,
    url: () => url,
    driver: current,
    use: (self) => Effect.suspend(() => Effect.provideService(self, Database, current())),
    another: Effect.suspend(() => openDriver(url))
  }
}
