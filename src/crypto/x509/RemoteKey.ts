import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { createPublicKey, hash, verify } from "node:crypto"
import { decode, Tag } from "../asn1/DerReader.ts"
import { bits, element, oid, sequence, unsigned } from "../asn1/DerWriter.ts"
import type { CaKey, SignatureAlgorithm } from "./CaKey.ts"
import { NotSigned, signatureAlgorithm, UnsupportedIssuer } from "./CaKey.ts"

/*
 * The key of a CA that never leaves its token or its service. The digest is computed here. Only the digest is sent, and
 * every signature is checked with the certificate's key before anybody uses it.
 */

/** What a token or a service is asked to sign. */
export interface AskedSignature {
  readonly family: "ec" | "rsa"
  readonly digestName: "sha256" | "sha384"
  readonly digest: Uint8Array
}

/** Returns how a key signs that is asked for digests only. A key of ML-DSA signs no digest. */
export const remoteAlgorithm = (
  publicKey: KeyObject
): Result.Result<SignatureAlgorithm & { readonly digest: string }, UnsupportedIssuer> =>
  Result.flatMap(signatureAlgorithm(publicKey), ({ digest, identifier }) =>
    digest === null
      ? Result.fail(new UnsupportedIssuer({ detail: `a ${publicKey.asymmetricKeyType} key, which must be in a file` }))
      : Result.succeed({ digest, identifier }))

/**
 * Returns the key for the public key of a certificate. `ask` returns the signature in the form of X.509: for an
 * elliptic curve the DER of r and s, for RSA that of PKCS#1 v1.5. `misfit` runs if a signature does not fit the key.
 */
export const makeRemoteKey = (
  publicKey: KeyObject,
  ask: (asked: AskedSignature) => Effect.Effect<Uint8Array, NotSigned>,
  misfit: Effect.Effect<void> = Effect.void
): Result.Result<CaKey, UnsupportedIssuer> =>
  Result.map(remoteAlgorithm(publicKey), ({ digest: digestName, identifier }) => ({
    spki: publicKey.export({ type: "spki", format: "der" }),
    algorithm: identifier,
    sign: (data) =>
      Effect.tap(
        ask({
          family: publicKey.asymmetricKeyType === "rsa" ? "rsa" : "ec",
          digestName,
          digest: hash(digestName, data, "buffer")
        }),
        (signature) => Effect.tapError(verified({ data, digestName, publicKey, signature }), () => misfit)
      )
  }))

/** Refuses a signature that does not fit the key. This is not done on the event loop: for P-384 it takes almost 1 ms. */
const verified = ({ data, digestName, publicKey, signature }: {
  readonly data: Uint8Array
  readonly digestName: string
  readonly publicKey: KeyObject
  readonly signature: Uint8Array
}): Effect.Effect<void, NotSigned> =>
  Effect.callback((resume) =>
    verify(
      digestName,
      data,
      publicKey,
      signature,
      (cause, isValid) =>
        resume(
          isValid ? Effect.void : new NotSigned({ detail: "the signature does not fit the CA certificate", cause })
        )
    )
  )

/** Returns the public key of a SubjectPublicKeyInfo, or undefined if the runtime cannot read it. */
export const publicKeyOf = (spki: Uint8Array): KeyObject | undefined =>
  Result.getOrUndefined(
    Result.try(() => createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" }))
  )

/** Returns the DER DigestInfo of a SHA-256 digest (RFC 8017 section 9.2), which CKM_RSA_PKCS signs. */
export const digestInfo = (digest: Uint8Array): Uint8Array =>
  sequence(sequence(oid("2.16.840.1.101.3.4.2.1"), element(Tag.null)), element(Tag.octetString, digest))

/** Returns the DER form of an ECDSA signature that is r and s one after the other, each of the curve's length. */
export const ecdsaSignature = (raw: Uint8Array): Uint8Array =>
  sequence(unsigned(raw.subarray(0, raw.length / 2)), unsigned(raw.subarray(raw.length / 2)))

/** Returns the SubjectPublicKeyInfo of an RSA key. */
export const rsaSpki = (modulus: Uint8Array, exponent: Uint8Array): Uint8Array =>
  sequence(
    sequence(oid("1.2.840.113549.1.1.1"), element(Tag.null)),
    bits(sequence(unsigned(modulus), unsigned(exponent)))
  )

/**
 * Returns the SubjectPublicKeyInfo of a key on an elliptic curve. `parameters` is the DER of the curve's name. A token
 * gives `point` as a DER OCTET STRING, but some give its content alone.
 */
export const ecSpki = (parameters: Uint8Array, point: Uint8Array): Uint8Array => {
  const spkiOf = (content: Uint8Array) => sequence(sequence(oid("1.2.840.10045.2.1"), parameters), bits(content))
  const wrapped = Result.map(decode(point, (reader) => reader.content(Tag.octetString)), spkiOf)
  // One in 256 points begins like an OCTET STRING of its own length.
  return Result.getOrElse(Result.filterOrFail(wrapped, isKey, () => undefined), () => spkiOf(point))
}

const isKey = (spki: Uint8Array): boolean =>
  Result.isSuccess(Result.try(() => createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" })))
