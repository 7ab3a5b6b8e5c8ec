import * as Effect from "effect/Effect"
import type { AuditEvent } from "../domain/Audit.ts"
import { int, packedUuid, rows } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { afterCommit, Database } from "../engine/sql/Database.ts"
import { all } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"
import { currentSeconds } from "../engine/Time.ts"

/*
 * Remembers what this process has committed in the last few minutes. If the database has gone back to an older state,
 * some of these changes are missing from it (docs/contribute/decisions/lost-changes.md).
 */

/** A committed change: a new account, a new order, or a new row of the audit trail. */
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
/** How many of the changes that were already found are looked for again. */
const lookedForAgain = 16

/** The changes that this process made in one database, oldest first. */
class Changes {
  readonly #kept = new Map<Change, { isFound: boolean }>()

  add(change: Change): void {
    this.#kept.set(change, { isFound: false })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest)
  }

  /**
   * Drops old changes. Returns the changes that have not been found yet, and the latest of the changes that have been
   * found.
   */
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

/** Remembers a change once it is committed. Outside a transaction, it is already committed. */
export const remember = Effect.fnUntraced(function*(change: Change) {
  const changes = changesOf(yield* Database)
  yield* afterCommit(Effect.sync(() => changes.add(change)))
})

const missing = { position: int }
const [position, time] = [0, 1]

// A subquery with LIMIT runs once for each element. For a join, PostgreSQL would read the whole table.
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

// Within one second, a busy service writes many rows for the same event, but few for the same order.
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

/** Returns the changes that are missing from the database although they were not deleted on purpose. */
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
 * Returns the changes of this process that are missing from the database, until they are forgotten ({@link forget}).
 * Looks for the changes since the last call, and for the latest changes before that call. If any of these is missing,
 * looks for every change that this process remembers.
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

/** Forgets changes that have been reported as lost. */
export const forget = (lacked: ReadonlyArray<Change>): Effect.Effect<void, never, Database> =>
  Database.use((database) => Effect.sync(() => changesOf(database).forget(lacked)))
