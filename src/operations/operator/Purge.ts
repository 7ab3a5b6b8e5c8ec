import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { inBatches } from "../../engine/sql/Pages.ts"
import { currentSeconds, rfc3339 } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as purge from "../../store/orders/PurgeRows.ts"
import type { AtKeyboard } from "../Operator.ts"

/* Deletes all orders whose certificate expired long ago, for operators. */

const daySeconds = 86_400
const batch = 500

/**
 * Which orders are wanted: those of one profile or of all profiles whose certificates expired at least `expiredForDays`
 * days ago.
 */
export interface Wanted {
  readonly profile: string | undefined
  readonly expiredForDays: number
}

const cutoffOf = ({ expiredForDays }: Wanted) => Effect.map(currentSeconds, (now) => now - expiredForDays * daySeconds)

const profilesOf = ({ profile }: Wanted) =>
  profile === undefined
    ? Effect.map(orders.profiles, (found) => found.map((row) => row.profile))
    : Effect.succeed([profile])

/**
 * Counts the orders whose certificate has an unknown expiry. Such a certificate counts as in use, so a purge keeps its
 * order.
 */
const leftOf = (profiles: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(profiles, purge.left), (counts) => counts.reduce((sum, count) => sum + count, 0))

/**
 * Returns what a purge would delete: the number of orders for each profile, and when the first and the last of the
 * certificates of these orders expired. Times are epoch seconds.
 */
export const preview = Effect.fn("Purge.preview")(function*(wanted: Wanted) {
  const cutoff = yield* cutoffOf(wanted)
  const names = yield* profilesOf(wanted)
  const found = yield* Effect.forEach(
    names,
    (profile) => Effect.map(purge.preview({ profile, cutoff }), (counts) => ({ profile, ...counts }))
  )
  const profiles = found.filter(({ orders }) => orders > 0)
  const ends = (end: "oldest" | "newest") =>
    profiles.flatMap((one) => one[end] === undefined ? [] : [one[end]]).toSorted((one, other) => one - other)
  return {
    orders: profiles.reduce((sum, { orders }) => sum + orders, 0),
    oldest: ends("oldest")[0],
    newest: ends("newest").at(-1),
    profiles,
    left: yield* leftOf(names),
    cutoff
  }
})

/** One pass of a purge. It covers the orders of one profile, either those with revoked certificates or the others. */
interface Pass {
  readonly operator: AtKeyboard
  readonly ended: purge.Ended
  readonly isRevoked: boolean
}

const rowOf = ({ ended: { cutoff, profile }, operator }: Pass, gone: Gone) =>
  audit.insert({
    event: "orders_purged",
    actorKind: operator.kind,
    actorId: operator.id,
    profile,
    detail: { cutoff: rfc3339(cutoff), profile, ...gone }
  })

/**
 * Deletes one page of orders and writes the audit row, both in one transaction. The delete repeats the whole condition,
 * because a row may have changed since it was read.
 */
const pass = (of: Pass, gone: Ref.Ref<Gone>) => (limit: number) =>
  Effect.uninterruptible(Effect.gen(function*() {
    const [met, deleted] = yield* transaction(Effect.gen(function*() {
      const page = yield* purge.page(of.ended, of.isRevoked, limit)
      if (page.length === 0) return [0, { orders: 0, authorizations: 0 }] as const
      const ids = new Set((yield* purge.remove(of.ended, page.map(({ id }) => id))).map(({ id }) => id))
      const authorizations = page.reduce((sum, row) => sum + (ids.has(row.id) ? row.authorizations : 0), 0)
      const deleted = { orders: ids.size, authorizations }
      if (ids.size > 0) yield* rowOf(of, deleted)
      return [page.length, deleted] as const
    }))
    yield* Ref.update(gone, ({ authorizations, orders }) => ({
      orders: orders + deleted.orders,
      authorizations: authorizations + deleted.authorizations
    }))
    return met
  }))

interface Gone {
  readonly orders: number
  readonly authorizations: number
}

/**
 * Deletes orders whose certificate expired long ago. Each transaction deletes 500 orders and records how many it
 * deleted. An interruption takes effect between two transactions. After each transaction, `told` is called with the
 * number of orders deleted so far.
 */
export const run = Effect.fn("Purge.run")(function*(
  operator: AtKeyboard,
  wanted: Wanted,
  told: (gone: number) => Effect.Effect<void> = () => Effect.void
) {
  const cutoff = yield* cutoffOf(wanted)
  const names = yield* profilesOf(wanted)
  const gone = yield* Ref.make<Gone>({ orders: 0, authorizations: 0 })
  const tell = Effect.flatMap(Ref.get(gone), ({ orders }) => told(orders))
  yield* Effect.forEach(names, (profile) =>
    Effect.forEach([false, true], (isRevoked) => {
      const next = pass({ operator, ended: { profile, cutoff }, isRevoked }, gone)
      return inBatches(batch, (limit) => Effect.tap(next(limit), tell))
    }))
  yield* Effect.flatMap(Ref.get(gone), ({ orders }) => emit("order_purge_completed", { rows_removed: orders }))
  return { ...yield* Ref.get(gone), left: yield* leftOf(names), cutoff }
})
