import * as Effect from "effect/Effect"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import type { OrderId } from "../../domain/Id.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { noOrder } from "../../store/campaigns/CampaignRows.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import * as crls from "../../store/revocation/Crls.ts"
import * as revocations from "../../store/revocation/Revocations.ts"

/*
 * Finds the stored revocation lists that somebody may need. The list of a CA that has ended stays in the database, and
 * nobody signs it again.
 */

/**
 * Makes an effect that returns the heads of the lists that somebody may need: those of the CAs in `issuers`, which
 * profiles have, and those of every other CA with certificates that have not expired. For another CA, each run looks at
 * `limit` certificates. Until it has looked at all of them, somebody may need the list.
 */
export const make = (issuers: ReadonlySet<string>, limit = 500) => {
  /** For each other CA, the order after which its next live certificate is looked for. */
  const lookedTo = new Map<string, OrderId>()
  const mayHaveLive = Effect.fnUntraced(function*(issuer: string, now: number) {
    let after = lookedTo.get(issuer) ?? noOrder
    const page = yield* certificates.livePage({ now, after, limit })
    for (const { certificate, orderId } of page) {
      if (readStoredChain(certificate)?.issuerId === issuer) break
      after = orderId
    }
    lookedTo.set(issuer, after)
    return page.length === limit || page.length > 0 && page.at(-1)?.orderId !== after
  })
  return Effect.gen(function*() {
    const now = yield* currentSeconds
    const revoked = new Set((yield* revocations.issuers(now)).map(({ issuer }) => issuer))
    return yield* Effect.filter(
      yield* crls.heads,
      ({ issuer }) =>
        issuers.has(issuer) || revoked.has(issuer)
          ? Effect.succeed(true)
          // An order that cannot be read may have such a certificate.
          : Effect.catchIf(mayHaveLive(issuer, now), ({ isUnreadable }) =>
            isUnreadable === true, () =>
            Effect.succeed(true))
    )
  })
}
