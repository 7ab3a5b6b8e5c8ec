import * as Effect from "effect/Effect"
import { namedLeafOf } from "../../crypto/x509/CertId.ts"
import { decodeChain } from "../../crypto/x509/Decoded.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { windowOf } from "../Renewal.ts"
import { issuedOrder } from "./OrderRecords.ts"

/**
 * Returns whether an operator's script decides when a certificate should be renewed. Such a script is run only for
 * requests of clients.
 */
const isAsked = ({ profiles }: Pick<Config, "profiles">, profile: string): boolean =>
  profiles.some(({ name, signer }) =>
    name === profile && signer.backend === "custom" && signer.custom.supports_renewal_info
  )

/**
 * Returns the decoded certificates of an order, leaf first, with the certID and the time at which clients are told to
 * renew the certificate.
 */
export const decodedChain = Effect.fnUntraced(function*(config: Pick<Config, "profiles">, id: string) {
  const { certificate, profile, revokedAt } = yield* issuedOrder(id)
  const leaf = namedLeafOf(certificate)
  const isRevoked = revokedAt !== undefined
  return {
    certificates: decodeChain(certificate),
    // A certificate without an authority key identifier has no certID.
    certId: leaf?.certId.startsWith(".") === false ? leaf.certId : undefined,
    renewalWindow: leaf === undefined || (isAsked(config, profile) && !isRevoked)
      ? undefined
      : yield* windowOf(leaf, isRevoked)
  }
})

/** The result of {@link decodedChain}. */
export type DecodedChain = Effect.Success<ReturnType<typeof decodedChain>>
