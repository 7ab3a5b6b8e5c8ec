import type { Leaf } from "../../domain/AuditChain.ts"

/*
 * Compares the rows of the trail with the leaves of its chain (docs/contribute/decisions/audit-chain.md,
 * "Verification").
 */

/** What somebody has done to rows or links. */
export const faultKinds = ["changed", "removed", "inserted", "reordered"] as const

/** One of {@link faultKinds}. */
export type FaultKind = (typeof faultKinds)[number]

/** The link to which a leaf belongs, as far as it is shown. */
export interface LinkFacts {
  readonly sequence: number
  readonly chainedAt: number
  readonly lastId: number
}

/** A leaf and its link. */
export interface LinkedLeaf extends Leaf {
  readonly link: LinkFacts
}

/** A row that is not what the chain says. `expected` is the hash in the chain, and `found` the hash of the row. */
export interface Difference {
  readonly kind: Exclude<FaultKind, "reordered">
  readonly id: number
  readonly link: LinkFacts
  readonly expected: string | undefined
  readonly found: string | undefined
}

/** The result of {@link compared}. `missing` are the leaves without a row, which the retention may have deleted. */
export interface Compared {
  readonly verified: number
  readonly differences: ReadonlyArray<Difference>
  readonly missing: ReadonlyArray<LinkedLeaf>
  /** The number of leaves that were compared. */
  readonly taken: number
}

/**
 * Compares a page of rows with the leaves from an index on. Both are in the order of their ids. `upto` is the highest
 * id of which the page says anything. `links` are the links of these leaves in their order.
 */
export const compared = (
  rows: ReadonlyArray<Leaf>,
  leaves: ReadonlyArray<LinkedLeaf>,
  from: number,
  upto: number,
  links: ReadonlyArray<LinkFacts>
): Compared => {
  const differences: Array<Difference> = []
  const missing: Array<LinkedLeaf> = []
  let [verified, at, linkAt] = [0, from, 0]
  const missingBefore = (id: number) => {
    for (let leaf = leaves[at]; leaf !== undefined && leaf.id < id; leaf = leaves[++at]) missing.push(leaf)
  }
  for (const { hash, id } of rows) {
    missingBefore(id)
    const leaf = leaves[at]
    if (leaf?.id !== id) {
      while (linkAt < links.length - 1 && (links[linkAt]?.lastId ?? id) < id) linkAt++
      const link = links[linkAt]
      if (link !== undefined) differences.push({ kind: "inserted", id, link, expected: undefined, found: hash })
      continue
    }
    at++
    if (leaf.hash === hash) verified++
    else differences.push({ kind: "changed", id, link: leaf.link, expected: leaf.hash, found: hash })
  }
  missingBefore(upto + 1)
  return { verified, differences, missing, taken: at - from }
}

/** Differences of one kind in one link, of rows that follow each other. */
export interface RowFault {
  readonly kind: FaultKind
  readonly link: LinkFacts
  readonly firstId: number
  readonly lastId: number
  readonly rows: number
}

/**
 * Returns the differences as faults. If a row has the values that the chain has for another row that is not in its
 * place, both were reordered: two rows were swapped, or one was moved to another id.
 */
export const faultsOf = (differences: ReadonlyArray<Difference>): ReadonlyArray<RowFault> => {
  const wanted = new Map<string, Array<Difference>>()
  for (const difference of differences) {
    const { expected } = difference
    if (expected === undefined) continue
    const others = wanted.get(expected)
    if (others === undefined) wanted.set(expected, [difference])
    else others.push(difference)
  }
  const reordered = new Set<Difference>()
  for (const difference of differences) {
    const others = difference.found === undefined ? undefined : wanted.get(difference.found)
    if (others === undefined) continue
    reordered.add(difference)
    for (const other of others) reordered.add(other)
  }
  const faults: Array<RowFault> = []
  for (const difference of differences.toSorted((one, other) => one.id - other.id)) {
    const { id, link } = difference
    const kind = reordered.has(difference) ? "reordered" : difference.kind
    const last = faults.at(-1)
    if (last !== undefined && last.kind === kind && last.link.sequence === link.sequence) {
      faults[faults.length - 1] = { ...last, lastId: id, rows: last.rows + 1 }
    } else faults.push({ kind, link, firstId: id, lastId: id, rows: 1 })
  }
  return faults
}
