import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { listHead } from "../../../crypto/x509/Crl.ts"
import type { CrlIssuer } from "../../../services/signing/Signer.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import { compare, raiseAbove, restore } from "./RestoredRevocations.ts"

/* Compares the database with the record of the last issued list (docs/contribute/decisions/issued-lists.md). */

/**
 * Stores the revocations that the record names but the database lacks. Returns how many were stored, and the number
 * that the next list must exceed: the number in the record, or 0 if nothing in the record was new. Fails if the record
 * cannot be used. In that case, nothing may be signed, and the record must not be overwritten.
 */
export const reconcile = Effect.fnUntraced(function*({ id: issuer, issued }: CrlIssuer) {
  const octets = yield* issued.read
  if (octets === undefined) return { restored: 0, number: 0 }
  const stored = yield* crls.find(issuer)
  if (stored !== undefined && octets.equals(stored.der)) return { restored: 0, number: 0 }
  const source = { issuer, path: issued.path, list: yield* issued.verified(octets) }
  const restored = yield* restore(source, yield* compare(source), { actorKind: "system" })
  // The number is raised on every host. Otherwise another host could be about to store a list with this number.
  if (restored > 0) yield* raiseAbove(issuer, source.list.number)
  return { restored, number: source.list.number }
})

/**
 * Writes the stored list to the record, unless the record has a newer list. In that case, a list with a higher number
 * than the recorded one is signed soon. Returns how many revocations were restored to the database.
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

/** Returns the number of the recorded list, or undefined if there is no usable record. */
export const recordedNumber = ({ issued }: CrlIssuer): Effect.Effect<number | undefined> =>
  Effect.gen(function*() {
    const octets = yield* issued.read
    return octets === undefined ? undefined : (yield* issued.verified(octets)).number
  }).pipe(Effect.orElseSucceed(() => undefined))
