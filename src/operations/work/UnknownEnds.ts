import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import * as unknownEnds from "../../store/orders/UnknownEndRows.ts"
import { leavesOf } from "../Leaves.ts"

const most = 500
/**
 * The value that is stored for a chain that cannot be read. Such a chain is logged once and never read again, and its
 * certificate counts as never expiring.
 */
const unreadable = -1

const tell = (id: OrderId): Effect.Effect<void> =>
  Effect.andThen(
    emit("db_row_unreadable", {
      statement: "order_unknown_end",
      row: `id ${id}`,
      error: "certificate: its end cannot be read, so that nobody is told before it"
    }),
    count("acme_svc_database_rows_unreadable_total", {})
  )

/**
 * Stores the expiry of up to 500 certificates of a profile whose rows lack the expiry. If this fails, the failure is
 * only logged. Returns how many such rows there were.
 */
export const fill = (profile: string) =>
  Effect.gen(function*() {
    const found = yield* unknownEnds.find(profile, most)
    if (found.length === 0) return 0
    const leaves = yield* leavesOf(found.map(({ certificate }) => certificate))
    const ends = found.map(({ id }, number) => [id, leaves[number]?.notAfter ?? unreadable] as const)
    yield* unknownEnds.set(ends)
    const lost = ends.filter(([, end]) => end === unreadable)
    yield* Effect.forEach(lost, ([id]) => tell(id), { discard: true })
    const rows_updated = ends.length - lost.length
    if (rows_updated > 0) yield* emit("notify_expiry_backfilled", { profile, rows_updated })
    return found.length
  }).pipe(
    Effect.catch(({ message }) => Effect.as(emit("notify_expiry_backfill_failed", { profile, error: message }), 0))
  )
