import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { bits, element, oid, sequence, unsigned } from "../asn1/DerWriter.ts"
import { keyName } from "../keys/KeyName.ts"
import { keyWeakness } from "../keys/KeyWeakness.ts"
import { readSubjectKey } from "../keys/WeakKey.ts"
import { CA_USAGE, ISSUING_CONSTRAINTS } from "./CaCertificate.ts"
import type { CaKey, NotSigned } from "./CaKey.ts"
import { signatureAlgorithm } from "./CaKey.ts"
import { CsrRefused, refuse } from "./CsrRefused.ts"
import type { Signed } from "./CsrSignature.ts"
import { checkSignature, readFrame } from "./CsrSignature.ts"

/* The request for the certificate of a CA (RFC 2986). This is done rarely, so its speed does not matter. */

/**
 * Returns a signed request as DER. It asks for the basic constraints and the key usage of a CA that issues leaves,
 * because other roots take them from the request.
 */
export const signCaRequest = (key: CaKey, subject: Uint8Array): Effect.Effect<Uint8Array, NotSigned> => {
  const extensions = sequence(ISSUING_CONSTRAINTS, CA_USAGE)
  const info = sequence(
    unsigned(Uint8Array.of(0)),
    subject,
    key.spki,
    element(0xa0, sequence(oid("1.2.840.113549.1.9.14"), element(Tag.set, extensions)))
  )
  return Effect.map(key.sign(info), (signature) => sequence(info, key.algorithm, bits(signature)))
}

/** A request whose signature and key are accepted. What else it asks for does not matter. */
export interface CaRequest {
  /** The name that it asks for, as a DER Name. It is not empty. */
  readonly subject: Uint8Array
  readonly spki: Uint8Array
}

const emptyName = 2

/** Reads one request, and refuses a signature that does not verify, and a key with which a CA should not sign. */
export const readCaRequest = (der: Uint8Array): Result.Result<CaRequest, CsrRefused> =>
  Result.gen(function*() {
    const { spki, subject, ...signed } = yield* Result.mapError(
      decode(der, readRequest),
      ({ at, detail }) =>
        new CsrRefused({
          reason: "undecodable",
          detail: `The request is not a DER PKCS#10 request: ${detail}, at octet ${at}.`
        })
    )
    const key = yield* Result.mapError(
      readSubjectKey(spki),
      ({ detail, reason }) => new CsrRefused({ reason, detail })
    )
    const refusal = checkSignature(signed, key)
    if (refusal !== undefined) return yield* Result.fail(refusal)
    if (Result.isFailure(signatureAlgorithm(key.object))) {
      return yield* refuse(
        "key_type",
        `The key of the request is ${
          keyName(spki)
        }; a CA has a P-256, a P-384, an RSA, an ML-DSA-65 or an ML-DSA-87 key.`
      )
    }
    const weakness = keyWeakness(spki)
    if (weakness !== undefined) return yield* refuse("weak_key", `The key of the request is weak: ${weakness}.`)
    if (subject.length === emptyName) {
      return yield* refuse("undecodable", "The request has an empty subject, but a CA must have a name.")
    }
    return { subject, spki }
  })

const readRequest = (whole: DerReader): Signed & CaRequest => {
  const { algorithm, info, signature, signed } = readFrame(whole)
  const subject = info.raw(Tag.sequence)
  const spki = info.raw(Tag.sequence)
  if (info.more) info.skip(0xa0)
  info.end()
  return { signed, algorithm, signature, subject, spki }
}
