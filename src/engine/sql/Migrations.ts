import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { sha256 } from "../../crypto/Digest.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, lifeMillis } from "../Time.ts"
import type { Dialect } from "./Column.ts"
import { int, text } from "./Column.ts"
import { Database, StorageFailed } from "./Database.ts"
import type { Connection, Driver } from "./Driver.ts"
import type { Patience, Telling } from "./LockWait.ts"
import { holderOf, Locked, noTransactionLimit, patience, sessionColumns, sessionNamed, untilFree } from "./LockWait.ts"
import { all } from "./Query.ts"
import type { SqlError } from "./SqlError.ts"
import { statement } from "./Statement.ts"

/** One file of `migrations/<dialect>`: `0001_name.sql`, its statements separated by an empty line. */
export interface Migration {
  readonly version: number
  readonly name: string
  /** The SHA-256 of the file, in hexadecimal. */
  readonly checksum: string
  readonly statements: ReadonlyArray<string>
}

/** This build cannot use the schema. `detail` is a sentence for the operator. */
export class SchemaUnusable extends Data.TaggedError("SchemaUnusable")<{
  readonly reason: "behind" | "changed" | "failed" | "locked" | "unreadable"
  readonly migration: string
  readonly detail: string
}> {}

const fileName = /^(\d{4})_([a-z0-9_]+)\.sql$/

const onlyComment = (chunk: string): boolean => chunk.split("\n").every((line) => line === "" || line.startsWith("--"))

/** Reads a folder of migrations, in order. */
export const read = (folder: string, dialect: Dialect): Effect.Effect<ReadonlyArray<Migration>, SchemaUnusable> =>
  Effect.try({
    try: () => {
      const directory = Path.join(folder, dialect)
      return Fs.readdirSync(directory).sort().flatMap((file) => {
        const parts = fileName.exec(file)
        if (parts === null) return []
        const content = Fs.readFileSync(Path.join(directory, file), "utf8")
        return [{
          version: Number(parts[1]),
          name: `${parts[1]}_${parts[2]}`,
          checksum: sha256(content),
          statements: content.split(/\n\n+/).map((chunk) => chunk.trim()).filter((chunk) => !onlyComment(chunk))
        }]
      })
    },
    catch: (cause) =>
      new SchemaUnusable({
        reason: "unreadable",
        migration: folder,
        detail: `The migrations cannot be read: ${cause instanceof Error ? cause.message : String(cause)}.`
      })
  })

const applied = { version: int, name: text(), checksum: text() }

const tableExists = statement({
  name: "schema_table_exists",
  params: {},
  row: { count: int },
  // This reads the catalog itself, because to_regclass answers from a cache that may be older than the wait for the
  // lock.
  sql: ({ dialect }) =>
    dialect === "postgres"
      ? `SELECT CASE WHEN current_schema() IS NULL THEN -1 ELSE count(*) END AS "count" FROM pg_tables
         WHERE schemaname = ANY (current_schemas(FALSE)) AND tablename = 'schema_migrations'`
      : `SELECT count(*) AS "count" FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'`
})

const appliedStatement = statement({
  name: "schema_applied",
  params: {},
  row: applied,
  sql: () =>
    `SELECT version AS "version", name AS "name", checksum AS "checksum" FROM schema_migrations ORDER BY version`
})

const createTable: { readonly [D in Dialect]: string } = {
  sqlite: `CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL) STRICT`,
  postgres: `CREATE TABLE schema_migrations (version BIGINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL,
    checksum TEXT COLLATE "C" NOT NULL, applied_at BIGINT NOT NULL)`
}

const insertText: { readonly [D in Dialect]: string } = {
  sqlite: "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
  postgres: "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)"
}

// The whole service uses one number, so that processes that start together take turns.
const advisoryKey = 4_738_219_001

/** By default a process that waits for another one that migrates says so every ten seconds. */
const turnsBetweenWords = 10

const lockHolder = (connection: Connection): Effect.Effect<string> =>
  sessionNamed(
    connection.execute(
      `SELECT ${sessionColumns} FROM pg_locks JOIN pg_stat_activity USING (pid)
       WHERE granted AND locktype = 'advisory' AND datname = current_database() AND objsubid = 1
         AND (classid::bigint << 32) + objid::bigint = ${advisoryKey} LIMIT 1`,
      []
    )
  )

// For connections whose session lasts only for one transaction: each migration takes the lock in its own transaction.
const lockTransaction =
  `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(${advisoryKey})`

const behind = (pending: ReadonlyArray<Migration>) =>
  new SchemaUnusable({
    reason: "behind",
    migration: pending[0]?.name ?? "",
    detail: `The database lacks ${pending.length} migration(s), from ${
      pending[0]?.name ?? "?"
    }; a process with the worker role applies them when it starts, or run acme-svc migrate.`
  })

/** Returns the applied migrations in order. This build might not know all of them. */
const appliedRows = Effect.gen(function*() {
  const [{ count } = { count: 0 }] = yield* all(tableExists, {})
  if (count < 0) {
    return yield* new StorageFailed({
      statement: tableExists.name,
      detail:
        "this user may use no schema of the database (GRANT USAGE ON SCHEMA public): run docs/recipes/postgres-roles.sql again as the owner of the tables",
      transient: false
    })
  }
  return count === 0 ? [] : yield* all(appliedStatement, {})
})

/**
 * Returns the names of the applied migrations in order. A newer build may have added migrations that this build does
 * not know (docs/contribute/decisions/compatibility.md, "Neighbours").
 */
export const appliedNames: Effect.Effect<ReadonlyArray<string>, StorageFailed, Database> = Effect.map(
  appliedRows,
  (rows) => rows.map(({ name }) => name)
)

/** Returns the migrations that are not yet applied. Fails if an applied migration differs from its file. */
export const pending = (
  migrations: ReadonlyArray<Migration>
): Effect.Effect<ReadonlyArray<Migration>, SchemaUnusable | StorageFailed, Database> =>
  Effect.gen(function*() {
    const done = new Map((yield* appliedRows).map((row) => [row.version, row]))
    for (const migration of migrations) {
      const row = done.get(migration.version)
      if (row !== undefined && row.checksum !== migration.checksum) {
        return yield* new SchemaUnusable({
          reason: "changed",
          migration: migration.name,
          detail: `Migration ${migration.name} was applied with other contents than this build has; history is frozen.`
        })
      }
    }
    return migrations.filter(({ version }) => !done.has(version))
  })

/** Fails unless all migrations are applied (`server_schema_behind`). */
export const check = (
  migrations: ReadonlyArray<Migration>
): Effect.Effect<void, SchemaUnusable | StorageFailed, Database> =>
  Effect.flatMap(pending(migrations), (missing) =>
    missing.length === 0
      ? Effect.void
      : Effect.andThen(emit("server_schema_behind", { name: missing[0]?.name }), Effect.fail(behind(missing))))

const appliedVersions = (connection: Connection, dialect: Dialect) =>
  Effect.gen(function*() {
    const count = tableExists.compiled[dialect].text
    const [table] = yield* connection.execute(count, [])
    if (Number(table?.count) === 0) return undefined
    const versions = appliedStatement.compiled[dialect].text
    const rows = yield* connection.execute(versions, [])
    return rows.map(({ version }) => Number(version))
  })

/** Applies one migration in one transaction. Returns `false` if another process has already applied it. */
const applyOne = (
  driver: Driver,
  connection: Connection,
  migration: Migration,
  { lockMillis, stepped }: { readonly lockMillis: number; readonly stepped: Effect.Effect<void> }
) => {
  let running = ""
  return Effect.gen(function*() {
    const begun = yield* currentMillis
    if (!driver.keepsSession) yield* connection.executeRaw(lockTransaction, [])
    if (driver.dialect === "postgres") {
      yield* connection.executeRaw(`SET LOCAL lock_timeout = ${lockMillis}; ${noTransactionLimit}`, [])
    }
    const done = yield* appliedVersions(connection, driver.dialect)
    if (done?.includes(migration.version) === true) return false
    if (done === undefined) yield* connection.executeRaw(createTable[driver.dialect], [])
    for (const text of migration.statements) {
      running = text
      yield* Effect.andThen(connection.executeRaw(text, []), stepped)
    }
    const now = yield* currentMillis
    yield* connection.executeRaw(insertText[driver.dialect], [
      migration.version,
      migration.name,
      migration.checksum,
      Math.floor(now / 1000)
    ])
    yield* emit("db_migration_applied", { name: migration.name, elapsed_ms: now - begun })
    return true
  }).pipe(
    (body) => Effect.andThen(driver.begin(connection), Effect.tap(body, driver.commit(connection))),
    Effect.tapError(() => Effect.ignore(connection.executeRaw("ROLLBACK", []))),
    Effect.catch((error: SqlError): Effect.Effect<never, Locked | SqlError> => {
      const { cause, transient } = driver.describe(error)
      return driver.dialect === "postgres" && (cause === "locked" || transient)
        ? Effect.flatMap(
          holderOf(connection, running),
          (holder) => Effect.fail(new Locked({ what: migration.name, holder, waited_ms: 0 }))
        )
        : Effect.fail(error)
    })
  )
}

/** Waits for the lock of {@link migrate}, however long another process has it, and says for whom it waits. */
const takeLock = (
  driver: Driver,
  connection: Connection,
  name: string,
  { lockMillis, waiting }: Telling & Pick<Patience, "lockMillis">
): Effect.Effect<void, SqlError> =>
  Effect.gen(function*() {
    const begun = yield* lifeMillis
    const taken = connection.executeRaw(`SELECT pg_advisory_lock(${advisoryKey})`, [])
    const told = Effect.gen(function*() {
      const holder = `${yield* lockHolder(connection)}, which migrates too`
      const waited_ms = Math.round((yield* lifeMillis) - begun)
      yield* emit("db_migration_waiting", { name, holder, waited_ms })
      yield* waiting?.(`Migration ${name} waits for ${holder}.`) ?? Effect.void
    })
    const again: Effect.Effect<void, SqlError> = Effect.matchEffect(taken, {
      onFailure: (error) =>
        driver.describe(error).cause === "locked" ? Effect.andThen(told, again) : Effect.fail(error),
      onSuccess: () => Effect.void
    })
    yield* connection.executeRaw(`SET statement_timeout = 0; SET lock_timeout = ${lockMillis * turnsBetweenWords}`, [])
    yield* again
    yield* connection.executeRaw("SET lock_timeout = 0", [])
  })

const locked = <A, E>(
  driver: Driver,
  connection: Connection,
  name: string,
  telling: Telling & Pick<Patience, "lockMillis">,
  body: Effect.Effect<A, E>
): Effect.Effect<A, E | SqlError> =>
  driver.dialect === "sqlite" || !driver.keepsSession
    ? body // BEGIN IMMEDIATE is the lock, or each transaction takes the lock itself
    : Effect.acquireUseRelease(
      takeLock(driver, connection, name, telling),
      () => body,
      () =>
        Effect.ignore(
          connection.executeRaw(
            `SELECT pg_advisory_unlock(${advisoryKey}); RESET statement_timeout; RESET lock_timeout`,
            []
          )
        )
    )

/**
 * Applies the pending migrations, each in one transaction, under a lock that other processes wait for. Under the lock,
 * the list of applied migrations is read again. Returns the names of the migrations that were applied here.
 *
 * On PostgreSQL a statement waits only briefly for a lock on a table, because every other statement on that table waits
 * behind it. If a long read holds such a lock, for example a backup, the migration is rolled back and tried again after
 * a pause.
 */
export const migrate = (
  migrations: ReadonlyArray<Migration>,
  { lockMillis = patience.lockMillis, stepped, ...telling }: Telling & {
    /** Runs after each statement, with the number of statements that have been run. */
    readonly stepped?: (done: number) => Effect.Effect<void>
  } = {}
): Effect.Effect<ReadonlyArray<string>, SchemaUnusable | StorageFailed, Database> =>
  Effect.gen(function*() {
    const driver = yield* Database
    const failure = (name: string) => (error: SqlError) => {
      const { detail } = driver.describe(error)
      return Effect.andThen(
        emit("db_migration_failed", { name, error: detail }),
        Effect.fail(new SchemaUnusable({ reason: "failed", migration: name, detail: `Migration ${name}: ${detail}.` }))
      )
    }
    const names: Array<string> = []
    let done = 0
    /** Applies the pending migrations, until one waits in vain. */
    const attempt = Effect.flatMap(pending(migrations), (missing) =>
      missing.length === 0 ? Effect.void : driver.exclusive((connection) =>
        locked(
          driver,
          connection,
          missing[0]?.name ?? "",
          { ...telling, lockMillis },
          Effect.forEach(missing, (migration) => {
            const before = done
            const step = Effect.suspend(() =>
              stepped?.(++done) ?? Effect.void
            )
            return applyOne(driver, connection, migration, { lockMillis, stepped: step }).pipe(
              Effect.tapError(() => Effect.sync(() => done = before)),
              Effect.catchTag("SqlError", failure(migration.name)),
              Effect.map((applied) => applied ? names.push(migration.name) : undefined)
            )
          }, { discard: true })
        )
      )).pipe(Effect.catchTag("SqlError", failure("(lock)")))
    yield* Effect.catchTag(
      untilFree(attempt, telling),
      "Locked",
      ({ holder, waited_ms, what: name }) => {
        const detail = `Migration ${name} was not applied, and nothing of it was changed: for ${
          Math.round(waited_ms / 1000)
        } s, ${holder} held a lock on what it changes. Run acme-svc migrate again when that has ended`
        return Effect.andThen(
          emit("db_migration_failed", { name, error: detail }),
          Effect.fail(new SchemaUnusable({ reason: "locked", migration: name, detail: `${detail}.` }))
        )
      }
    )
    return names
  })
