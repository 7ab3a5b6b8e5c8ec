import Sqlite from "better-sqlite3"
import { Client } from "pg"
import type { Dialect } from "./Statements.ts"

/*
 * A database as years of service leave it, written by the engine itself: accounts, issued orders with their names,
 * authorizations and challenges, and revocations.
 */

/** How much of each. */
export interface Population {
  readonly accounts: number
  readonly orders: number
  readonly revocations: number
}

/**
 * The target of the bulk rows. Ids increase with time, as in version 7; every value is computed from a row's number.
 */
interface Engine {
  /** Runs statements as they are. */
  readonly run: (sql: string) => Promise<void>
  /** The first column of every row. */
  readonly column: (sql: string) => Promise<ReadonlyArray<string>>
  /** `INSERT INTO … SELECT … FROM` the numbers `i` from `from` to `to`, both inclusive. */
  readonly numbers: (from: number, to: number) => string
  readonly with: (from: number, to: number) => string
  /** A uuid of the table's own range. */
  readonly id: (table: number, number: string) => string
  /** Octets from hexadecimal digits. */
  readonly bytes: (hex: string) => string
  /** A number as so many hexadecimal digits. */
  readonly hex: (digits: number, number: string) => string
  readonly reverse: (text: string) => string
  readonly indexes: string
  readonly finish: ReadonlyArray<string>
  readonly close: () => Promise<void>
}

const sqlite = (file: string): Engine => {
  const database = new Sqlite(file)
  database.pragma("synchronous = off")
  database.pragma("cache_size = -2000000")
  database.pragma("foreign_keys = off")
  database.function("reversed", { deterministic: true }, (text) => [...String(text)].toReversed().join(""))
  return {
    run: async (sql) => void database.exec(sql),
    column: async (sql) => database.prepare(sql).pluck().all().map(String),
    with: (from, to) => `WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to})`,
    numbers: () => "n",
    id: (table, number) => `unhex(printf('%012x7000800%d%012x', 1500000000000 + ${number}, ${table}, ${number}))`,
    bytes: (hex) => `unhex(${hex})`,
    hex: (digits, number) => `printf('%0${digits}x', ${number})`,
    reverse: (text) => `reversed(${text})`,
    indexes: `SELECT name || '|' || sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`,
    finish: ["ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"],
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
    id: (table, number) =>
      `(lpad(to_hex(1500000000000 + ${number}), 12, '0') || '7000800${table}' || lpad(to_hex(${number}), 12, '0'))::uuid`,
    bytes: (hex) => `decode(${hex}, 'hex')`,
    hex: (digits, number) => `lpad(to_hex(${number}), ${digits}, '0')`,
    reverse: (text) => `reverse(${text})`,
    indexes: `SELECT i.indexname || '|' || i.indexdef AS value FROM pg_indexes i
      LEFT JOIN pg_constraint c ON c.conname = i.indexname WHERE i.schemaname = 'public' AND c.conname IS NULL`,
    finish: ["VACUUM ANALYZE"],
    close: () => client.end()
  }
}

const batch = 500_000
const firstSecond = 1_500_000_000

/** The statements for the rows `from` to `to` of each table. */
const inserts = (engine: Engine, { accounts, orders }: Population, until: number) => {
  const { bytes, hex, id, numbers, reverse } = engine
  // Orders are spread evenly from the first second to now.
  const step = (until - firstSecond) / orders
  const at = (number: string) => `CAST(${firstSecond} + ${number} * ${step} AS BIGINT)`
  const name = (number: string) => `'host-' || ${number} || '.example.org'`
  const identifier = (number: string) => `'{"type":"dns","value":"' || ${name(number)} || '"}'`
  const account = `(i % ${accounts})`
  const select = (columns: string, values: string, table: string) => (from: number, to: number) =>
    `INSERT INTO ${table} (${columns}) ${engine.with(from, to)} SELECT ${values} FROM ${numbers(from, to)}`
  return {
    accounts: select(
      "id, profile, pubkey, status, created_at, created_ip, last_seen_at, last_seen_ip",
      `${id(1, "i")}, 'default', ${bytes(`'3059301306072a8648ce3d020106082a8648ce3d030107034200' || ${hex(130, "i")}`)},
       'valid', ${firstSecond}, '192.0.2.1', ${until}, '192.0.2.1'`,
      "accounts"
    ),
    orders: select(
      `id, profile, account_id, status, identifiers, certificate, cert_serial, cert_pubkey, cert_not_after, created_at,
       created_ip`,
      `${id(2, "i")}, 'default', ${id(1, account)}, 'valid', '[' || ${identifier("i")} || ']', 'kept elsewhere',
       ${hex(32, "i + 99999999999")}, ${bytes(hex(182, "i"))}, ${at("i")} + 7776000, ${at("i")}, '192.0.2.1'`,
      "orders"
    ),
    order_identifiers: select(
      "order_id, profile, name, name_rev",
      `${id(2, "i")}, 'default', ${name("i")}, ${reverse(name("i"))}`,
      "order_identifiers"
    ),
    authorizations: select(
      "id, order_id, identifier, status, created_at",
      `${id(3, "i")}, ${id(2, "i")}, ${identifier("i")}, 'valid', ${at("i")}`,
      "authorizations"
    ),
    challenges: select(
      "id, authz_id, type, position, token, status, validated_at, created_at",
      `${id(4, "i")}, ${id(3, "i")}, 'http-01', 0, ${hex(43, "i")}, 'valid', ${at("i")}, ${at("i")}`,
      "challenges"
    )
  }
}

const open = (dialect: Dialect, where: string) =>
  dialect === "sqlite" ? Promise.resolve(sqlite(where)) : postgres(where)

/** Fills a migrated, empty database that no process serves. `where` is a file or a URL. */
export const populate = async (
  dialect: Dialect,
  where: string,
  population: Population,
  progress: (text: string) => void
): Promise<void> => {
  const engine = await open(dialect, where)
  const indexes = (await engine.column(engine.indexes)).map((one) => one.split("|") as [string, string])
  // An index created at the end is sorted once, which is faster than one that grows row by row.
  for (const [name] of indexes) await engine.run(`DROP INDEX ${name}`)
  const statements = inserts(engine, population, Math.floor(Date.now() / 1000))
  for (const [table, insert] of Object.entries(statements)) {
    const total = table === "accounts" ? population.accounts : population.orders
    for (let from = 0; from < total; from += batch) {
      progress(`${dialect}: ${table} ${Math.round(from / total * 100)} %`)
      await engine.run(insert(from, Math.min(from + batch, total) - 1))
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

/** Adds revocations to the one CA that a worker has seen; returns its id. */
export const revoke = async (dialect: Dialect, where: string, { revocations }: Population): Promise<string> => {
  const engine = await open(dialect, where)
  const [issuer] = await engine.column("SELECT issuer AS value FROM crls")
  if (issuer === undefined) throw new Error("no worker has met a CA")
  const now = Math.floor(Date.now() / 1000)
  await engine.run(
    `INSERT INTO revocations (issuer, serial, revoked_at, reason, not_after) ${engine.with(1, revocations)}
     SELECT '${issuer}', ${engine.hex(32, "i + 99999999999")}, ${now - 100_000}, 4, ${now + 7_776_000}
     FROM ${engine.numbers(1, revocations)}`
  )
  await engine.close()
  return issuer
}
