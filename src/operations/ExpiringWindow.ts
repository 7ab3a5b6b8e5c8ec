import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { serialPart } from "../crypto/x509/CertId.ts"
import { OrderId } from "../domain/Id.ts"
import type { Database, StorageFailed } from "../engine/sql/Database.ts"
import { aside } from "../engine/sql/Database.ts"
import { pages } from "../engine/sql/Pages.ts"
import * as expiring from "../store/orders/ExpiringRows.ts"

/*
 * Reads the certificates that expire in a window of time, and finds out which of these certificates were replaced
 * (docs/contribute/decisions/expiring.md).
 */

/** The number of certificates on a page, unless a caller needs fewer. */
export const batch = 2000

const beforeAll = { notAfter: 0, id: OrderId("00000000-0000-0000-0000-000000000000") }

/** A certificate that an order may name in `replaces`. `serial` is the second part of its certID. */
interface Named extends Omit<expiring.Replaceable, "certId"> {
  readonly profile: string
  readonly serial: string
}

/**
 * Returns the orders that name certificates in `replaces`, by the numbers of these certificates. `known` keeps the first
 * part of each profile's certIDs, which names the authority key, for the next pages. No chain is parsed, because there
 * may be very many chains.
 */
export const replacementsOf = Effect.fnUntraced(
  function*(open: ReadonlyArray<Named>, known: Map<string, ReadonlyArray<string>>) {
    const found = new Map<number, OrderId>()
    for (const profile of new Set(open.map((place) => place.profile))) {
      const authorities = known.get(profile) ?? (yield* expiring.authorities(profile))
      known.set(profile, authorities)
      const wanted = open.filter((place) => place.profile === profile).flatMap((
        { accountId, notAfter, number, serial }
      ) => authorities.map((authority) => ({ number, certId: `${authority}.${serial}`, accountId, notAfter })))
      for (const [number, other] of yield* expiring.replaced(profile, wanted)) found.set(number, other)
    }
    return found
  }
)

/**
 * Returns which certificates of a page were replaced, by their index in the page. A certificate was replaced if another
 * certificate has all its names, or if the order of another certificate names it.
 */
const followed = Effect.fnUntraced(
  function*(page: ReadonlyArray<expiring.Place>, known: Map<string, ReadonlyArray<string>>) {
    const found = new Set(page.flatMap(({ isCovered }, number) => isCovered === 1 ? [number] : []))
    const open = page.flatMap((place, number) =>
      found.has(number) || place.certSerial === undefined
        ? []
        : [{ ...place, number, serial: serialPart(place.certSerial) }]
    )
    for (const number of (yield* replacementsOf(open, known)).keys()) found.add(number)
    return found
  }
)

/** Streams the certificates of a window, soonest first, one page at a time. `read` reads each page. */
const placesOf = (
  window: expiring.Window,
  size: number,
  read: <A>(page: Effect.Effect<A, StorageFailed, Database>) => Effect.Effect<A, StorageFailed, Database>
) =>
  pages<expiring.Place, Pick<expiring.Place, "id" | "notAfter">, StorageFailed, Database>({
    from: beforeAll,
    size,
    read: (after, limit) => read(expiring.places(window, after, limit)),
    keyOf: (place) => place
  })

/**
 * Passes every certificate of the window to `use`, page by page, until `hasEnough` returns true. With
 * `isFollowedWanted`, also finds out whether each certificate was replaced. Otherwise no certificate counts as
 * replaced.
 */
export const walk = Effect.fnUntraced(function*(
  window: expiring.Window,
  isFollowedWanted: boolean,
  use: (place: expiring.Place, isFollowed: boolean) => void,
  hasEnough: () => boolean,
  size = batch
) {
  const known = new Map<string, ReadonlyArray<string>>()
  yield* Stream.runForEachWhile(
    placesOf(window, size, (page) => page),
    Effect.fnUntraced(function*(page) {
      const gone = isFollowedWanted ? yield* followed(page, known) : new Set()
      page.forEach((place, number) => use(place, gone.has(number)))
      return !hasEnough()
    })
  )
})

/**
 * Reads all certificates of a window, one page at a time. On request, each page also has the indexes of its replaced
 * certificates. Pages are read on a separate connection, and no transaction spans several pages.
 */
export const judged = (window: expiring.Window, size: number, isFollowedWanted: boolean) => {
  const known = new Map<string, ReadonlyArray<string>>()
  return Stream.mapEffect(placesOf(window, size, aside), (page) =>
    Effect.map(
      isFollowedWanted ? aside(followed(page, known)) : Effect.succeed(new Set<number>()),
      (gone) => ({ page, gone })
    ))
}
