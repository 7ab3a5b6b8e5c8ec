import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { OrderId } from "../../domain/Id.ts"
import { aside } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as expiring from "../../store/orders/ExpiringRows.ts"
import type { Expiring } from "../Expiring.ts"
import { shown } from "../Expiring.ts"
import { batch, judged } from "../ExpiringWindow.ts"

const daySeconds = 86_400

/** The content of a digest: the certificates of a profile that expire within this number of days. */
export interface Digest {
  /** The time of the digest, in epoch seconds. */
  readonly now: number
  /**
   * The certificates that were not replaced come first, then the replaced ones. Within each group, the certificates
   * that expire sooner come first. There are at most `most`.
   */
  readonly items: ReadonlyArray<Expiring>
  readonly total: number
  readonly superseded: number
}

/**
 * Counts the certificates that the operators' list finds (`Expiring.list`), and shows the first of these certificates.
 */
export const digest = Effect.fnUntraced(function*(profile: string, days: number, most: number) {
  const now = yield* currentSeconds
  const first = { open: [] as Array<expiring.Place>, gone: [] as Array<expiring.Place> }
  let [total, superseded] = [0, 0]
  yield* Stream.runForEach(
    judged({ profile, now, until: now + days * daySeconds }, batch, true),
    ({ gone, page }) =>
      Effect.sync(() => {
        total += page.length
        superseded += gone.size
        page.forEach((place, number) => {
          const places = gone.has(number) ? first.gone : first.open
          if (places.length < most) places.push(place)
        })
      })
  )
  const places = [...first.open, ...first.gone].slice(0, most)
  const items = yield* aside(shown(places, now))
  return { now, items, total, superseded } satisfies Digest
})

/** Returns the certificates of these orders that are neither revoked nor expired nor replaced. */
export const stillOpen = Effect.fnUntraced(function*(orders: ReadonlyArray<OrderId>) {
  const now = yield* currentSeconds
  const entries = yield* shown(orders.map((id) => ({ id, isCovered: 1 })), now)
  return entries.filter(({ notAfter, supersededBy }) => notAfter > now && supersededBy === undefined)
})
