import type { auditObject } from "../../operations/AuditRowObject.ts"
import { renderDetail } from "./Detail.ts"
import type { Rendered } from "./Rendered.ts"
import { clientText } from "./Text.ts"
import { renderTable } from "./TextTable.ts"

type AuditObject = ReturnType<typeof auditObject>

const actorOf = ({ actorId, actorKind }: AuditObject): string =>
  actorId === undefined ? actorKind : `${actorKind} ${actorId}`

/** Returns the record that an action concerned in addition to the order: an operator, an account or a credential. */
const aboutOf = ({ accountId, detail = {} }: AuditObject): string => {
  const named = ["target", "kid", "subject"].map((name) => detail[name]).find((value) => typeof value === "string")
  return typeof named === "string" ? named : accountId ?? ""
}

/** Renders `audit list` for people. */
export const renderTrail = (items: ReadonlyArray<AuditObject>, total: number): Rendered =>
  renderTable(
    ["id", "time", "event", "outcome", "actor", "from", "about", "profile", "order", "reason", "names"],
    items.map((row) => [
      String(row.id),
      row.createdAt,
      row.event,
      row.outcome,
      actorOf(row),
      clientText(row.clientIp, row.clientPtr) ?? "",
      aboutOf(row),
      row.profile ?? "",
      row.orderId ?? "",
      row.reason ?? "",
      row.identifiers.join(" ")
    ]),
    total
  )

/** Renders `audit show` for people. */
export const renderAuditRow = (row: AuditObject): Rendered =>
  renderDetail({
    id: row.id,
    time: row.createdAt,
    event: row.event,
    outcome: row.outcome,
    actor: actorOf(row),
    profile: row.profile,
    account: row.accountId,
    order: row.orderId,
    serial: row.certSerial,
    names: row.identifiers.length === 0 ? undefined : row.identifiers,
    from: clientText(row.clientIp, row.clientPtr),
    userAgent: row.userAgent,
    requestId: row.requestId,
    reason: row.reason,
    ...Object.fromEntries(
      Object.entries(row.detail ?? {}).map(([name, value]) => [
        `detail ${name}`,
        typeof value === "object" ? JSON.stringify(value) : String(value)
      ])
    )
  })
