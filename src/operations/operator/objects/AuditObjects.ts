import { rfc3339 } from "../../../engine/Time.ts"
import type { AuditRecord } from "../../../store/AuditSearch.ts"
import type { Trend } from "../Trends.ts"
import { member } from "./Members.ts"

/** A row of the audit trail. */
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

/** Counts of issuances, refusals and revocations over time. */
export const trendObject = ({ buckets, bucketSeconds }: Trend) => ({
  buckets: buckets.map(({ start, ...counts }) => ({ start: rfc3339(start), ...counts })),
  bucketSeconds
})
