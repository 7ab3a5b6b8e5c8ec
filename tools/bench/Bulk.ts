import Sqlite from "better-sqlite3"
import { Client } from "pg"
import type { Dialect } from "./Statements.ts"

/* Adds millions of rows to a database. The engine itself computes every value from the number of the row. */

/** A database that gets millions of rows. Ids increase with time, as in version 7 of UUIDs. */
export interface Engine {
  /** Runs the statements as they are. */
  readonly run: (sql: string) => Promise<void>
  /** Runs a query and returns the first column of every row. */
  readonly column: (sql: string) => Promise<ReadonlyArray<string>>
  /** An SQL source of rows for `FROM`, with the numbers `i` from `from` to `to`, both inclusive. */
  readonly numbers: (from: number, to: number) => string
  readonly with: (from: number, to: number) => string
  /** An expression for the UUID of a row. Each table has a separate range of UUIDs. */
  readonly id: (table: number, number: string) => string
  /** An expression for octets that are given as hexadecimal digits. */
  readonly bytes: (hex: string) => string
  /** An expression for a number in hexadecimal, with `digits` digits. */
  readonly hex: (digits: number, number: string) => string
  readonly reverse: (text: string) => string
  /** An expression for the id of a row as hyphenated text. */
  readonly idText: (table: number, number: string) => string
  /** An expression that turns octets in hexadecimal into base64url. */
  readonly base64url: (hex: string) => string
  readonly indexes: string
  readonly finish: ReadonlyArray<string>
  readonly close: () => Promise<void>
}

/** The time in the first id, in milliseconds since 1970. */
const firstId = 1_500_000_000_000

const pgId = (table: number, number: string): string =>
  `(lpad(to_hex(${firstId} + ${number}), 12, '0') || '7000800${table}' || lpad(to_hex(${number}), 12, '0'))::uuid`

const sqlite = (file: string): Engine => {
  const database = new Sqlite(file)
  database.pragma("synchronous = off")
  database.pragma("cache_size = -2000000")
  database.pragma("foreign_keys = off")
  database.function("reversed", { deterministic: true }, (text) => [...String(text)].toReversed().join(""))
  database.function(
    "base64url",
    { deterministic: true },
    (hex) => Buffer.from(String(hex), "hex").toString("base64url")
  )
  return {
    run: async (sql) => void database.exec(sql),
    column: async (sql) => database.prepare(sql).pluck().all().map(String),
    with: (from, to) => `WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to})`,
    numbers: () => "n",
    id: (table, number) => `unhex(printf('%012x7000800%d%012x', ${firstId} + ${number}, ${table}, ${number}))`,
    bytes: (hex) => `unhex(${hex})`,
    hex: (digits, number) => `printf('%0${digits}x', ${number})`,
    reverse: (text) => `reversed(${text})`,
    idText: (table, number) =>
      `printf('%08x-%04x-7000-800%d-%012x', (${firstId} + ${number}) >> 16, (${firstId} + ${number}) & 65535, ${table}, ${number})`,
    base64url: (hex) => `base64url(${hex})`,
    indexes: `SELECT name || '|' || sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`,
    // The bench must not run ANALYZE. The service never runs it either, so SQLite's planner has no statistics there.
    finish: ["PRAGMA wal_checkpoint(TRUNCATE)"],
    close: async () => void database.close()
  }
}

const postgres = async (url: string): Promise<Engine> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(
    "SET synchronous_commit = off; SET maintenance_work_mem = '1GB'; SET session_replication_role = replica"
  )
  return {
    run: async (sql) => void await client.query(sql),
    column: async (sql) => {
      const { rows } = await client.query<{ readonly value: unknown }>(sql)
      return rows.map(({ value }) => String(value))
    },
    with: () => "",
    numbers: (from, to) => `generate_series(${from}::bigint, ${to}::bigint) AS n(i)`,
    id: pgId,
    bytes: (hex) => `decode(${hex}, 'hex')`,
    hex: (digits, number) => `lpad(to_hex(${number}), ${digits}, '0')`,
    reverse: (text) => `reverse(${text})`,
    idText: (table, number) => `${pgId(table, number)}::text`,
    base64url: (hex) => `translate(encode(decode(${hex}, 'hex'), 'base64'), '+/=', '-_')`,
    indexes: `SELECT i.indexname || '|' || i.indexdef AS value FROM pg_indexes i
      LEFT JOIN pg_constraint c ON c.conname = i.indexname WHERE i.schemaname = 'public' AND c.conname IS NULL`,
    finish: ["VACUUM ANALYZE"],
    close: () => client.end()
  }
}

/** Opens a database while no service uses it. `where` is a file or a URL. */
export const openEngine = (dialect: Dialect, where: string): Promise<Engine> =>
  dialect === "sqlite" ? Promise.resolve(sqlite(where)) : postgres(where)

/** Rows for a table, and the statement that inserts the rows with the numbers `from` to `to`, both inclusive. */
export interface Rows {
  readonly table: string
  readonly count: number
  readonly insert: (from: number, to: number) => string
}

/** Describes `count` rows. In the expressions, `i` is the number of the row. `where` may be a `WHERE` clause. */
export const rowsOf = (engine: Engine) =>
(
  table: string,
  count: number,
  values: { readonly [column: string]: string },
  where = ""
): Rows => ({
  table,
  count,
  insert: (from, to) =>
    `INSERT INTO ${table} (${Object.keys(values).join(", ")}) ${engine.with(from, to)}
       SELECT ${Object.values(values).join(", ")} FROM ${engine.numbers(from, to)} ${where}`
})

const batch = 500_000

/** Fills a migrated database while no service uses it. */
export const fill = async (
  dialect: Dialect,
  where: string,
  tables: (engine: Engine) => ReadonlyArray<Rows>,
  progress: (text: string) => void
): Promise<void> => {
  const engine = await openEngine(dialect, where)
  const indexes = (await engine.column(engine.indexes)).map((one) => one.split("|") as [string, string])
  // Creating the indexes at the end, when each is sorted only once, is faster than extending them with every row.
  for (const [name] of indexes) await engine.run(`DROP INDEX ${name}`)
  for (const { count, insert, table } of tables(engine)) {
    for (let from = 0; from < count; from += batch) {
      progress(`${dialect}: ${table} ${Math.round(from / count * 100)} %`)
      await engine.run(insert(from, Math.min(from + batch, count) - 1))
    }
  }
  for (const [name, sql] of indexes) {
    progress(`${dialect}: index ${name}`)
    await engine.run(sql)
  }
  for (const sql of engine.finish) {
    progress(`${dialect}: ${sql.toLowerCase()}`)
    await engine.run(sql)
  }
  await engine.close()
}
