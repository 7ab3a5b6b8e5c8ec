import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { runningSha256 } from "../../crypto/Digest.ts"
import type { Driver } from "../../engine/sql/Driver.ts"
import { pages } from "../../engine/sql/Pages.ts"
import type { Canonical, Table } from "./CopiedTable.ts"
import { decodeRow, encodeRow, insertText, keyOf, pageText } from "./CopiedTable.ts"
import type { Failure, Side } from "./Sides.ts"
import { alone, beginReading, beginWriting, keepAway, query, TransferRefused, within } from "./Sides.ts"
import { tables } from "./Tables.ts"

/** One table of a copy. */
export interface Copied {
  readonly table: string
  readonly rows: number
  /**
   * The SHA-256 of the rows, in hexadecimal. The rows are in the order of their key, and each row is the JSON array of
   * its values and a newline.
   */
  readonly sha256: string
}

/** The number of rows of a table. */
export type Counted = Pick<Copied, "table" | "rows">

const pageSize = 1000
const mostParameters = 500

const fileOf = (side: Side) =>
  Effect.map(
    query(side, "database file", "SELECT file AS file FROM pragma_database_list WHERE name = 'main'"),
    ([row]) => String(row?.file ?? "")
  )

/**
 * Returns whether both sides are the same database, even if they have different names: either both are the same file,
 * or a lock of one side blocks the other side.
 */
const isSame = Effect.fnUntraced(function*(from: Side, to: Side) {
  if (from.driver.dialect !== to.driver.dialect) return false
  if (from.driver.dialect === "sqlite") {
    const file = yield* fileOf(from)
    return file !== "" && file === (yield* fileOf(to))
  }
  const number = yield* Random.nextIntBetween(1, 2 ** 31 - 1)
  const lock = `SELECT pg_try_advisory_xact_lock(hashtext(current_schema()), ${number})::text AS taken`
  yield* query(from, "own lock", lock)
  const [row] = yield* query(to, "own lock", lock)
  return row?.taken !== "true"
})

const refuseUnfit = Effect.fnUntraced(function*(from: Side, to: Side) {
  if (yield* isSame(from, to)) {
    return yield* new TransferRefused({ reason: "same", detail: "The target is the configured database itself." })
  }
  const occupied = yield* Effect.filter(
    tables,
    ({ name }) =>
      Effect.map(query(to, `any ${name}`, `SELECT 1 AS one FROM ${name} LIMIT 1`), ([row]) => row !== undefined)
  )
  if (occupied.length === 0) return
  const names = occupied.map(({ name }) => name).join(", ")
  return yield* new TransferRefused({
    reason: "occupied",
    detail: `The target is not empty: there are rows in ${names}.`
  })
})

/**
 * Runs `body` with an open transaction on each side. `body` sees a snapshot of the source. Fails if the databases are
 * not suitable.
 */
const both = <A>(
  source: Driver,
  target: Driver,
  body: (from: Side, to: Side) => Effect.Effect<A, Failure>
): Effect.Effect<A, Failure> =>
  within(
    source,
    beginReading(source),
    (from) =>
      within(
        target,
        beginWriting(target),
        (to) => Effect.andThen(Effect.andThen(refuseUnfit(from, to), keepAway(from)), body(from, to))
      ),
    alone
  )

/** Counts what would be copied. Fails if {@link copy} would refuse to begin. */
export const plan = (source: Driver, target: Driver): Effect.Effect<ReadonlyArray<Counted>, Failure> =>
  both(
    source,
    target,
    (from) =>
      Effect.forEach(tables, ({ name }) =>
        Effect.map(query(from, `count ${name}`, `SELECT count(*) AS count FROM ${name}`), ([row]) => ({
          table: name,
          rows: Number(row?.count)
        })))
  )

const unusable = (cause: unknown) =>
  new TransferRefused({
    reason: "value",
    detail: `A value cannot be copied: ${cause instanceof Error ? cause.message : String(cause)}.`
  })

/** Passes every page of a table to `use`, in the order of the key. Returns the number and the digest of the rows. */
const readAll = Effect.fnUntraced(function*(
  side: Side,
  table: Table,
  use: (page: ReadonlyArray<ReadonlyArray<Canonical>>, rows: number) => Effect.Effect<void, Failure>
) {
  const { dialect } = side.driver
  const digest = runningSha256()
  let rows = 0
  const read = Effect.fnUntraced(function*(after: ReadonlyArray<Canonical> | undefined) {
    const key = after === undefined ? [] : keyOf(table, after, dialect)
    const raw = yield* query(side, `read ${table.name}`, pageText(table, dialect, pageSize, after === undefined), key)
    return yield* Effect.try({ try: () => raw.map((row) => decodeRow(table, row, dialect)), catch: unusable })
  })
  yield* Stream.runForEach(
    pages<ReadonlyArray<Canonical>, ReadonlyArray<Canonical> | undefined, Failure, never>({
      from: undefined,
      size: pageSize,
      read,
      keyOf: (row) => row
    }),
    (page) => {
      for (const row of page) digest.add(`${JSON.stringify(row)}\n`)
      rows += page.length
      return use(page, rows)
    }
  )
  const copied: Copied = { table: table.name, rows, sha256: digest.end() }
  return copied
})

const insertPage = Effect.fnUntraced(function*(
  side: Side,
  table: Table,
  page: ReadonlyArray<ReadonlyArray<Canonical>>
) {
  const { dialect } = side.driver
  const atOnce = Math.floor(mostParameters / table.columns.length)
  for (let at = 0; at < page.length; at += atOnce) {
    const part = page.slice(at, at + atOnce)
    const params = yield* Effect.try({
      try: () => part.flatMap((row) => encodeRow(table, row, dialect)),
      catch: unusable
    })
    yield* query(side, `write ${table.name}`, insertText(table, dialect, part.length), params)
  }
})

const sequence = ({ key, name }: Table): string => `pg_get_serial_sequence('${name}', '${key[0]}')::regclass`

/** Returns the last number that the engine has assigned. It may be higher than the number of the last row. */
const lastNumber = (side: Side, table: Table) =>
  Effect.map(
    query(
      side,
      `number of ${table.name}`,
      side.driver.dialect === "sqlite"
        ? `SELECT CAST(seq AS TEXT) AS at FROM sqlite_sequence WHERE name = '${table.name}'`
        : `SELECT pg_sequence_last_value(${sequence(table)})::text AS at`
    ),
    ([row]) => typeof row?.at === "string" ? BigInt(row.at) : undefined
  )

/** Continues the numbering of the source, so that no number in the audit trail is ever assigned twice. */
const goOnNumbering = Effect.fnUntraced(function*(from: Side, to: Side, table: Table) {
  const given = yield* lastNumber(from, table)
  const name = `number of ${table.name}`
  const [row] = yield* query(to, name, `SELECT CAST(max(${table.key[0]}) AS TEXT) AS at FROM ${table.name}`)
  const largest = typeof row?.at === "string" ? BigInt(row.at) : undefined
  const number = largest === undefined || (given !== undefined && given > largest) ? given : largest
  if (number === undefined) return
  if (to.driver.dialect === "postgres") yield* query(to, name, `SELECT setval(${sequence(table)}, ${number})`)
  else {
    yield* query(to, name, `DELETE FROM sqlite_sequence WHERE name = '${table.name}'`)
    yield* query(to, name, `INSERT INTO sqlite_sequence (name, seq) VALUES ('${table.name}', ${number})`)
  }
})

/** Reads the table of the target, and checks that it contains exactly the rows that were read from the source. */
const verify = Effect.fnUntraced(function*(to: Side, table: Table, read: Copied) {
  const written = yield* readAll(to, table, () => Effect.void)
  if (written.rows === read.rows && written.sha256 === read.sha256) return
  return yield* new TransferRefused({
    reason: "differs",
    detail: `The copy of ${table.name} is not what was read (${written.rows} of ${read.rows} row(s)); nothing was kept.`
  })
})

/**
 * Copies every row of every table to an empty database with the same schema. Then reads the copy, and compares its
 * count and digest with those of the source. All of this is one transaction of the target: if it ends early, the target
 * stays empty. Only one page of rows is in memory at a time. `progress` is called with a table after each page.
 */
export const copy = (
  source: Driver,
  target: Driver,
  progress: (so: Counted) => Effect.Effect<void>
): Effect.Effect<ReadonlyArray<Copied>, Failure> =>
  both(source, target, (from, to) =>
    Effect.forEach(tables, (table) =>
      Effect.gen(function*() {
        const read = yield* readAll(
          from,
          table,
          (page, rows) => Effect.andThen(insertPage(to, table, page), progress({ table: table.name, rows }))
        )
        yield* verify(to, table, read)
        if (table.isNumbered) yield* goOnNumbering(from, to, table)
        return read
      })))
