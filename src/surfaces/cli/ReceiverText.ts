import type { ReceiverObject } from "../../operations/operator/AuditReceiverRecords.ts"
import type { Rendered } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

const stateOf = ({ configured, failures }: ReceiverObject): string =>
  configured === false ? "not configured" : failures > 0 ? "failing" : "ok"

/** Renders `audit receivers` for people. */
export const renderReceivers = (items: ReadonlyArray<ReceiverObject>): Rendered =>
  renderTable(
    ["receiver", "state", "row", "pushed", "behind", "oldest", "failures", "since", "error"],
    items.map((one) => [
      one.name,
      stateOf(one),
      String(one.pushedId),
      one.pushedAt ?? "",
      String(one.lagRows),
      `${one.lagSeconds} s`,
      String(one.failures),
      one.failingSince ?? "",
      one.error ?? ""
    ]),
    items.length
  )
