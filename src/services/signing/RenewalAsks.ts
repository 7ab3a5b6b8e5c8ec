import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { CampaignId, OrderId } from "../../domain/Id.ts"
import { emit } from "../../domain/words/Log.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { Database, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { asked } from "../../store/campaigns/CampaignCertificateRows.ts"
import { add } from "../../store/campaigns/CampaignRows.ts"

/** The highest number of certificates that are noted at once. More are forgotten; their clients ask again. */
const mostNoted = 10_000
const writtenAtOnce = 500
const flushEvery = "20 seconds"

/**
 * Notes for which certificates of campaigns clients have asked for renewal information, and writes this in batches
 * (docs/contribute/decisions/campaigns.md). What is noted is only a hint: a crash loses it, and the clients ask again.
 */
export class RenewalAsks extends Context.Service<RenewalAsks, {
  /** Notes that a client has asked for the certificate of an order. */
  readonly note: (order: OrderId) => Effect.Effect<void>
  /** Writes what is noted. What cannot be written stays noted. */
  readonly flush: Effect.Effect<void, StorageFailed>
  /** Writes every twenty seconds, forever. */
  readonly keepWriting: Effect.Effect<never>
}>()("acme/services/signing/RenewalAsks") {
  static readonly layer: Layer.Layer<RenewalAsks, never, Database> = Layer.effect(
    this,
    Effect.map(Database, (database) => {
      const noted = new Set<OrderId>()
      const write = Effect.fnUntraced(function*(orders: ReadonlyArray<OrderId>) {
        const now = yield* currentSeconds
        yield* transaction(Effect.gen(function*() {
          const counts = new Map<CampaignId, number>()
          for (const campaign of yield* asked(orders, now)) counts.set(campaign, (counts.get(campaign) ?? 0) + 1)
          // All processes lock the campaigns in the same order.
          for (const [campaign, many] of [...counts].toSorted(([one], [other]) => one < other ? -1 : 1)) {
            yield* add(campaign, { asked: many })
          }
        }))
        for (const order of orders) noted.delete(order)
      })
      const flush = Effect.provideService(
        Effect.gen(function*() {
          const orders = [...noted].toSorted()
          for (let from = 0; from < orders.length; from += writtenAtOnce) {
            yield* write(orders.slice(from, from + writtenAtOnce))
          }
        }),
        Database,
        database
      )
      return {
        flush,
        keepWriting: Effect.forever(Effect.delay(
          Effect.catch(flush, ({ message }) => emit("renewal_asks_unwritten", { error: message })),
          flushEvery
        )),
        note: (order) =>
          Effect.sync(() => {
            if (noted.size < mostNoted) noted.add(order)
          })
      }
    })
  )
}
