import * as Effect from "effect/Effect"
import type { Leaf, Link } from "../../domain/AuditChain.ts"
import { firstLink, nextLink } from "../../domain/AuditChain.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { lastRow } from "../../store/AuditSignals.ts"
import * as chained from "../../store/ChainedRows.ts"
import * as links from "../../store/ChainLinks.ts"
import { settledAfter } from "./SettledRows.ts"

/* Appends the rows of the audit trail to its chain (docs/contribute/decisions/audit-chain.md). */

/** The highest number of rows of a link. */
const rowsOfLink = 500

const marginSeconds = 3600

/** Begins the chain. The rows that exist now are not covered. Returns nothing if another process has begun it. */
const begin = Effect.fnUntraced(function*() {
  const lastId = (yield* lastRow)?.id ?? 0
  const chainedAt = yield* currentSeconds
  // A transaction that is still open may hold a row with a lower id and a slightly later time.
  const newestAt = Math.max(yield* chained.newestTime, chainedAt) + marginSeconds
  const link = yield* links.append(firstLink({ lastId, newestAt, chainedAt }))
  if (link !== undefined) yield* emit("audit_chain_begun", { audit_row: lastId })
  return link
})

/** What a pass has done. */
export interface Chained {
  readonly links: number
  readonly rows: number
  /** Whether there may be more rows that can be chained at once. */
  readonly hasMore: boolean
}

/**
 * Chains the committed rows, in up to `most` links. Each link is one statement, so an interruption or a crash leaves a
 * chain that is shorter but whole, and the next pass continues there. No insert waits for this.
 */
export const chainRows = (most: number): Effect.Effect<Chained, StorageFailed, Database> =>
  Effect.gen(function*() {
    const done = { links: 0, rows: 0 }
    const begun = yield* links.head
    let head: Link | undefined = begun ?? (yield* begin())
    if (head === undefined) return { ...done, hasMore: false }
    const { isSettled, upto } = yield* settledAfter(head.lastId)
    if (!isSettled) {
      yield* emit("audit_chain_postponed", { audit_row: head.lastId })
      return { ...done, hasMore: false }
    }
    while (done.links < most) {
      const leaves: ReadonlyArray<Leaf> = yield* chained.leaves({ after: head.lastId, upto, limit: rowsOfLink })
      if (leaves.length === 0) return { ...done, hasMore: false }
      const next: Link | undefined = yield* links.append(nextLink(head, leaves, yield* currentSeconds))
      if (next === undefined) return { ...done, hasMore: false } // another process chains these rows
      head = next
      done.links += 1
      done.rows += leaves.length
      if (head.lastId >= upto) return { ...done, hasMore: false }
      yield* Effect.yieldNow
    }
    return { ...done, hasMore: true }
  })
