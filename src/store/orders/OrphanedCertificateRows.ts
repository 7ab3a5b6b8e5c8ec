import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { bytes, int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { all, first, lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* Certificates that programs and upstreams issued although their orders ended without a certificate. */

/** Why the certificate that was signed for an order was not stored in the order. */
export type OrphanCause = "order_ended" | "chain_rejected" | "signer_failed"

/** Every {@link OrphanStatus}. */
export const orphanStatuses = ["waiting", "revoked", "kept", "stored", "expired"] as const

/**
 * The state of the certificate: it waits for its revocation, has been revoked, could not be revoked, belongs to an
 * order after all, or expired before any of these happened.
 */
export type OrphanStatus = (typeof orphanStatuses)[number]

const insertStatement = statement({
  name: "orphan_insert",
  params: {
    orderId: uuid<OrderId>(),
    fingerprint: text(),
    profile: name(),
    serial: name(),
    leaf: bytes,
    notAfter: int,
    cause: text<OrphanCause>(),
    now: int
  },
  row: { serial: name() },
  sql: () =>
    `INSERT INTO orphaned_certificates
       (order_id, fingerprint, profile, serial, leaf, not_after, cause, status, found_at, updated_at)
     VALUES (:orderId, :fingerprint, :profile, :serial, :leaf, :notAfter, :cause, 'waiting', :now, :now)
     ON CONFLICT (order_id, fingerprint) DO NOTHING RETURNING serial AS "serial"`
})

const openStatement = statement({
  name: "orphan_open",
  params: { orderId: uuid<OrderId>() },
  row: { fingerprint: text(), serial: name(), leaf: bytes, notAfter: int },
  sql: () =>
    `SELECT fingerprint AS "fingerprint", serial AS "serial", leaf AS "leaf", not_after AS "notAfter"
     FROM orphaned_certificates WHERE order_id = :orderId AND status IN ('waiting', 'kept') ORDER BY fingerprint`
})

const settleStatement = statement({
  name: "orphan_settle",
  params: {
    orderId: uuid<OrderId>(),
    fingerprint: text(),
    status: text<OrphanStatus>(),
    error: nullable(text()),
    now: int
  },
  row: { serial: name() },
  sql: () =>
    `UPDATE orphaned_certificates SET status = :status, error = :error, updated_at = :now
     WHERE order_id = :orderId AND fingerprint = :fingerprint AND status IN ('waiting', 'kept')
     RETURNING serial AS "serial"`
})

const filterColumns = { profile: name(), status: text<OrphanStatus>() }
const conditions = { profile: "profile = :profile", status: "status = :status" } as const
const filterNames = ["profile", "status"] as const

/** The filters of a list. A filter that is absent excludes nothing. */
export interface OrphanFilters {
  readonly profile?: string | undefined
  readonly status?: OrphanStatus | undefined
}

const whereOf = (used: ReadonlyArray<keyof OrphanFilters>): string =>
  used.map((name) => conditions[name]).join(" AND ") || "1 = 1"

// The rows are sorted by the id of the order: version 7 ids sort by time, and the index of the key has this order.
const pageStatement = perFilters(filterNames, (used) =>
  statement({
    name: "orphan_page",
    params: { ...filterColumns, limit: int, offset: int },
    row: {
      orderId: uuid<OrderId>(),
      profile: name(),
      serial: name(),
      leaf: bytes,
      notAfter: int,
      cause: text<OrphanCause>(),
      status: text<OrphanStatus>(),
      error: nullable(text()),
      foundAt: int,
      updatedAt: int
    },
    sql: () =>
      `SELECT order_id AS "orderId", profile AS "profile", serial AS "serial", leaf AS "leaf", not_after AS "notAfter",
         cause AS "cause", status AS "status", error AS "error", found_at AS "foundAt", updated_at AS "updatedAt"
       FROM orphaned_certificates WHERE ${whereOf(used)}
       ORDER BY order_id DESC, fingerprint LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(filterNames, (used) =>
  statement({
    name: "orphan_count",
    params: filterColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM orphaned_certificates WHERE ${whereOf(used)}`
  }))

const sweepStatement = statement({
  name: "orphan_sweep",
  params: { endedBefore: int, limit: int },
  row: { serial: name() },
  sql: () =>
    `DELETE FROM orphaned_certificates WHERE (order_id, fingerprint) IN
       (SELECT order_id, fingerprint FROM orphaned_certificates WHERE not_after < :endedBefore LIMIT :limit)
     RETURNING serial AS "serial"`
})

/** Records a certificate. Returns `undefined` if it is already recorded. Times are epoch seconds, and `leaf` is DER. */
export const insert = (row: {
  readonly orderId: OrderId
  /** The SHA-256 of the leaf, in lower-case hexadecimal. */
  readonly fingerprint: string
  readonly profile: string
  readonly serial: string
  readonly leaf: Uint8Array
  readonly notAfter: number
  readonly cause: OrphanCause
  readonly now: number
}) => first(insertStatement, row)

/** Returns the certificates of an order that are not revoked. */
export const open = (orderId: OrderId) => all(openStatement, { orderId })

/** Stores the final state of a certificate. Returns `undefined` if another attempt has already stored it. */
export const settle = (of: {
  readonly orderId: OrderId
  readonly fingerprint: string
  readonly status: Exclude<OrphanStatus, "waiting">
  readonly error?: string | undefined
  readonly now: number
}) => first(settleStatement, { error: undefined, ...of })

/** An orphaned certificate in the form that operators see. */
export type OrphanRecord = Effect.Success<ReturnType<typeof search>>[number]

const valuesOf = ({ profile = "", status = "waiting" }: OrphanFilters) => ({ profile, status }) as const

/** Returns a page of the certificates, sorted by order, newest order first. */
export const search = (filters: OrphanFilters, page: { readonly limit: number; readonly offset: number }) =>
  lenient(pageStatement(filters), { ...valuesOf(filters), ...page })

/** Counts the matching certificates. */
export const countMatches = (filters: OrphanFilters) =>
  keptTotal(
    "orphan_count",
    filters,
    Effect.map(first(countStatement(filters), valuesOf(filters)), (row) => row?.total ?? 0)
  )

/** Deletes certificates that expired before an epoch second. Returns how many certificates were deleted. */
export const sweep = (endedBefore: number, limit: number) =>
  Effect.map(all(sweepStatement, { endedBefore, limit }), (gone) => gone.length)
