import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { listHead } from "../../../crypto/x509/Crl.ts"
import type { CrlIssuer } from "../../../services/signing/Signer.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import { compare, raiseAbove, restore } from "./RestoredRevocations.ts"

/* The database is compared with the record of the list that was issued last (docs/decisions/issued-lists.md). */

/**
 * Records the revocations that the record names and the database lacks. Answers how many they were, and the number
 * above which the next list must be: that of the record, or 0 if it had nothing new. Fails if the record cannot be
 * used; then nothing may be signed or written over it.
 */
export const reconcile = Effect.fnUntraced(function*({ id: issuer, issued }: CrlIssuer) {
  const octets = yield* issued.read
  if (octets === undefined) return { restored: 0, number: 0 }
  const stored = yield* crls.find(issuer)
  if (stored !== undefined && octets.equals(stored.der)) return { restored: 0, number: 0 }
  const source = { issuer, path: issued.path, list: yield* issued.verified(octets) }
  const restored = yield* restore(source, yield* compare(source), { actorKind: "system" })
  // On every host. Otherwise the list may be one that a neighbour is about to store.
  if (restored > 0) yield* raiseAbove(issuer, source.list.number)
  return { restored, number: source.list.number }
})

/**
 * Writes the stored list to the record, unless the record holds a newer list. In that case the successor of the newer
 * list is signed soon. Returns how many revocations were restored to the database.
 */
export const keepRecord = Effect.fnUntraced(function*(crl: CrlIssuer) {
  const { number, restored } = yield* reconcile(crl)
  const stored = yield* crls.find(crl.id)
  if (stored === undefined) return restored
  const isNewer = Result.match(listHead(stored.der), {
    onFailure: () => false,
    onSuccess: (head) => number > head.number
  })
  if (!isNewer && (yield* crl.issued.read)?.equals(stored.der) !== true) yield* crl.issued.write(stored.der)
  return restored
})

/** The number of the list that is recorded; undefined where none is, or none that can be used. */
export const recordedNumber = ({ issued }: CrlIssuer): Effect.Effect<number | undefined> =>
  Effect.gen(function*() {
    const octets = yield* issued.read
    return octets === undefined ? undefined : (yield* issued.verified(octets)).number
  }).pipe(Effect.orElseSucceed(() => undefined))
