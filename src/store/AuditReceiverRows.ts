import * as Effect from "effect/Effect"
import type { ReceiverName } from "../domain/ReceiverName.ts"
import { int, nullable, text } from "../engine/sql/Column.ts"
import { all, first, partitioned, run } from "../engine/sql/Query.ts"
import { select, statement } from "../engine/sql/Statement.ts"
import { auditRecord } from "./AuditSearch.ts"

/* How far each receiver of the audit trail is, and the rows that it gets (docs/contribute/decisions/audit-push.md). */

const receiver = {
  name: text<ReceiverName>(),
  pushedId: int,
  repeatFrom: int,
  pushedAt: nullable(int),
  failures: int,
  failingSince: nullable(int),
  error: nullable(text()),
  lostUpto: nullable(int)
}

const allStatement = statement({
  name: "audit_receivers",
  params: {},
  row: receiver,
  sql: () => `SELECT ${select(receiver)} FROM audit_receivers ORDER BY name`
})

const findStatement = statement({
  name: "audit_receiver",
  params: { name: text<ReceiverName>() },
  row: receiver,
  sql: () => `SELECT ${select(receiver)} FROM audit_receivers WHERE name = :name`
})

const beginStatement = statement({
  name: "audit_receiver_begin",
  params: { name: text<ReceiverName>() },
  row: {},
  sql: () =>
    `INSERT INTO audit_receivers (name, pushed_id, repeat_from) VALUES (:name, 0, 0) ON CONFLICT (name) DO NOTHING`
})

const movedStatement = statement({
  name: "audit_receiver_moved",
  params: { name: text<ReceiverName>(), from: int, to: int, repeatFrom: int, now: int },
  row: { name: text() },
  sql: () =>
    `UPDATE audit_receivers SET pushed_id = :to, repeat_from = :repeatFrom, pushed_at = :now, failures = 0,
       failing_since = NULL, error = NULL
     WHERE name = :name AND pushed_id = :from RETURNING name AS "name"`
})

const failedStatement = statement({
  name: "audit_receiver_failed",
  params: { name: text<ReceiverName>(), from: int, to: int, now: int, error: text() },
  row: { failures: int },
  sql: ({ typed }) =>
    `UPDATE audit_receivers SET pushed_id = :to, failures = failures + 1,
       failing_since = COALESCE(failing_since, ${typed(":now", "bigint")}), error = :error
     WHERE name = :name AND pushed_id = :from RETURNING failures AS "failures"`
})

const loseStatement = statement({
  name: "audit_receiver_lose",
  params: { upto: int },
  row: {},
  sql: () =>
    `UPDATE audit_receivers SET lost_upto = :upto WHERE pushed_id < :upto AND (lost_upto IS NULL OR lost_upto < :upto)`
})

const toldStatement = statement({
  name: "audit_receiver_told",
  params: { name: text<ReceiverName>(), upto: int },
  row: {},
  sql: () => `UPDATE audit_receivers SET lost_upto = NULL WHERE name = :name AND lost_upto = :upto`
})

const rowsStatement = statement({
  name: "audit_pushed_rows",
  params: { after: int, upto: int, limit: int },
  row: auditRecord,
  sql: () => `SELECT ${select(auditRecord)} FROM audit_log WHERE id > :after AND id <= :upto ORDER BY id LIMIT :limit`
})

/**
 * How far a receiver is. It has taken every row up to `pushedId`. After a broken connection, the rows after `repeatFrom`
 * are sent once more. `lostUpto` is set if the retention has deleted rows up to this id that the receiver never got.
 * Times are epoch seconds.
 */
export type ReceiverRow = NonNullable<Effect.Success<ReturnType<typeof find>>>

/** Reads how far every receiver is that was ever configured. */
export const list = all(allStatement, {})

/** Reads how far a receiver is. Returns `undefined` if it was never pushed to. */
export const find = (name: ReceiverName) => first(findStatement, { name })

/** Begins a receiver before the oldest row, unless it has begun before. */
export const begin = (name: ReceiverName) => run(beginStatement, { name })

/** The step of a receiver: it is moved only if it is still at `from`. */
interface Step {
  readonly name: ReceiverName
  readonly from: number
  readonly to: number
  readonly now: number
}

/** Records that a receiver has taken the rows up to `to`. Returns `false` if another process has moved it. */
export const moved = (step: Step & { readonly repeatFrom: number }) =>
  Effect.map(first(movedStatement, step), (row) => row !== undefined)

/**
 * Records a failed attempt. `to` is where the next attempt begins. Returns how many attempts have failed in sequence, or
 * `undefined` if another process has moved the receiver.
 */
export const failed = (step: Step & { readonly error: string }) =>
  Effect.map(first(failedStatement, step), (row) => row?.failures)

/**
 * Records that rows up to an id were deleted, at every receiver that has not taken them. Must run in the transaction of
 * the deletion.
 */
export const lose = (upto: number) => run(loseStatement, { upto })

/** Forgets lost rows, after they were told. */
export const told = (name: ReceiverName, upto: number) => run(toldStatement, { name, upto })

/**
 * Reads rows of the trail in the order of their ids. The range begins after an id, and includes its end. A value that
 * cannot be read is replaced by a substitute, and that is logged, so that no row is left out.
 */
export const rows = (range: { readonly after: number; readonly upto: number; readonly limit: number }) =>
  Effect.map(partitioned(rowsStatement, range), ({ readable, unreadable }) =>
    unreadable.length === 0
      ? readable
      : [...readable, ...unreadable.map(([row]) => row)].toSorted((one, other) => one.id - other.id))
