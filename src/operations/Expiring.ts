import * as Effect from "effect/Effect"
import type { OrderId } from "../domain/Id.ts"
import * as expiring from "../store/orders/ExpiringRows.ts"
import { leavesOf } from "./Leaves.ts"

/**
 * How it is known that a certificate was replaced. `replaces` means that the order of another certificate names the
 * replaced certificate. `identifiers` means that another certificate has all names of the replaced certificate.
 */
export type Via = "replaces" | "identifiers"

/** A certificate that expires soon, and the certificate that replaces it, if there is one. */
export interface Expiring {
  readonly order: expiring.Living
  /** The expiry of the certificate in epoch seconds. */
  readonly notAfter: number
  /** The number of whole days until the certificate expires, rounded down. */
  readonly daysRemaining: number
  readonly supersededBy: { readonly order: expiring.Living; readonly via: Via } | undefined
}

const daySeconds = 86_400

/** Returns the orders that claim to replace the certificates of the given orders, by the id of the replaced order. */
const replacementsOf = Effect.fnUntraced(function*(orders: ReadonlyArray<expiring.Living>) {
  const leaves = yield* leavesOf(orders.map(({ certificate }) => certificate))
  const replaceable = orders.flatMap(({ accountId, certNotAfter, profile }, number) => {
    const leaf = leaves[number]
    return leaf === undefined || certNotAfter === undefined
      ? []
      : [{ profile, number, certId: leaf.certId, accountId, notAfter: certNotAfter }]
  })
  const found = new Map<OrderId, OrderId>()
  for (const profile of new Set(replaceable.map((one) => one.profile))) {
    const replaced = yield* expiring.replaced(profile, replaceable.filter((one) => one.profile === profile))
    for (const [number, other] of replaced) {
      const order = orders[number]
      if (order !== undefined) found.set(order.id, other)
    }
  }
  return found
})

/**
 * Shows certificates, each with the certificate that replaces it. Certificates that were revoked in the meantime are
 * left out. If `isCovered` is 0, there is no search for another certificate with the same names.
 */
export const shown = Effect.fnUntraced(function*(
  places: ReadonlyArray<Pick<expiring.Place, "id" | "isCovered">>,
  now: number
) {
  const orders = yield* expiring.find(places.map(({ id }) => id))
  const replacements = yield* replacementsOf([...orders.values()])
  const coverings = yield* expiring.coveringsOf(
    places.flatMap(({ id, isCovered }) => isCovered === 1 && !replacements.has(id) ? [id] : [])
  )
  const others = yield* expiring.find([...new Set([...replacements.values(), ...coverings.values()])])
  return places.flatMap(({ id }): ReadonlyArray<Expiring> => {
    const order = orders.get(id)
    if (order?.certNotAfter === undefined) return []
    const otherId = replacements.get(id) ?? coverings.get(id)
    const other = otherId === undefined ? undefined : others.get(otherId)
    return [{
      order,
      notAfter: order.certNotAfter,
      daysRemaining: Math.max(0, Math.floor((order.certNotAfter - now) / daySeconds)),
      supersededBy: other === undefined
        ? undefined
        : { order: other, via: replacements.has(id) ? "replaces" : "identifiers" }
    }]
  })
})
