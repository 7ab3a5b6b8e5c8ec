import { Effect } from "effect"
import { OrderId } from "../../domain/Id.ts"
import { namedLeafOf } from "../../subsystems/crypto/CertId.ts"
import * as expiring from "../../subsystems/db/expiring.ts"
import { currentSeconds } from "../acme/caller.ts"

/** How a certificate was followed by another: its order named it, or it has all its names. */
export type Via = "replaces" | "identifiers"

/** A certificate that ends soon, and the one that has taken its place. */
export interface Expiring {
  readonly order: expiring.Living
  /** Epoch seconds. */
  readonly notAfter: number
  /** Whole days until then, rounded down. */
  readonly daysRemaining: number
  readonly supersededBy: { readonly order: expiring.Living; readonly via: Via } | undefined
}

const daySeconds = 86_400
const batch = 2000
const beforeAll = { notAfter: 0, id: OrderId("00000000-0000-0000-0000-000000000000") }

const replacementOf = Effect.fnUntraced(
  function*({ accountId, certificate, profile }: expiring.Living, notAfter: number) {
    const leaf = certificate === undefined ? undefined : namedLeafOf(certificate)
    if (leaf === undefined) return undefined
    return yield* expiring.findReplacement({ profile, accountId, notAfter }, leaf.certId)
  }
)

/** Whether another certificate has taken the place of this one; a chain that cannot be read is not sure to have one. */
const isSuperseded = Effect.fnUntraced(function*({ id, notAfter, successorId }: expiring.Place) {
  if (successorId !== undefined) return true
  const order = yield* expiring.find(id)
  return order !== undefined && (yield* replacementOf(order, notAfter)) !== undefined
})

/** How many certificates of a profile end within each of these numbers of days and have not been replaced. */
export const countOpen = Effect.fnUntraced(function*(profile: string, days: ReadonlyArray<number>) {
  const now = yield* currentSeconds
  const window = { profile, now, until: now + Math.max(...days) * daySeconds }
  const counts = days.map(() => 0)
  let after: Pick<expiring.Place, "id" | "notAfter"> = beforeAll
  for (;;) {
    const places = yield* expiring.places(window, after, batch)
    for (const place of places) {
      if (yield* isSuperseded(place)) continue
      days.forEach((many, index) => {
        if (place.notAfter <= now + many * daySeconds) counts[index] = (counts[index] ?? 0) + 1
      })
    }
    after = places.at(-1) ?? after
    if (places.length < batch) return counts
    yield* Effect.yieldNow()
  }
})

const shown = Effect.fnUntraced(function*({ id, notAfter, successorId }: expiring.Place, now: number) {
  const order = yield* expiring.find(id)
  if (order === undefined) return []
  const replacement = yield* replacementOf(order, notAfter)
  const [otherId, via] = replacement === undefined
    ? [successorId, "identifiers"] as const
    : [replacement.id, "replaces"] as const
  const other = otherId === undefined ? undefined : yield* expiring.find(otherId)
  const entry: Expiring = {
    order,
    notAfter,
    daysRemaining: Math.max(0, Math.floor((notAfter - now) / daySeconds)),
    supersededBy: other === undefined ? undefined : { order: other, via }
  }
  return [entry]
})

/**
 * Issued, unrevoked, unexpired certificates that end within so many days, soonest first ("Expiry digest" of
 * decisions/notifications.md). `total` counts the window; with `hideSuperseded` the ones that were replaced are left
 * out, and `hidden` counts them.
 */
export const list = Effect.fnUntraced(function*(
  wanted: { readonly profile?: string | undefined; readonly days: number; readonly hideSuperseded: boolean },
  { limit, offset }: { readonly limit: number; readonly offset: number }
) {
  const now = yield* currentSeconds
  const window = { profile: wanted.profile, now, until: now + wanted.days * daySeconds }
  const page: Array<expiring.Place> = []
  let [after, seen, hidden]: [Pick<expiring.Place, "id" | "notAfter">, number, number] = [beforeAll, 0, 0]
  for (;;) {
    const places = yield* expiring.places(window, after, batch)
    for (const place of places) {
      if (wanted.hideSuperseded && (yield* isSuperseded(place))) hidden++
      else if (++seen > offset && page.length < limit) page.push(place)
    }
    after = places.at(-1) ?? after
    const isRead = places.length < batch || (!wanted.hideSuperseded && page.length >= limit)
    if (isRead) break
    yield* Effect.yieldNow()
  }
  const items = (yield* Effect.forEach(page, (place) => shown(place, now))).flat()
  return { items, total: yield* expiring.countEnding(window), hidden }
})
