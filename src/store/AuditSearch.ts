import { Effect, Schema } from "effect"
import type { ActorKind, AuditEvent, AuditOutcome } from "../domain/Audit.ts"
import { int, json, nullable, text } from "../kernel/sql/Column.ts"
import { all, first } from "../kernel/sql/Database.ts"
import { perFilters } from "../kernel/sql/Filters.ts"
import { select, statement } from "../kernel/sql/Statement.ts"

/* Searches of the audit trail for operators. */

const record = {
  id: int,
  createdAt: int,
  event: text(),
  outcome: text<AuditOutcome>(),
  actorKind: text<ActorKind>(),
  actorId: nullable(text()),
  profile: nullable(text()),
  accountId: nullable(text()),
  orderId: nullable(text()),
  certSerial: nullable(text()),
  identifiers: json(Schema.Array(Schema.String)),
  clientIp: nullable(text()),
  clientPtr: nullable(text()),
  userAgent: nullable(text()),
  requestId: nullable(text()),
  reason: nullable(text()),
  detail: nullable(json(Schema.Record({ key: Schema.String, value: Schema.Unknown })))
}

/** A row of the trail. `event` may be one that another version has written. Times are epoch seconds. */
export type AuditRecord = NonNullable<Effect.Effect.Success<ReturnType<typeof find>>>

/** The filters of a listing; an absent filter excludes nothing. */
export interface AuditFilters {
  readonly profile?: string | undefined
  readonly accountId?: string | undefined
  readonly orderId?: string | undefined
  /** In the stored form of serial numbers. */
  readonly certSerial?: string | undefined
  readonly event?: AuditEvent | undefined
  readonly outcome?: AuditOutcome | undefined
  readonly actorKind?: ActorKind | undefined
  /** Epoch seconds, inclusive. */
  readonly since?: number | undefined
  /** Epoch seconds, exclusive. */
  readonly until?: number | undefined
}

/**
 * The names of the conditions. Each outcome is a condition without a parameter, because only then the index of failures
 * is used.
 */
type Narrowing = Exclude<keyof AuditFilters, "outcome"> | AuditOutcome

const filterColumns = {
  profile: text(),
  accountId: text(),
  orderId: text(),
  certSerial: text(),
  event: text<AuditEvent>(),
  actorKind: text<ActorKind>(),
  since: int,
  until: int
}

const conditions: { readonly [F in Narrowing]: string } = {
  profile: "l.profile = :profile",
  accountId: "l.account_id = :accountId",
  orderId: "l.order_id = :orderId",
  certSerial: "l.cert_serial = :certSerial",
  event: "l.event = :event",
  success: "l.outcome = 'success'",
  failure: "l.outcome = 'failure'",
  actorKind: "l.actor_kind = :actorKind",
  since: "l.created_at >= :since",
  until: "l.created_at < :until"
}

const names = Object.keys(conditions) as ReadonlyArray<Narrowing>

const whereOf = (used: ReadonlyArray<Narrowing>): string =>
  used.map((name) => conditions[name]).join(" AND ") || "1 = 1"

const pageStatement = perFilters(names, (used) =>
  statement({
    name: "audit_search",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: () =>
      `SELECT ${select(record, "l")} FROM audit_log l WHERE ${whereOf(used)}
       ORDER BY l.created_at DESC, l.id DESC LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(names, (used) =>
  statement({
    name: "audit_search_count",
    params: filterColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM audit_log l WHERE ${whereOf(used)}`
  }))

const behindStatement = perFilters(names, (used) =>
  statement({
    name: "audit_search_behind",
    params: { ...filterColumns, beforeTime: int, beforeId: int, limit: int },
    row: record,
    sql: () =>
      `SELECT ${select(record, "l")} FROM audit_log l
       WHERE l.created_at <= :beforeTime AND (l.created_at < :beforeTime OR l.id < :beforeId) AND ${whereOf(used)}
       ORDER BY l.created_at DESC, l.id DESC LIMIT :limit`
  }))

// No index has the request, so the engine reads every row of a range of ids.
const stretchStatement = statement({
  name: "audit_request_stretch",
  params: { requestId: text(), above: int, upTo: int },
  row: record,
  sql: () =>
    `SELECT ${select(record, "l")} FROM audit_log l
     WHERE l.id > :above AND l.id <= :upTo AND l.request_id = :requestId ORDER BY l.id DESC`
})

const endsStatement = statement({
  name: "audit_ends",
  params: {},
  row: { first: nullable(int), last: nullable(int) },
  sql: () => `SELECT (SELECT min(id) FROM audit_log) AS "first", (SELECT max(id) FROM audit_log) AS "last"`
})

const byId = statement({
  name: "audit_record",
  params: { id: int },
  row: record,
  sql: () => `SELECT ${select(record, "l")} FROM audit_log l WHERE l.id = :id`
})

const narrowed = ({ outcome, ...others }: AuditFilters): { readonly [_ in Narrowing]?: unknown } =>
  outcome === undefined ? others : { ...others, [outcome]: true }

const valuesOf = (filters: AuditFilters) =>
  ({
    profile: filters.profile ?? "",
    accountId: filters.accountId ?? "",
    orderId: filters.orderId ?? "",
    certSerial: filters.certSerial ?? "",
    event: filters.event ?? "audit_pruned",
    actorKind: filters.actorKind ?? "system",
    since: filters.since ?? 0,
    until: filters.until ?? 0
  }) as const

/** One row. */
export const find = (id: number) => first(byId, { id })

/** A page of matching rows, newest first. */
export const search = (filters: AuditFilters, page: { readonly limit: number; readonly offset: number }) =>
  all(pageStatement(narrowed(filters)), { ...valuesOf(filters), ...page })

/** How many rows match. */
export const countMatches = (filters: AuditFilters) =>
  Effect.map(first(countStatement(narrowed(filters)), valuesOf(filters)), (row) => row?.total ?? 0)

/** Matching rows, newest first, after a given one. */
export const behind = (
  filters: AuditFilters,
  before: { readonly beforeTime: number; readonly beforeId: number; readonly limit: number }
) => all(behindStatement(narrowed(filters)), { ...valuesOf(filters), ...before })

/** Rows of one request whose ids are above `above` and at most `upTo`, newest first. */
export const ofRequest = (requestId: string, above: number, upTo: number) =>
  all(stretchStatement, { requestId, above, upTo })

/** The smallest and the largest id. Absent while the trail is empty. */
export const ends = Effect.map(
  Effect.suspend(() => first(endsStatement, {})),
  (row) => row?.first === undefined || row.last === undefined ? undefined : { first: row.first, last: row.last }
)
