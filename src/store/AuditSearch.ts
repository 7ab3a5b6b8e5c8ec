import * as Effect from "effect/Effect"
import type { ActorKind, AuditOutcome } from "../domain/Audit.ts"
import { int, members, name, nullable, text, texts } from "../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../engine/sql/Database.ts"
import { perFilters } from "../engine/sql/Filters.ts"
import { keptTotal } from "../engine/sql/KeptCounts.ts"
import { first, lenient, lenientFirst } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { select, statement } from "../engine/sql/Statement.ts"

/* Searches the audit trail for operators. */

/** The columns of a row of the trail. */
export const auditRecord = {
  id: int,
  createdAt: int,
  event: text(),
  outcome: text<AuditOutcome>(),
  actorKind: text<ActorKind>(),
  actorId: nullable(text()),
  profile: nullable(name()),
  accountId: nullable(text()),
  orderId: nullable(text()),
  certSerial: nullable(name()),
  identifiers: texts,
  clientIp: nullable(text()),
  clientPtr: nullable(text()),
  userAgent: nullable(text()),
  requestId: nullable(text()),
  reason: nullable(text()),
  detail: nullable(members<{ readonly [name: string]: unknown }>())
}

const hasEventStatement = statement({
  name: "audit_has_event",
  params: { event: text() },
  row: { event: text() },
  sql: () => `SELECT event AS "event" FROM audit_log WHERE event = :event LIMIT 1`
})

/** A row of the trail. `event` may be an event that only another version knows. Times are epoch seconds. */
export type AuditRecord = NonNullable<Effect.Success<ReturnType<typeof find>>>

/** The filters of a list. A filter that is absent excludes nothing. */
export interface AuditFilters {
  readonly profile?: string | undefined
  readonly accountId?: string | undefined
  readonly orderId?: string | undefined
  /** The serial number in its stored form. */
  readonly certSerial?: string | undefined
  /** The name of an event that this version knows, or that an earlier version wrote to this database. */
  readonly event?: string | undefined
  readonly outcome?: AuditOutcome | undefined
  readonly actorKind?: ActorKind | undefined
  /** The start of the time span, in epoch seconds (inclusive). */
  readonly since?: number | undefined
  /** The end of the time span, in epoch seconds (exclusive). */
  readonly until?: number | undefined
}

/**
 * The names of the conditions. Each outcome is a condition without a parameter, because otherwise the index of failures
 * would not be used. `others` means the rows that clients did not cause; these rows have an index of their own.
 */
type Narrowing = Exclude<keyof AuditFilters, "outcome" | "actorKind"> | AuditOutcome | "acme" | "others" | "actor"

const filterColumns = {
  profile: name(),
  accountId: text(),
  orderId: text(),
  certSerial: name(),
  event: text(),
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
  acme: "l.actor_kind = 'acme'",
  others: "l.actor_kind <> 'acme'",
  actor: "l.actor_kind <> 'acme' AND l.actor_kind = :actorKind",
  since: "l.created_at >= :since",
  until: "l.created_at < :until"
}

const names = Object.keys(conditions) as ReadonlyArray<Narrowing>
const actors = ["acme", "others", "actor"] as const

const whereOf = (used: ReadonlyArray<Narrowing>): string =>
  used.map((name) => conditions[name]).join(" AND ") || "1 = 1"

/**
 * Returns the first column of the index that gives a list its order. This index ends with the time. Failures have an
 * index by time alone.
 */
const leaderOf = (used: ReadonlyArray<Narrowing>): "actor" | "event" | "profile" | undefined => {
  if (used.some((name) => name === "accountId" || name === "orderId" || name === "certSerial")) return undefined
  return (["actor", "event", "profile"] as const).find((name) => used.includes(name))
}

/** Returns the conditions of {@link whereOf}, and the sort order of a list. */
const listedBy = (used: ReadonlyArray<Narrowing>, { ledBy, leads }: Fragments) => {
  const order = "l.created_at DESC, l.id DESC"
  const leader = leaderOf(used)
  if (leader === undefined) return { where: whereOf(used), order }
  const [column, value] = leader === "actor" ? ["l.actor_kind", ":actorKind"] as const : [`l.${leader}`, `:${leader}`]
  const others = used.filter((name) => name !== leader).map((name) => conditions[name])
  const ofIndex = leader === "actor" ? ["l.actor_kind <> 'acme'"] : []
  return { where: [...ofIndex, leads(column, value), ...others].join(" AND "), order: ledBy(column, order) }
}

const pageStatement = perFilters(names, (used) =>
  statement({
    name: "audit_search",
    params: { ...filterColumns, limit: int, offset: int },
    row: auditRecord,
    sql: (f) => {
      const { order, where } = listedBy(used, f)
      return `SELECT ${select(auditRecord, "l")} FROM audit_log l WHERE ${where}
       ORDER BY ${order} LIMIT :limit OFFSET :offset`
    }
  }), actors)

const countStatement = perFilters(names, (used) =>
  statement({
    name: "audit_search_count",
    params: filterColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM audit_log l WHERE ${whereOf(used)}`
  }), actors)

const behindStatement = perFilters(names, (used) =>
  statement({
    name: "audit_search_behind",
    params: { ...filterColumns, beforeTime: int, beforeId: int, limit: int },
    row: auditRecord,
    sql: (f) => {
      const { order, where } = listedBy(used, f)
      return `SELECT ${select(auditRecord, "l")} FROM audit_log l
       WHERE l.created_at <= :beforeTime AND (l.created_at < :beforeTime OR l.id < :beforeId) AND ${where}
       ORDER BY ${order} LIMIT :limit`
    }
  }), actors)

// A search by request has no other filters, because few rows have the same request id.
const ofRequestStatement = statement({
  name: "audit_of_request",
  params: { requestId: text(), beforeTime: int, beforeId: int, limit: int },
  row: auditRecord,
  sql: () =>
    `SELECT ${select(auditRecord, "l")} FROM audit_log l
     WHERE l.request_id = :requestId AND l.created_at <= :beforeTime
       AND (l.created_at < :beforeTime OR l.id < :beforeId)
     ORDER BY l.created_at DESC, l.id DESC LIMIT :limit`
})

const byId = statement({
  name: "audit_record",
  params: { id: int },
  row: auditRecord,
  sql: () => `SELECT ${select(auditRecord, "l")} FROM audit_log l WHERE l.id = :id`
})

type Used = { readonly [_ in Narrowing]?: unknown }

const narrowed = ({ actorKind, outcome, ...others }: AuditFilters): Used => ({
  ...others,
  ...(outcome === undefined ? {} : { [outcome]: true }),
  ...(actorKind === undefined ? {} : { [actorKind === "acme" ? "acme" : "actor"]: true })
})

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

/** Finds one row. */
export const find = (id: number) => lenientFirst(byId, { id })

/** Returns whether the trail has an event with this name. */
export const hasEvent = (event: string) => Effect.map(first(hasEventStatement, { event }), (row) => row !== undefined)

/** Returns a page of matching rows, newest first. */
export const search = (filters: AuditFilters, page: { readonly limit: number; readonly offset: number }) =>
  lenient(pageStatement(narrowed(filters)), { ...valuesOf(filters), ...page })

/**
 * Counts the matching rows. Nearly all rows are successes and are caused by clients, and no index covers these rows. So
 * they are counted as all rows minus the failures, or minus the rows that clients did not cause.
 */
const countOnce = (used: Used, filters: AuditFilters): Effect.Effect<number, StorageFailed, Database> => {
  const { acme, success, ...rest } = used
  const without = (common: Used, rare: Used) =>
    Effect.zipWith(countOnce(common, filters), countOnce(rare, filters), (all, some) => Math.max(0, all - some))
  if (success !== undefined) return without({ ...rest, acme }, { ...rest, acme, failure: true })
  if (acme !== undefined) return without(rest, { ...rest, others: true })
  return Effect.map(first(countStatement(used), valuesOf(filters)), (row) => row?.total ?? 0)
}

/** Returns how many rows match. The number may be slightly out of date ({@link keptTotal}). */
export const countMatches = (filters: AuditFilters) =>
  keptTotal("audit_search_count", filters, countOnce(narrowed(filters), filters))

/** A row, and how many of the rows after it are wanted. */
export interface Before {
  readonly beforeTime: number
  readonly beforeId: number
  readonly limit: number
}

/** Returns the matching rows that follow a given row, newest first. */
export const behind = (filters: AuditFilters, before: Before) =>
  lenient(behindStatement(narrowed(filters)), { ...valuesOf(filters), ...before })

/** Returns the rows of one request that follow a given row, newest first. */
export const ofRequest = (requestId: string, before: Before) => lenient(ofRequestStatement, { requestId, ...before })
