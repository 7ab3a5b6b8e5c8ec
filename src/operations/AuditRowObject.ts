import { member } from "../engine/Members.ts"
import { rfc3339 } from "../engine/Time.ts"
import type { AuditRecord } from "../store/AuditSearch.ts"

/** Returns a row of the audit trail as operators and receivers get it. */
export const auditObject = (row: AuditRecord) => ({
  id: row.id,
  createdAt: rfc3339(row.createdAt),
  event: row.event,
  outcome: row.outcome,
  actorKind: row.actorKind,
  ...member("actorId", row.actorId),
  ...member("profile", row.profile),
  ...member("accountId", row.accountId),
  ...member("orderId", row.orderId),
  ...member("certSerial", row.certSerial),
  identifiers: row.identifiers,
  ...member("clientIp", row.clientIp),
  ...member("clientPtr", row.clientPtr),
  ...member("userAgent", row.userAgent),
  ...member("requestId", row.requestId),
  ...member("reason", row.reason),
  ...member("detail", row.detail === undefined || Object.keys(row.detail).length === 0 ? undefined : row.detail)
})
