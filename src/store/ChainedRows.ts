import * as Effect from "effect/Effect"
import type { HashedValues, Leaf } from "../domain/AuditChain.ts"
import { hashedColumns, hashOfRow } from "../domain/AuditChain.ts"
import type { Column } from "../engine/sql/Column.ts"
import { int, nullable, text } from "../engine/sql/Column.ts"
import { Database } from "../engine/sql/Database.ts"
import { all, first, run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/* The rows of the audit trail, as the chain reads them (docs/contribute/decisions/audit-chain.md). */

/**
 * A value as text, whatever its type. The service writes only texts. A value of another type, which somebody else has
 * written, must be found as a change and must not end the reading.
 */
const written: Column<string | undefined> = {
  encode: (value) => value ?? null,
  decode: (raw) => raw === null ? undefined : typeof raw === "string" ? raw : `\u0000${typeof raw}`
}

type Written = { readonly [C in keyof HashedValues]: Column<string | undefined> }

const columns = Object.fromEntries(hashedColumns.map((name) => [name, written])) as Written

const rowsStatement = statement({
  name: "chain_rows",
  params: { after: int, upto: int, limit: int },
  row: { id: int, ...columns },
  sql: () => {
    const values = hashedColumns.map((name) =>
      `${name === "created_at" ? "CAST(created_at AS TEXT)" : name} AS "${name}"`
    )
    return `SELECT id AS "id", ${values.join(", ")} FROM audit_log WHERE id > :after AND id <= :upto
      ORDER BY id LIMIT :limit`
  }
})

const newestStatement = statement({
  name: "chain_newest_row",
  params: {},
  row: { at: nullable(int) },
  sql: () => `SELECT max(created_at) AS "at" FROM audit_log`
})

const nextStatement = statement({
  name: "chain_next_row",
  params: { after: int },
  row: { createdAt: int },
  sql: () => `SELECT created_at AS "createdAt" FROM audit_log WHERE id > :after ORDER BY id LIMIT 1`
})

const spanStatement = statement({
  name: "chain_span",
  params: { after: int, upto: int },
  row: { rows: int, firstId: nullable(int), lastId: nullable(int) },
  sql: () =>
    `SELECT count(*) AS "rows", min(id) AS "firstId", max(id) AS "lastId" FROM audit_log
     WHERE id > :after AND id <= :upto`
})

const prunedStatement = statement({
  name: "chain_pruned_rows",
  params: { sinceTime: int, sinceId: int, limit: int },
  row: { id: int, createdAt: int, detail: nullable(text()) },
  sql: () =>
    `SELECT id AS "id", created_at AS "createdAt", detail AS "detail" FROM audit_log
     WHERE event = 'audit_pruned' AND (created_at, id) > (:sinceTime, :sinceId) ORDER BY created_at, id LIMIT :limit`
})

const writersStatement = statement({
  name: "chain_writers",
  params: {},
  row: { writer: text() },
  only: "postgres",
  sql: () =>
    `SELECT DISTINCT virtualtransaction AS "writer" FROM pg_locks
     WHERE locktype = 'relation' AND relation = to_regclass('audit_log') AND mode = 'RowExclusiveLock' AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
})

const pauseStatement = statement({
  name: "chain_pause",
  params: {},
  row: {},
  only: "postgres",
  sql: () => `SELECT pg_sleep(0.05)`
})

/** Waits for fifty milliseconds by the clock of the server, where the transactions are that a caller waits for. */
export const pause = run(pauseStatement, {})

/** Every id that a row can have. */
export const anyId = Number.MAX_SAFE_INTEGER

const safe = (value: number): number => Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)

/** Reads rows in the order of their ids, as leaves. The range begins after an id, and includes its end. */
export const leaves = (
  range: { readonly after: number; readonly upto: number; readonly limit: number }
) =>
  Effect.map(
    all(rowsStatement, range),
    (rows): ReadonlyArray<Leaf> =>
      rows.map(({ id, ...values }) => ({ id, createdAt: safe(Number(values.created_at)), hash: hashOfRow(values) }))
  )

/** The time of the newest row, or 0 if there are no rows. */
export const newestTime = Effect.map(first(newestStatement, {}), (row) => row?.at ?? 0)

/** Returns the time of the first row after an id, or `undefined` if there is none. */
export const timeAfter = (id: number) => Effect.map(first(nextStatement, { after: id }), (row) => row?.createdAt)

/** Rows that are counted, with their lowest and highest id. */
export interface Span {
  readonly rows: number
  readonly firstId: number | undefined
  readonly lastId: number | undefined
}

const none: Span = { rows: 0, firstId: undefined, lastId: undefined }

/** Counts the rows of a range of ids. The range begins after an id, and includes its end. */
export const span = (after: number, upto: number) =>
  Effect.map(first(spanStatement, { after, upto }), (row): Span => row ?? none)

/** Reads rows that record a deletion of old rows, in the order of their times. */
export const pruned = (since: { readonly sinceTime: number; readonly sinceId: number; readonly limit: number }) =>
  all(prunedStatement, since)

/**
 * Returns the open transactions that may have inserted rows. On SQLite there is only one writer, so rows become visible
 * in the order of their ids, and this returns none.
 */
export const writers = Database.use(({ dialect }) =>
  dialect === "sqlite"
    ? Effect.succeed([])
    : Effect.map(all(writersStatement, {}), (rows) => rows.map(({ writer }) => writer))
)
