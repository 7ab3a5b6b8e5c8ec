import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { encodePem } from "../asn1/Pem.ts"
import { draftKey } from "./CaKey.ts"
import { readCertificate, SUBJECT_ALT_NAME } from "./Certificate.ts"
import type { DecodedCertificate } from "./Decoded.ts"
import { decodeChain } from "./Decoded.ts"
import type { IssuerParts, LeafRequest } from "./Leaf.ts"
import { makeLeafIssuer } from "./Leaf.ts"

/** A leaf that was built but not signed, in readable form. */
export interface LeafDraft {
  readonly decoded: DecodedCertificate
  /** Whether the subjectAltName is critical. */
  readonly isSanCritical: boolean
  /** The OIDs of the certificatePolicies. */
  readonly policies: ReadonlyArray<string>
  /** The leaf as PEM. Its signature is worthless. */
  readonly pem: string
}

const CERTIFICATE_POLICIES = "2.5.29.32"

const readPolicies = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) found.push(list.enter(Tag.sequence).oid())
  return found
}

/**
 * Builds a leaf as the CA would, without a signature, and reads it back. Returns undefined if the certificate of the CA
 * cannot be read.
 */
export const draftLeaf = Effect.fnUntraced(function*(issuer: IssuerParts, request: LeafRequest) {
  const made = makeLeafIssuer(issuer, draftKey)
  if (Result.isFailure(made)) return undefined
  const der = yield* Effect.orDie(made.success.build(request))
  const pem = encodePem("CERTIFICATE", der)
  const [decoded] = decodeChain(pem)
  const read = Result.getOrUndefined(readCertificate(der))
  if (decoded === undefined || read === undefined) return undefined
  const policies = read.extensions.find(({ oid }) => oid === CERTIFICATE_POLICIES)
  const draft: LeafDraft = {
    decoded,
    isSanCritical: read.extensions.some(({ critical, oid }) => oid === SUBJECT_ALT_NAME && critical),
    policies: policies === undefined ? [] : Result.getOrElse(decode(policies.value, readPolicies), () => []),
    pem
  }
  return draft
})
