import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, name, nullable, rows, text, uuid } from "../../engine/sql/Column.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { all, first, lenient, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

const stampStatement = statement({
  name: "order_revoke",
  params: { id: uuid<OrderId>(), now: int, reason: nullable(int) },
  row: { id: uuid<OrderId>(), certNotAfter: nullable(int) },
  sql: ({ checked }) =>
    `UPDATE orders SET revoked_at = :now, revocation_reason = :reason
     WHERE id = :id AND ${checked("revoked_at")} IS NULL AND certificate IS NOT NULL
     RETURNING id AS "id", cert_not_after AS "certNotAfter"`
})

const insertStatement = statement({
  name: "revocation_insert",
  params: { issuer: name(), serial: name(), now: int, reason: nullable(int), notAfter: nullable(int) },
  row: { serial: name() },
  sql: () =>
    `INSERT INTO revocations (issuer, serial, revoked_at, reason, not_after)
     VALUES (:issuer, :serial, :now, :reason, :notAfter) ON CONFLICT (issuer, serial) DO NOTHING
     RETURNING serial AS "serial"`
})

// Each element of `revoked` has a serial, a time and a reason. A negative reason means that there is no reason.
const importStatement = statement({
  name: "revocation_import",
  params: { issuer: name(), revoked: rows },
  row: {},
  sql: ({ at, each }) =>
    `INSERT INTO revocations (issuer, serial, revoked_at, reason, not_after)
     SELECT :issuer, ${at(0, "text")}, ${at(1, "int")}, CASE WHEN ${at(2, "int")} < 0 THEN NULL ELSE ${
      at(2, "int")
    } END, NULL
     FROM ${each(":revoked")} WHERE true ON CONFLICT (issuer, serial) DO NOTHING`
})

const pageStatement = statement({
  name: "revocation_page",
  params: { issuer: name(), after: text(), limit: int },
  row: { serial: name(), revokedAt: int, reason: nullable(int) },
  sql: () =>
    `SELECT serial AS "serial", revoked_at AS "revokedAt", reason AS "reason" FROM revocations
     WHERE issuer = :issuer AND serial > :after ORDER BY serial LIMIT :limit`
})

const pruneStatement = statement({
  name: "revocation_prune",
  params: { issuer: name(), before: int, listed: int, limit: int },
  row: { serial: name() },
  sql: ({ indexedBy }) =>
    `DELETE FROM revocations WHERE (issuer, serial) IN (SELECT issuer, serial FROM revocations ${
      indexedBy("revocations_issuer_not_after")
    }
       WHERE issuer = :issuer AND not_after < :before AND +revoked_at < :listed LIMIT :limit)
     RETURNING serial AS "serial"` // this uses the index of the expiry, because nearly all revocations are old
})

const countStatement = statement({
  name: "revocation_count",
  params: { issuer: name() },
  row: { count: int },
  sql: () => `SELECT count(*) AS "count" FROM revocations WHERE issuer = :issuer`
})

const issuersStatement = statement({
  name: "revocation_issuers",
  params: { now: int },
  row: { issuer: name() },
  sql: () =>
    `SELECT issuer AS "issuer" FROM ${distinct("revocations", "issuer")}
     WHERE EXISTS (SELECT 1 FROM revocations r WHERE r.issuer = p.issuer AND r.not_after > :now)
       OR EXISTS (SELECT 1 FROM revocations r WHERE r.issuer = p.issuer AND r.not_after IS NULL)
     ORDER BY 1`
})

/**
 * Marks an order's certificate as revoked. Returns `undefined` if it is already revoked, or if there is no certificate.
 */
export const stampOrder = (stamp: {
  readonly id: OrderId
  readonly now: number
  readonly reason: number | undefined
}) => first(stampStatement, stamp)

/**
 * Records a revocation. If the serial already has a revocation, that revocation stays, and the result is `undefined`. A
 * row with an unknown expiry is never pruned.
 */
export const insert = (row: {
  readonly issuer: string
  readonly serial: string
  readonly now: number
  readonly reason: number | undefined
  readonly notAfter: number | undefined
}) => first(insertStatement, row)

/**
 * Inserts the rows of a ledger. Each row has a serial, epoch seconds and a reason. A negative reason means that there
 * is no reason.
 */
export const insertAll = (
  issuer: string,
  revoked: ReadonlyArray<readonly [serial: string, revokedAt: number, reason: number]>
) => run(importStatement, { issuer, revoked })

/** Returns the revocations of an issuer that follow a given serial, sorted by serial. */
export const page = (issuer: string, after: string, limit: number) => all(pageStatement, { issuer, after, limit })

/**
 * Returns the same as {@link page}, but only to show it to operators. Do not use this function for a list that will be
 * signed ({@link lenient}).
 */
export const shownPage = (issuer: string, after: string, limit: number) =>
  lenient(pageStatement, { issuer, after, limit })

/**
 * Deletes up to `limit` rows of certificates that expired before `before` and were revoked before `listed`. Returns how
 * many rows were deleted.
 */
export const prune = (
  issuer: string,
  ends: { readonly before: number; readonly listed: number; readonly limit: number }
) => Effect.map(all(pruneStatement, { issuer, ...ends }), (gone) => gone.length)

/** Counts the revocations of an issuer. */
export const count = (issuer: string) => Effect.map(first(countStatement, { issuer }), (row) => row?.count ?? 0)

/** Returns the issuers of revoked certificates that have not expired. */
export const issuers = (now: number) => all(issuersStatement, { now })
