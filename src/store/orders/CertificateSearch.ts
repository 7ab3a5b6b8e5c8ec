import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, name, uuid } from "../../engine/sql/Column.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { first, lenient } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"
import type { EndRange } from "./EndRange.ts"
import { findListed } from "./OrderSearch.ts"

/*
 * Finds certificates in the order in which they end. Two indexes have this order for each profile, one for live and one
 * for revoked certificates. So at most one page of each index is read and sorted.
 */

/** Which certificates are wanted, and in which order. */
export interface EndsWanted {
  readonly profile?: string | undefined
  readonly ends: EndRange
  /** Whether only revoked certificates are wanted. */
  readonly isRevokedOnly: boolean
  /** Whether the certificates that end last come first. */
  readonly isLastFirst: boolean
}

type Narrowing = "profile" | "live" | "revoked" | "lastFirst"

const narrowings: ReadonlyArray<Narrowing> = ["profile", "live", "revoked", "lastFirst"]

/** The certificates of one index. */
const revocations = { live: "IS NULL", revoked: "IS NOT NULL" }

const revocationsOf = (used: ReadonlyArray<Narrowing>): ReadonlyArray<string> =>
  used.includes("live")
    ? [revocations.live]
    : used.includes("revoked")
    ? [revocations.revoked]
    : [revocations.live, revocations.revoked]

const within = (isRevoked: string) =>
  `w.certificate IS NOT NULL AND w.revoked_at ${isRevoked} AND w.cert_not_after > :after AND w.cert_not_after <= :upTo`

const everyProfile = distinct("orders", "profile")

/** SQL for the first `:reach` certificates of one index at every wanted profile. */
const firstOf = (used: ReadonlyArray<Narrowing>, isRevoked: string, { dialect }: Fragments): string => {
  const direction = used.includes("lastFirst") ? "DESC" : "ASC"
  const one = (columns: string, profile: string) =>
    `SELECT ${columns} FROM orders w WHERE w.profile = ${profile} AND ${within(isRevoked)}
     ORDER BY w.cert_not_after ${direction}, w.id ${direction} LIMIT :reach`
  const whole = "w.id, w.cert_not_after"
  if (used.includes("profile")) return `SELECT id, cert_not_after FROM (${one(whole, ":profile")}) AS one`
  return dialect === "postgres"
    ? `SELECT every.id, every.cert_not_after FROM ${everyProfile} CROSS JOIN LATERAL (${
      one(whole, "p.profile")
    }) AS every`
    : `SELECT o.id, o.cert_not_after FROM ${everyProfile} CROSS JOIN orders o WHERE o.id IN (${
      one("w.id", "p.profile")
    })`
}

const pageStatement = perFilters(narrowings, (used) =>
  statement({
    name: "certificate_page",
    params: { profile: name(), after: int, upTo: int, reach: int, limit: int, offset: int },
    row: { id: uuid<OrderId>() },
    sql: (f) => {
      const direction = used.includes("lastFirst") ? "DESC" : "ASC"
      return `SELECT found.id AS "id" FROM (${
        revocationsOf(used).map((isRevoked) => firstOf(used, isRevoked, f)).join(" UNION ALL ")
      }) AS found ORDER BY found.cert_not_after ${direction}, found.id ${direction} LIMIT :limit OFFSET :offset`
    }
  }), ["live", "revoked"])

const countStatement = perFilters(narrowings.slice(0, 3), (used) =>
  statement({
    name: "certificate_count",
    params: { profile: name(), after: int, upTo: int },
    row: { total: int },
    sql: () => {
      const from = used.includes("profile")
        ? "orders w WHERE w.profile = :profile"
        : `${everyProfile} JOIN orders w ON w.profile = p.profile WHERE 1 = 1`
      const counts = revocationsOf(used).map((isRevoked) => `(SELECT count(*) FROM ${from} AND ${within(isRevoked)})`)
      return `SELECT ${counts.join(" + ")} AS "total"`
    }
  }), ["live", "revoked"])

const usedBy = ({ ends, isLastFirst, isRevokedOnly, profile }: EndsWanted) => ({
  profile,
  ...ends.isLiveOnly ? { live: true } : isRevokedOnly ? { revoked: true } : {},
  ...isLastFirst ? { lastFirst: true } : {}
})

const valuesOf = ({ ends, profile = "" }: EndsWanted) => ({ profile, after: ends.after, upTo: ends.upTo })

/** Returns a page of certificates in the order in which they end. */
export const byEnd = Effect.fnUntraced(
  function*(wanted: EndsWanted, page: { readonly limit: number; readonly offset: number }) {
    const reach = page.offset + page.limit
    const ids = (yield* lenient(pageStatement(usedBy(wanted)), { ...valuesOf(wanted), ...page, reach }))
      .map(({ id }) => id)
    const found = new Map((yield* findListed(ids)).map((order) => [order.id, order]))
    return ids.flatMap((id) => found.get(id) ?? [])
  }
)

/** Counts these certificates. The number may be slightly out of date ({@link keptTotal}). */
export const count = (wanted: EndsWanted) => {
  const { isLastFirst: _, ...filters } = wanted
  return keptTotal(
    "certificate_count",
    filters,
    Effect.map(
      first(countStatement(usedBy({ ...wanted, isLastFirst: false })), valuesOf(wanted)),
      (row) => row?.total ?? 0
    )
  )
}
