import * as Effect from "effect/Effect"
import type { AuditEvent, AuditRow } from "../domain/Audit.ts"
import { bounded, outcomeOf } from "../domain/Audit.ts"
import { emit } from "../domain/words/Log.ts"
import { count } from "../domain/words/Series.ts"
import { int, name, nullable, text } from "../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../engine/sql/Database.ts"
import { afterCommit, transaction } from "../engine/sql/Database.ts"
import { all, run } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { statement } from "../engine/sql/Statement.ts"
import { currentMillis } from "../engine/Time.ts"
import { remember } from "./Acknowledged.ts"

/** The parameters of {@link insertion}. */
export const auditParams = {
  now: int,
  event: text(),
  outcome: text(),
  actorKind: text(),
  actorId: nullable(text()),
  profile: nullable(name()),
  accountId: nullable(text()),
  orderId: nullable(text()),
  certSerial: nullable(name()),
  identifiers: text(),
  clientIp: nullable(text()),
  clientPtr: nullable(text()),
  userAgent: nullable(text()),
  requestId: nullable(text()),
  reason: nullable(text()),
  detail: text()
}

/**
 * Returns the statement that inserts a row of the trail. If `from` names a table, inserts the row once for each row of
 * that table.
 */
export const insertion = ({ typed }: Fragments, from = ""): string =>
  `INSERT INTO audit_log (created_at, event, outcome, actor_kind, actor_id, profile, account_id, order_id, cert_serial,
     identifiers, client_ip, client_ptr, user_agent, request_id, reason, detail)
   SELECT ${
    typed(":now", "bigint")
  }, :event, :outcome, :actorKind, :actorId, :profile, :accountId, :orderId, :certSerial,
     :identifiers, :clientIp, :clientPtr, :userAgent, :requestId, :reason, :detail${from === "" ? "" : ` FROM ${from}`}`

const insertStatement = statement({
  name: "audit_insert",
  params: auditParams,
  row: {},
  sql: (f) => insertion(f)
})

const sweepStatement = statement({
  name: "audit_sweep",
  params: { before: int, upto: int, limit: int },
  row: { id: int },
  sql: () =>
    `DELETE FROM audit_log WHERE id IN
       (SELECT id FROM audit_log WHERE created_at < :before AND id <= :upto LIMIT :limit) RETURNING id`
})

/** Which rows may be deleted: those that were written before an epoch second, up to an id. */
export interface Deletable {
  readonly before: number
  readonly upto: number
}

/**
 * Deletes up to `limit` rows. Returns how many rows were deleted, and the highest id among them, or 0. Nothing else
 * deletes rows of the trail.
 */
export const sweep = (deletable: Deletable, limit: number) =>
  Effect.map(all(sweepStatement, { ...deletable, limit }), (gone) => ({
    removed: gone.length,
    lastId: Math.max(0, ...gone.map(({ id }) => id))
  }))

/** Returns the parameters of {@link insertion} for a row, at a time in epoch milliseconds. */
export const valuesOf = (row: AuditRow, millis: number) => {
  const cut = bounded(row)
  return {
    now: Math.floor(millis / 1000),
    event: cut.event,
    outcome: outcomeOf(cut.event),
    actorKind: cut.actorKind,
    actorId: cut.actorId,
    profile: cut.profile,
    accountId: cut.accountId,
    orderId: cut.orderId,
    certSerial: cut.certSerial,
    identifiers: JSON.stringify(cut.identifiers ?? []),
    clientIp: cut.clientIp,
    clientPtr: cut.clientPtr,
    userAgent: cut.userAgent,
    requestId: cut.requestId,
    reason: cut.reason,
    detail: JSON.stringify(cut.token === undefined ? cut.detail : { ...cut.detail, token: cut.token })
  }
}

/** Counts and remembers a row that was inserted. */
export const told = (
  { accountId, certSerial, event, orderId, profile, reason }: AuditRow,
  millis: number
): Effect.Effect<void, never, Database> => {
  // Failed issuances are counted by the reason in their rows, so that the metrics and the trail use the same words.
  if (event === "certificate_issue_failed" && profile !== undefined && reason !== undefined) {
    return afterCommit(count("acme_svc_certificate_issue_failures_total", { profile, reason }))
  }
  return outcomeOf(event) === "success"
    ? remember({ change: event, at: Math.floor(millis / 1000), profile, accountId, orderId, certSerial })
    : Effect.void
}

/** Inserts the audit row of a change. Must run in the transaction of the change. */
export const insert = Effect.fnUntraced(function*<E extends AuditEvent>(row: AuditRow<E>) {
  const millis = yield* currentMillis
  yield* run(insertStatement, valuesOf(row, millis))
  yield* told(row, millis)
})

/** Makes a change and inserts its audit row. If nothing changed, inserts no row and returns `undefined`. */
export const changing = <A, E, R, R2>(
  change: Effect.Effect<A | undefined, E, R>,
  row: Effect.Effect<void, StorageFailed, R2>
): Effect.Effect<A | undefined, E | StorageFailed, R | R2 | Database> =>
  transaction(Effect.tap(change, (changed) => changed === undefined ? Effect.void : row))

/**
 * Records an event that changes nothing in the database, such as a refusal. A failure to write the row is only logged.
 */
export const record = <E extends AuditEvent>(row: AuditRow<E>): Effect.Effect<void, never, Database> =>
  Effect.catch(
    insert(row),
    ({ message }) =>
      emit("audit_write_failed", {
        audit_event: row.event,
        order_id: row.orderId,
        cert_serial: row.certSerial,
        error: message
      })
  )
