import * as Effect from "effect/Effect"
import type { AuditEvent } from "../domain/Audit.ts"
import { int, packedUuid, rows } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { afterCommit, Database } from "../engine/sql/Database.ts"
import { all } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"
import { currentSeconds } from "../engine/Time.ts"

/*
 * What this process has committed in the last minutes. If the database went back to an older state, a part of this is
 * missing there (docs/decisions/lost-changes.md).
 */

/** A change that was committed: an account or an order was made, or the trail got a row. */
export interface Change {
  readonly change: AuditEvent | "account_created" | "order_created"
  /** The second in which the row was written. */
  readonly at: number
  readonly profile?: string | undefined
  readonly accountId?: string | undefined
  readonly orderId?: string | undefined
  readonly certSerial?: string | undefined
}

const keptSeconds = 900
const mostKept = 4096
/** The number of changes that are looked for again although they were found before. */
const lookedForAgain = 16

/** The changes of a process at one database, the oldest first. */
class Changes {
  readonly #kept = new Map<Change, { isFound: boolean }>()

  add(change: Change): void {
    this.#kept.set(change, { isFound: false })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest)
  }

  /** Drops what is old. Returns the changes that were not looked for yet, and the last ones that were found. */
  due(now: number): ReadonlyArray<Change> {
    for (const change of this.#kept.keys()) {
      if (change.at < now - keptSeconds) this.#kept.delete(change)
    }
    const found: Array<Change> = []
    const others: Array<Change> = []
    for (const [change, { isFound }] of this.#kept) (isFound ? found : others).push(change)
    return [...found.slice(-lookedForAgain), ...others]
  }

  all(): ReadonlyArray<Change> {
    return [...this.#kept.keys()]
  }

  found(changes: ReadonlyArray<Change>): void {
    for (const change of changes) {
      const kept = this.#kept.get(change)
      if (kept !== undefined) kept.isFound = true
    }
  }

  forget(changes: ReadonlyArray<Change>): void {
    for (const change of changes) this.#kept.delete(change)
  }
}

const changesAt = new WeakMap<Database["Service"], Changes>()

const changesOf = (database: Database["Service"]): Changes => {
  let changes = changesAt.get(database)
  if (changes === undefined) changesAt.set(database, changes = new Changes())
  return changes
}

/** Remembers a change once it is committed. Outside of a transaction it is committed already. */
export const remember = Effect.fnUntraced(function*(change: Change) {
  const changes = changesOf(yield* Database)
  yield* afterCommit(Effect.sync(() => changes.add(change)))
})

const missing = { position: int }
const [position, time] = [0, 1]

// A subquery with LIMIT is asked for each element. PostgreSQL would read the whole table for a join.
const accountsStatement = statement({
  name: "acknowledged_accounts_missing",
  params: { asked: rows },
  row: missing,
  sql: ({ at, checked, each, indexedBy }) =>
    `SELECT ${at(position, "int")} AS "position" FROM ${each(":asked")}
     WHERE (SELECT 1 FROM accounts WHERE id = ${at(2, "uuid")} LIMIT 1) IS NULL
       AND (SELECT 1 FROM audit_log ${indexedBy("audit_log_account_id")} WHERE account_id = ${at(3, "text")} AND ${
      checked("event")
    } = 'account_deleted' LIMIT 1) IS NULL`
})

const ordersStatement = statement({
  name: "acknowledged_orders_missing",
  params: { asked: rows },
  row: missing,
  sql: ({ at, checked, each, indexedBy }) =>
    `SELECT ${at(position, "int")} AS "position" FROM ${each(":asked")}
     WHERE (SELECT 1 FROM orders WHERE id = ${at(2, "uuid")} LIMIT 1) IS NULL
       AND (SELECT 1 FROM audit_log WHERE order_id = ${at(3, "text")} AND ${
      checked("event")
    } = 'order_deleted' LIMIT 1) IS NULL
       AND (SELECT 1 FROM audit_log ${indexedBy("audit_log_account_id")} WHERE account_id = ${at(4, "text")} AND ${
      checked("event")
    } = 'account_deleted' LIMIT 1) IS NULL
       AND (SELECT 1 FROM audit_log WHERE event = 'orders_purged' AND created_at >= ${at(time, "int")} LIMIT 1) IS NULL`
})

const row = (at: (index: number, type: "text" | "int") => string, [event, second]: readonly [string, string]) =>
  `${event} = ${at(2, "text")} AND ${second} = ${at(time, "int")}
         AND coalesce(account_id, '') = ${at(3, "text")} AND coalesce(cert_serial, '') = ${at(5, "text")}`

const isPruned = (at: (index: number, type: "int") => string) =>
  `(SELECT 1 FROM audit_log WHERE event = 'audit_pruned' AND created_at >= ${at(time, "int")} LIMIT 1) IS NULL`

// In a second of a busy service, there are many rows of one event, and few of one order.
const orderRowsStatement = statement({
  name: "acknowledged_order_rows_missing",
  params: { asked: rows },
  row: missing,
  sql: ({ at, checked, each }) =>
    `SELECT ${at(position, "int")} AS "position" FROM ${each(":asked")}
     WHERE (SELECT 1 FROM audit_log WHERE order_id = ${at(4, "text")}
         AND ${row(at, [checked("event"), checked("created_at")])} LIMIT 1) IS NULL AND ${isPruned(at)}`
})

const rowsStatement = statement({
  name: "acknowledged_rows_missing",
  params: { asked: rows },
  row: missing,
  sql: ({ at, each }) =>
    `SELECT ${at(position, "int")} AS "position" FROM ${each(":asked")}
     WHERE (SELECT 1 FROM audit_log WHERE order_id IS NULL AND ${row(at, ["event", "created_at"])} LIMIT 1) IS NULL
       AND ${isPruned(at)}`
})

/** Returns those changes that the database lacks, although nobody has deleted them. */
const lackedOf = Effect.fnUntraced(function*(changes: ReadonlyArray<Change>) {
  const numbered = changes.map((change, at) => ({ change, at }))
  const of = (wanted: (change: Change["change"]) => boolean) => numbered.filter(({ change }) => wanted(change.change))
  const accounts = of((change) => change === "account_created")
  const orders = of((change) => change === "order_created")
  const others = of((change) => change !== "account_created" && change !== "order_created")
  const rowsOf = (isOfOrder: boolean) =>
    others.filter(({ change: { orderId } }) => (orderId !== undefined) === isOfOrder).map((
      { at, change: { accountId = "", at: second, certSerial = "", change, orderId = "" } }
    ) => [at, second, change, accountId, orderId, certSerial])
  const [ofOrders, ofNone] = [rowsOf(true), rowsOf(false)]
  const found = [
    accounts.length === 0 ? [] : yield* all(accountsStatement, {
      asked: accounts.map(({ at, change: { accountId = "", at: second } }) => [
        at,
        second,
        packedUuid(accountId),
        accountId
      ])
    }),
    orders.length === 0 ? [] : yield* all(ordersStatement, {
      asked: orders.map(({ at, change: { accountId = "", at: second, orderId = "" } }) => [
        at,
        second,
        packedUuid(orderId),
        orderId,
        accountId
      ])
    }),
    ofOrders.length === 0 ? [] : yield* all(orderRowsStatement, { asked: ofOrders }),
    ofNone.length === 0 ? [] : yield* all(rowsStatement, { asked: ofNone })
  ]
  const lacked = new Set(found.flat().map((one) => one.position))
  return changes.filter((_, at) => lacked.has(at))
})

/**
 * Returns the changes of this process that the database lacks, until they are forgotten ({@link forget}). It looks for the
 * changes since the last call, and for the last ones before: if one of them is missing, it looks for all that this process
 * remembers.
 */
export const lost: Effect.Effect<ReadonlyArray<Change>, StorageFailed, Database> = Effect.gen(function*() {
  const changes = changesOf(yield* Database)
  const due = changes.due(yield* currentSeconds)
  if (due.length === 0 || (yield* lackedOf(due)).length === 0) {
    changes.found(due)
    return []
  }
  const known = changes.all()
  const lacked = yield* lackedOf(known)
  const isLacked = new Set(lacked)
  changes.found(known.filter((change) => !isLacked.has(change)))
  return lacked
})

/** Forgets changes that are reported as lost. */
export const forget = (lacked: ReadonlyArray<Change>): Effect.Effect<void, never, Database> =>
  Database.use((database) => Effect.sync(() => changesOf(database).forget(lacked)))
