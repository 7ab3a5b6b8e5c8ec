import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { pages } from "../../engine/sql/Pages.ts"
import { parseRfc3339 } from "../../engine/Time.ts"
import * as chained from "../../store/ChainedRows.ts"
import { readForOperator } from "./OperatorReads.ts"

/*
 * What the trail says about its own retention. Each deletion of old rows is recorded by a row in the same transaction,
 * and that row is chained like every other (docs/contribute/decisions/audit-chain.md, "Retention").
 */

const daySeconds = 86_400
/** Two transactions that commit at the same time may have times in another order. */
const overlapSeconds = 3600
/** A deletion is recorded within its transaction, so a little later than its time limit was computed. */
const slackSeconds = 60
const pageSize = 1000

interface State {
  readonly cutoff: number
  readonly since: number
}

const cutoffOf = (
  { createdAt, detail }: { readonly createdAt: number; readonly detail: string | undefined }
): number => {
  try {
    const { cutoff } = JSON.parse(detail ?? "{}") as { readonly cutoff?: unknown }
    const time = typeof cutoff === "string" ? parseRfc3339(cutoff) : undefined
    // The shortest retention is a day. A row with a later limit was not written by the service.
    return time === undefined || time > createdAt - daySeconds + slackSeconds ? Number.NEGATIVE_INFINITY : time
  } catch {
    return Number.NEGATIVE_INFINITY
  }
}

/**
 * Reads the deletions that the trail records. Returns the time before which rows were deleted, as far as it is known
 * (minus infinity if no row was deleted), and an effect that looks for deletions that were recorded since.
 */
export const pruningRecord = Effect.gen(function*() {
  const state = yield* Ref.make<State>({ cutoff: Number.NEGATIVE_INFINITY, since: 0 })
  const refreshed = Effect.gen(function*() {
    const { since } = yield* Ref.get(state)
    yield* pages({
      from: { sinceTime: since - overlapSeconds, sinceId: 0 },
      size: pageSize,
      read: (after, limit) => readForOperator(chained.pruned({ ...after, limit })),
      keyOf: ({ createdAt, id }) => ({ sinceTime: createdAt, sinceId: id })
    }).pipe(
      Stream.flattenIterable,
      Stream.runForEach((row) =>
        Ref.update(state, (known) => ({
          cutoff: Math.max(known.cutoff, cutoffOf(row)),
          since: Math.max(known.since, row.createdAt)
        }))
      )
    )
    return (yield* Ref.get(state)).cutoff
  })
  yield* refreshed
  return { known: Effect.map(Ref.get(state), ({ cutoff }) => cutoff), refreshed }
})
