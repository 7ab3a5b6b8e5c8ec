import type { chainObject } from "../../operations/operator/objects/ChainObjects.ts"
import { renderDetail } from "./Detail.ts"
import type { Rendered } from "./Rendered.ts"
import { stacked } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

type ChainObject = ReturnType<typeof chainObject>

const spanText = ({ firstId, lastId, rows }: ChainObject["uncovered"]): string =>
  rows === 0 || firstId === undefined || lastId === undefined ? String(rows) : `${rows} (ids ${firstId} to ${lastId})`

const signedText = ({ signed }: ChainObject): string => {
  if (signed === undefined) return "none"
  const verdicts = {
    valid: "the signature is valid",
    invalid: "the signature is INVALID",
    other_key: "signed with another key than the configured one",
    unchecked: "the signature was not checked"
  }
  return `${signed.name}, ${verdicts[signed.verdict]}`
}

const rowsOf = ({ firstId, lastId, rows }: ChainObject["faults"][number]): string =>
  rows === undefined
    ? ""
    : spanText({ rows, ...firstId === undefined || lastId === undefined ? {} : { firstId, lastId } })

/** Renders `audit verify` for people. */
export const renderChain = (chain: ChainObject): Rendered => {
  const { faults, faultsFound, head, signed } = chain
  const summary = renderDetail({
    verifiedRows: chain.verified,
    links: chain.links,
    notCovered: spanText(chain.uncovered),
    notYetChained: spanText(chain.unchained),
    deletedByRetention: chain.pruned,
    chainBegan: chain.began,
    head: head?.name ?? "none",
    headChainedAt: head?.chainedAt,
    signedHead: signedText(chain),
    headSignedAt: signed?.signedAt,
    signatures: chain.unsignedReason,
    lastDailyCheck: chain.lastCheck?.endedAt,
    faultsOfThatCheck: chain.lastCheck?.faults,
    faults: faultsFound
  })
  if (faults.length === 0) return summary
  const table = renderTable(
    ["fault", "of", "link", "since", "rows", "detail"],
    faults.map((fault) => [
      fault.kind,
      fault.of,
      fault.sequence === undefined ? "" : String(fault.sequence),
      fault.since ?? "",
      rowsOf(fault),
      fault.detail
    ]),
    faultsFound
  )
  return stacked([summary, table], "\n\n")
}
