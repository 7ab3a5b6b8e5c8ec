import * as Effect from "effect/Effect"
import type { HeadKey } from "../../crypto/keys/HeadKey.ts"
import type { Head } from "../../domain/AuditChain.ts"
import { firstSequence, nameOfHead, signedText } from "../../domain/AuditChain.ts"
import { NoSuch } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import { find as findKey } from "../../services/audit/HeadKeyFile.ts"
import * as checks from "../../store/ChainChecks.ts"
import type { Span } from "../../store/ChainedRows.ts"
import * as chained from "../../store/ChainedRows.ts"
import * as links from "../../store/ChainLinks.ts"
import type { ChainFault, Walked } from "./ChainCheck.ts"
import { ChainProgress, walk } from "./ChainCheck.ts"
import { readForOperator } from "./OperatorReads.ts"

/* Says whether the audit trail is still what was chained (docs/contribute/decisions/audit-chain.md, "Verification"). */

/** What can be said about the signature of the newest signed head. */
export const signatureVerdicts = ["valid", "invalid", "other_key", "unchecked"] as const

/** The key with which signatures are checked, or why there is none. */
interface Keys {
  readonly key: HeadKey | undefined
  readonly reason: string | undefined
}

const keysOf = (path: string | undefined): Effect.Effect<Keys> =>
  path === undefined || path === ""
    ? Effect.succeed({ key: undefined, reason: "audit.chain_key_path is not set, so heads are not signed." })
    : Effect.match(findKey(path), {
      onFailure: ({ detail }) => ({ key: undefined, reason: detail }),
      onSuccess: (key): Keys => ({
        key,
        reason: key === undefined ? `audit.chain_key_path: ${path}: no such file or directory.` : undefined
      })
    })

type SignedHead = NonNullable<Effect.Success<typeof links.signed>>

const verdictOf = ({ keyId, signature, signedAt, ...link }: SignedHead, key: HeadKey | undefined) =>
  key === undefined
    ? "unchecked" as const
    : key.id !== keyId
    ? "other_key" as const
    : key.verifies(signedText(link, signedAt ?? 0), signature ?? "")
    ? "valid" as const
    : "invalid" as const

const nothing: Walked = { links: 0, verified: 0, pruned: 0, faults: [], faultsFound: 0, next: undefined }
const noRows: Span = { rows: 0, firstId: undefined, lastId: undefined }

/** Compares a head that somebody has kept outside with the chain. Returns a fault if it is not in the chain any more. */
const faultOfHeld = Effect.fnUntraced(function*(held: Head, oldest: number) {
  const name = nameOfHead(held)
  const link = yield* links.find(held.sequence)
  if (link?.hash === held.hash) return undefined
  const fault = (kind: "changed" | "removed", detail: string): ChainFault => ({
    kind,
    of: "head",
    sequence: held.sequence,
    ...link === undefined ? {} : { chainedAt: link.chainedAt },
    detail
  })
  if (link !== undefined) return fault("changed", `the head ${name} is not in the chain: its link was written again`)
  return held.sequence < oldest
    ? undefined
    : fault("removed", `the head ${name} is not in the chain: its link and those after it were removed`)
})

/** What {@link verify} needs to know. */
export interface VerifyOptions {
  /** The link after which the check begins. By default it begins with the oldest link. */
  readonly after: number | undefined
  /** A head that was kept outside. */
  readonly held: Head | undefined
  /** After about this number of rows the check stops, and says where it continues. */
  readonly mostRows: number
  /** The value of `audit.chain_key_path`, if the configuration is known. */
  readonly keyPath: string | undefined
  /** Whether rows that are not covered and rows that are not chained yet stay uncounted, unless they may be a fault. */
  readonly isBrief?: boolean
}

/**
 * Checks the chain. Counts the rows that are older than the chain, and those that are not chained yet; both counts are
 * zero if the check begins after a link. The check may begin and end within the chain, so that each call takes a
 * bounded time.
 */
export const verify = Effect.fn("AuditChain.verify")(function*(options: VerifyOptions) {
  const { after, held, isBrief = false, keyPath, mostRows } = options
  const { key, reason } = yield* keysOf(keyPath)
  const head = yield* links.head
  const oldest = yield* links.oldest
  const before = after === undefined ? undefined : yield* links.find(after)
  if (after !== undefined && before === undefined) {
    return yield* new NoSuch({ noun: "link of the audit chain", id: String(after) })
  }
  const signed = yield* links.signed
  const faults: Array<ChainFault> = []
  const isFromStart = before === undefined
  const below = oldest === undefined
    ? chained.anyId
    : oldest.sequence === firstSequence
    ? oldest.lastId
    : oldest.firstId - 1
  const mayBeFault = oldest !== undefined && oldest.sequence > firstSequence
  const older = isFromStart && (!isBrief || mayBeFault) ? yield* readForOperator(chained.span(0, below)) : noRows
  // Once the first link was deleted, the retention has deleted every row that is older than the chain.
  const isOlderFault = mayBeFault && older.rows > 0
  if (isOlderFault) {
    faults.push({
      kind: "inserted",
      of: "rows",
      sequence: oldest.sequence,
      chainedAt: oldest.chainedAt,
      rows: older.rows,
      ...older.firstId === undefined ? {} : { firstId: older.firstId },
      ...older.lastId === undefined ? {} : { lastId: older.lastId },
      detail: "rows have ids below the oldest link, whose rows the retention has deleted"
    })
  }
  const from = before ??
    { sequence: (oldest?.sequence ?? firstSequence) - 1, hash: undefined, lastId: undefined }
  const start = before?.lastId ?? below
  const { around } = yield* ChainProgress
  const walked = head === undefined ? nothing : yield* around(
    Math.max(0, head.lastId - start),
    (report) => walk({ from, head, key, mostRows, report: (lastId) => report(lastId - start) })
  )
  const fromHeld = held === undefined ? undefined : yield* faultOfHeld(held, oldest?.sequence ?? 0)
  const all = [...faults, ...fromHeld === undefined ? [] : [fromHeld], ...walked.faults]
  const faultsFound = walked.faultsFound + all.length - walked.faults.length
  for (const { kind } of all) yield* count("acme_svc_audit_chain_faults_total", { kind })
  const [worst] = all
  if (worst !== undefined) {
    yield* emit("audit_chain_faulty", { total: faultsFound, kind: worst.kind, detail: worst.detail })
  }
  return {
    ...walked,
    faults: all,
    faultsFound,
    began: oldest?.sequence === firstSequence ? oldest.chainedAt : undefined,
    head,
    signed: signed === undefined ? undefined : { ...signed, verdict: verdictOf(signed, key) },
    unsignedReason: reason,
    lastCheck: yield* checks.find,
    uncovered: isOlderFault ? noRows : older,
    unchained: isFromStart && !isBrief && head !== undefined
      ? yield* readForOperator(chained.span(head.lastId, chained.anyId))
      : noRows
  }
})

/** The result of {@link verify}. */
export type Verified = Effect.Success<ReturnType<typeof verify>>
