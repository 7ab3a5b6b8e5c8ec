import { nameOfHead } from "../../../domain/AuditChain.ts"
import { member, timeMember } from "../../../engine/Members.ts"
import type { Span } from "../../../store/ChainedRows.ts"
import type { Verified } from "../ChainVerification.ts"

const spanObject = ({ firstId, lastId, rows }: Span) => ({
  rows,
  ...member("firstId", firstId),
  ...member("lastId", lastId)
})

/** The result of a check of the audit chain. */
export const chainObject = (
  {
    began,
    faults,
    faultsFound,
    head,
    lastCheck,
    links,
    next,
    pruned,
    signed,
    unchained,
    uncovered,
    unsignedReason,
    verified
  }: Verified
) => ({
  verified,
  links,
  pruned,
  uncovered: spanObject(uncovered),
  unchained: spanObject(unchained),
  ...timeMember("began", began),
  ...member(
    "head",
    head === undefined
      ? undefined
      : { name: nameOfHead(head), sequence: head.sequence, hash: head.hash, ...timeMember("chainedAt", head.chainedAt) }
  ),
  ...member(
    "signed",
    signed === undefined ? undefined : {
      name: nameOfHead(signed),
      sequence: signed.sequence,
      hash: signed.hash,
      ...timeMember("signedAt", signed.signedAt),
      ...member("keyId", signed.keyId),
      ...member("signature", signed.signature),
      verdict: signed.verdict
    }
  ),
  ...member("unsignedReason", unsignedReason),
  ...member(
    "lastCheck",
    lastCheck?.endedAt === undefined ? undefined : {
      ...timeMember("endedAt", lastCheck.endedAt),
      verified: lastCheck.endedVerified ?? 0,
      faults: lastCheck.endedFaults ?? 0
    }
  ),
  faultsFound,
  faults: faults.map(({ chainedAt, detail, firstId, kind, lastId, of, rows, sequence }) => ({
    kind,
    of,
    detail,
    ...member("sequence", sequence),
    ...timeMember("since", chainedAt),
    ...member("rows", rows),
    ...member("firstId", firstId),
    ...member("lastId", lastId)
  })),
  ...member("next", next)
})
