import { Effect } from "effect"
import { CrlNotReady, NotFound, ServerInternal } from "../../domain/AcmeError.ts"
import { Issuers } from "../../subsystems/signing/Issuers.ts"
import { readLedger } from "../../subsystems/signing/Ledger.ts"
import { PublishedCrls } from "../../subsystems/signing/PublishedCrls.ts"
import { ReadHooks } from "../../subsystems/signing/ReadHooks.ts"

/** The trust anchor of a profile, PEM. */
export const anchor = (profile: string) =>
  Effect.flatMap(Issuers, (issuers) => {
    const issuer = issuers.of(profile)
    return issuer === undefined ? new NotFound() : Effect.succeed(issuer.anchorPem)
  })

/**
 * The DER revocation list of a profile's CA, as it is stored ("GET /crl when" of decisions/local-ca.md); without a local
 * CA, the one the operator's script has, if any.
 */
export const revocationList = Effect.fnUntraced(function*(profile: string) {
  const issuer = (yield* Issuers).of(profile)
  if (issuer === undefined) {
    const printed = yield* Effect.orElseSucceed((yield* ReadHooks).crl(profile), () => undefined)
    return printed ?? (yield* new NotFound())
  }
  const der = yield* (yield* PublishedCrls).of(issuer.id)
  if (der !== undefined) return der
  const ledger = yield* Effect.either(readLedger(issuer.ledgerPath))
  return yield* ledger._tag === "Left" ? new ServerInternal({ cause: ledger.left }) : new CrlNotReady()
})
