import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readStoredChain } from "../../../crypto/x509/Chain.ts"
import { caCompromise } from "../../../domain/RevocationReason.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { tellUnreadable } from "../../../engine/sql/Query.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as certificates from "../../../store/orders/CertificateRows.ts"
import * as compromised from "../../../store/revocation/CompromisedIssuers.ts"
import { awaitStoring } from "../../../store/RowLock.ts"
import { unreadableChain } from "../../StoredCertificate.ts"
import { revoke } from "../Revocation.ts"

/* Revokes what a compromised CA has signed (docs/contribute/decisions/rotation.md, "A compromised CA"). */

/** How many orders one run of the job looks at. A list is signed after each run. */
const mostLookedAt = 1000

/**
 * Revokes the live certificates of a compromised CA in the next orders. Returns whether there are more orders to look
 * at. Nothing is left to do if the CA is not compromised.
 */
export const revokePage = Effect.fnUntraced(function*(issuer: string, limit = mostLookedAt) {
  const open = yield* compromised.open(issuer)
  if (open === undefined) return false
  // No certificate is stored after the declaration, but one may just be becoming visible.
  yield* transaction(awaitStoring)
  const now = yield* currentSeconds
  const page = yield* certificates.livePage({ now, after: open.scannedTo, limit })
  const by = {
    actorKind: open.actorKind,
    actorId: open.actorId,
    detail: { authorized_by: "operator" }
  } as const
  let count = 0
  for (const found of page) {
    const stored = readStoredChain(found.certificate)
    if (stored === undefined) yield* tellUnreadable(unreadableChain("certificates_live_page", found.orderId))
    if (stored?.issuerId !== issuer) continue
    const revoked = yield* revoke(found, "local_ca", caCompromise, by).pipe(
      Effect.map(Option.some),
      Effect.catchTags({
        WasRevoked: () => Effect.succeed(Option.none()),
        IssuerUnknown: () => Effect.succeed(Option.none())
      })
    )
    if (Option.isSome(revoked)) count++
  }
  const isMore = page.length === limit
  yield* compromised.scanned(issuer, page.at(-1)?.orderId ?? open.scannedTo, isMore ? undefined : now)
  if (count > 0) yield* emit("local_ca_compromised_revoked", { issuer, count })
  return isMore
})
