import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { HeadKey } from "../../crypto/keys/HeadKey.ts"
import type { Head, Link } from "../../domain/AuditChain.ts"
import {
  firstSequence,
  hashOfLink,
  leafOctets,
  nothingBefore,
  signedText,
  unpackLeaves
} from "../../domain/AuditChain.ts"
import * as chained from "../../store/ChainedRows.ts"
import type { StoredLink } from "../../store/ChainLinks.ts"
import * as links from "../../store/ChainLinks.ts"
import type { Difference, FaultKind, LinkedLeaf, LinkFacts } from "./ChainDifferences.ts"
import { compared, faultsOf } from "./ChainDifferences.ts"
import { readForOperator } from "./OperatorReads.ts"
import { pruningRecord } from "./PruningRecord.ts"

/*
 * Walks the chain of the audit trail and compares it with the rows (docs/contribute/decisions/audit-chain.md,
 * "Verification").
 */

const linksAtOnce = 25
const rowsAtOnce = 1000
/** Beyond this number, differences are counted, but neither kept nor compared with each other. */
const mostDifferences = 10_000
/** Reading a link costs about as much as reading this number of rows. */
const rowsPerLink = 10
/** The highest number of faults that are told one by one. */
const mostFaults = 1000

/** What a fault concerns: rows of the trail, links of the chain, the signature of a head, or a head kept outside. */
export type FaultOf = "rows" | "links" | "signature" | "head"

/** Something that was changed, removed, inserted or reordered. Times are epoch seconds. */
export interface ChainFault {
  readonly kind: FaultKind
  readonly of: FaultOf
  /** The link that tells, and when it was chained: until then the rows were as the chain has them. */
  readonly sequence?: number
  readonly chainedAt?: number
  readonly firstId?: number
  readonly lastId?: number
  readonly rows?: number
  readonly detail: string
}

const rowTexts: { readonly [K in FaultKind]: string } = {
  changed: "rows differ from what was chained",
  removed: "rows that were chained are gone, and no retention explains it",
  inserted: "rows appeared among chained rows",
  reordered: "rows have the values of other chained rows"
}

/** Where a walk is: the last link that was read. */
type Position = Pick<Link, "sequence"> & { readonly hash: string | undefined; readonly lastId: number | undefined }

/** The result of {@link walk}. */
export interface Walked {
  readonly links: number
  readonly verified: number
  /** The chained rows that the retention has deleted. */
  readonly pruned: number
  readonly faults: ReadonlyArray<ChainFault>
  /** The number of all faults, also of those that are not in the list. */
  readonly faultsFound: number
  /** The last link that was checked, if links remain. */
  readonly next: number | undefined
}

/** Shows the progress of a long check. `total` is the range of ids, and the report is the part that was checked. */
export type Around = <A, E, R>(
  total: number,
  work: (report: (done: number) => Effect.Effect<void>) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E, R>

/** How the progress of a check is shown. By default it is not shown. The command line provides its bar. */
export const ChainProgress = Context.Reference<{ readonly around: Around }>("acme/operations/operator/ChainProgress", {
  defaultValue: () => ({ around: (_, work) => work(() => Effect.void) })
})

/**
 * Checks links from a position up to the head, and the rows that they cover. Reads a few links and a thousand rows
 * at a time, and lets other work run between. Stops after about `mostRows` rows, at the end of a page of links. A link
 * counts like ten rows.
 */
export const walk = Effect.fnUntraced(function*(options: {
  readonly from: Position
  readonly head: Head
  readonly key: HeadKey | undefined
  readonly mostRows: number
  readonly report: (lastId: number) => Effect.Effect<void>
}) {
  const { head, key, mostRows, report } = options
  const pruning = yield* pruningRecord
  const faults: Array<ChainFault> = []
  const differences: Array<Difference> = []
  const done = { links: 0, verified: 0, pruned: 0, more: 0 }
  const told = (found: ReadonlyArray<ChainFault>) => {
    const room = Math.max(0, mostFaults - faults.length)
    faults.push(...found.slice(0, room))
    done.more += Math.max(0, found.length - room)
  }
  const differ = (found: ReadonlyArray<Difference>) => {
    const room = Math.max(0, mostDifferences - differences.length)
    differences.push(...found.slice(0, room))
    done.more += Math.max(0, found.length - room)
  }

  /** Compares the rows of links that follow each other. */
  const compareRows = Effect.fnUntraced(function*({ after, leaves, links }: Run) {
    const upto = links.at(-1)?.lastId ?? after
    let [at, from] = [0, after]
    while (from < upto) {
      const rows = yield* readForOperator(chained.leaves({ after: from, upto, limit: rowsAtOnce }))
      const end = rows.length < rowsAtOnce ? upto : rows.at(-1)?.id ?? upto
      const { missing, taken, ...found } = compared(rows, leaves, at, end, links)
      at += taken
      from = end
      done.verified += found.verified
      const known = yield* pruning.known
      const isOpen = missing.some(({ createdAt }) => createdAt >= known)
      const cutoff = isOpen ? yield* pruning.refreshed : known
      const removed = missing.filter(({ createdAt }) => createdAt >= cutoff)
      done.pruned += missing.length - removed.length
      differ([
        ...found.differences,
        ...removed.map(({ hash, id, link }) => ({
          kind: "removed" as const,
          id,
          link,
          expected: hash,
          found: undefined
        }))
      ])
      yield* report(end)
      yield* Effect.yieldNow
    }
  })

  let position = options.from
  while (position.sequence < head.sequence) {
    const page = yield* readForOperator(
      links.page({ after: position.sequence, upto: head.sequence, limit: linksAtOnce })
    )
    let run = emptyRun(position.lastId ?? 0)
    for (const link of page) {
      const isNext = link.sequence === position.sequence + 1 && position.hash !== undefined
      if (!isNext) {
        // Links are missing here, or this is the oldest link.
        yield* compareRows(run)
        run = emptyRun(link.sequence === firstSequence ? link.lastId : link.firstId - 1)
        const isFirst = link.sequence === firstSequence && position.sequence < firstSequence
        if (!isFirst && link.newestAt >= (yield* pruning.refreshed)) told([linksRemoved(position, link)])
      }
      told(faultsOfLink(link, position, key))
      extend(run, link)
      done.links++
      position = link
      yield* Effect.yieldNow
    }
    yield* compareRows(run)
    if (page.length === 0) {
      told([{
        kind: "removed",
        of: "links",
        sequence: head.sequence,
        detail: `the links ${position.sequence + 1} to ${head.sequence} were removed while they were read`
      }])
      break
    }
    const work = done.verified + done.pruned + done.more + differences.length + rowsPerLink * done.links
    if (work >= mostRows && position.sequence < head.sequence) break
  }

  const ofRows = faultsOf(differences).map(({ kind, link: { chainedAt, sequence }, ...rows }): ChainFault => ({
    kind,
    of: "rows",
    sequence,
    chainedAt,
    ...rows,
    detail: rowTexts[kind]
  }))
  const found = [...faults, ...ofRows]
  const walked: Walked = {
    links: done.links,
    verified: done.verified,
    pruned: done.pruned,
    faults: found.slice(0, mostFaults),
    faultsFound: found.length + done.more,
    next: position.sequence < head.sequence && position.hash !== undefined ? position.sequence : undefined
  }
  return walked
})

/** Links that follow each other, and their leaves. They cover the rows after an id. */
interface Run {
  readonly after: number
  readonly links: Array<LinkFacts>
  readonly leaves: Array<LinkedLeaf>
}

const emptyRun = (after: number): Run => ({ after, links: [], leaves: [] })

/** Adds a link and its leaves. A leaf outside of its link is left out: the link was changed. */
const extend = ({ after, leaves, links }: Run, { chainedAt, lastId, leaves: packed, sequence }: StoredLink): void => {
  const link: LinkFacts = { sequence, chainedAt, lastId } // differences keep this, and must not keep the leaves
  links.push(link)
  let last = leaves.at(-1)?.id ?? after
  for (const leaf of unpackLeaves(packed)) {
    if (leaf.id <= last || leaf.id > lastId) continue
    last = leaf.id
    leaves.push({ ...leaf, link })
  }
}

const linksRemoved = (position: Position, link: StoredLink): ChainFault => ({
  kind: "removed",
  of: "links",
  sequence: link.sequence,
  chainedAt: link.chainedAt,
  detail: position.hash === undefined
    ? `the links before ${link.sequence} were removed, and no retention explains it`
    : `the links ${position.sequence + 1} to ${link.sequence - 1} were removed, and no retention explains it`
})

const faultsOfLink = (link: StoredLink, position: Position, key: HeadKey | undefined): ReadonlyArray<ChainFault> => {
  const { chainedAt, hash, keyId, previous, sequence, signature, signedAt } = link
  const fault = (of: FaultOf, detail: string): ReadonlyArray<ChainFault> => [
    { kind: "changed", of, sequence, chainedAt, detail }
  ]
  const isNext = position.hash !== undefined && sequence === position.sequence + 1
  const before = sequence === firstSequence ? nothingBefore : isNext ? position.hash : previous
  const isWhole = hashOfLink(link) === hash && link.leaves.length === leafOctets * link.rowCount
  return [
    ...isWhole ? [] : fault("links", `the link ${sequence} does not fit its own hash`),
    ...previous === before
      ? []
      : fault("links", `the link ${sequence} does not follow the link before it, which was written again`),
    ...signature !== undefined && keyId === key?.id &&
        key?.verifies(signedText(link, signedAt ?? 0), signature) !== true
      ? fault("signature", `the signature of the head ${sequence} does not fit the link`)
      : []
  ]
}
