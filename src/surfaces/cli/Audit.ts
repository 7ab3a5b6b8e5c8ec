import type { auditObject } from "../../operations/objects/Audit.ts"
import { renderDetail } from "./Detail.ts"
import type { Rendered } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

type AuditObject = ReturnType<typeof auditObject>

const actorOf = ({ actorId, actorKind }: AuditObject): string =>
  actorId === undefined ? actorKind : `${actorKind} ${actorId}`

/** `audit list` for people. */
export const renderTrail = (items: ReadonlyArray<AuditObject>, total: number): Rendered =>
  renderTable(
    ["id", "time", "event", "actor", "profile", "order", "reason", "names"],
    items.map((row) => [
      String(row.id),
      row.createdAt,
      row.event,
      actorOf(row),
      row.profile ?? "",
      row.orderId ?? "",
      row.reason ?? "",
      row.identifiers.join(" ")
    ]),
    total
  )

/** `audit show` for people. */
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
    from: row.clientPtr ?? row.clientIp,
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
