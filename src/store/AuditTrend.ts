import type { AuditEvent } from "../domain/Audit.ts"
import { int, name, text } from "../engine/sql/Column.ts"
import { lenient } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { statement } from "../engine/sql/Statement.ts"

/* Counts rows of the audit trail over time. */

/** The events that are counted. */
const counted = [
  "certificate_issued",
  "certificate_issue_failed",
  "certificate_revoked",
  "certificate_revoke_failed"
] as const satisfies ReadonlyArray<AuditEvent>

const params = { profile: name(), since: int, until: int, bucket: int }

const trend = (condition: (f: Fragments) => string) =>
  statement({
    name: "audit_trend",
    params,
    row: { event: text<(typeof counted)[number]>(), slot: int, count: int },
    // The driver binds numbers as floating-point numbers. Because of the cast, SQLite still divides integers.
    sql: (f) =>
      `SELECT l.event AS "event", l.created_at / CAST(:bucket AS BIGINT) AS "slot", count(*) AS "count"
       FROM audit_log l WHERE ${condition(f)} AND l.created_at >= :since AND l.created_at < :until
       GROUP BY 1, 2`
  })

const among = `IN (${counted.map((event) => `'${event}'`).join(", ")})`

const everywhere = trend(() => `l.event ${among}`)

// This uses the index of profile and time. Without the hint, SQLite would use the index of the event, and would read
// the rows of every profile.
const atProfile = trend(({ aside }) => `l.profile = :profile AND ${aside("l.event")} ${among}`)

/**
 * Counts the rows of one profile or of all profiles, by event and by time slot. A slot is `bucket` seconds long. Slots
 * are numbered from the epoch.
 */
export const trendOf = (
  { profile, ...span }: {
    readonly profile: string | undefined
    /** The start of the time span, in epoch seconds (inclusive). */
    readonly since: number
    /** The end of the time span, in epoch seconds (exclusive). */
    readonly until: number
    readonly bucket: number
  }
) => lenient(profile === undefined ? everywhere : atProfile, { profile: profile ?? "", ...span })
