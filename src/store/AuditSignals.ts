import { int, name, nullable, text } from "../engine/sql/Column.ts"
import { first, lenient } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/* The numbers from the audit trail that monitoring reads. */

const revokedStatement = statement({
  name: "audit_revoked",
  params: { since: int },
  row: { profile: nullable(name()), reason: nullable(text()), count: int },
  sql: () =>
    `SELECT profile AS "profile", reason AS "reason", count(*) AS "count" FROM audit_log
     WHERE event = 'certificate_revoked' AND created_at >= :since GROUP BY profile, reason`
})

const lastRowStatement = statement({
  name: "audit_last_row",
  params: {},
  row: { id: nullable(int) },
  sql: () => `SELECT max(id) AS "id" FROM audit_log`
})

/**
 * Counts the certificates that were revoked since an epoch second, by profile and by reason. The reason is a code,
 * written in digits.
 */
export const revokedSince = (since: number) => lenient(revokedStatement, { since })

/** Reads the id of the newest row. If the trail is empty, there is no result, or a result without an id. */
export const lastRow = first(lastRowStatement, {})
