import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { createPublicKey, sign } from "node:crypto"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence } from "../asn1/DerWriter.ts"
import { mlDsa } from "../keys/MlDsa.ts"

/*
 * The key of a CA, wherever it is stored. Whoever signs with it does not know whether it is in a file, in a token or in
 * another service.
 */

/**
 * The key gave no signature. Nothing in the request can cause that, so another attempt may succeed. `detail` is a clause
 * for operators without a secret.
 */
export class NotSigned extends Data.TaggedError("NotSigned")<{ readonly detail: string; readonly cause?: unknown }> {}

/** This service cannot sign with the key of the CA. `detail` names the kind of the key. */
export class UnsupportedIssuer extends Data.TaggedError("UnsupportedIssuer")<{ readonly detail: string }> {}

/** The key of a CA, and the only algorithm with which it signs. */
export interface CaKey {
  /** The public key as DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array
  /** The AlgorithmIdentifier of every signature, as DER. */
  readonly algorithm: Uint8Array
  readonly sign: (data: Uint8Array) => Effect.Effect<Uint8Array, NotSigned>
}

/**
 * How a key signs: the name of the digest for `node:crypto`, or null if the algorithm has a digest of its own, and the
 * AlgorithmIdentifier as DER.
 */
export interface SignatureAlgorithm {
  readonly digest: "sha256" | "sha384" | null
  readonly identifier: Uint8Array
}

const RSA: SignatureAlgorithm = {
  digest: "sha256",
  identifier: sequence(oid("1.2.840.113549.1.1.11"), element(Tag.null))
}
const P256: SignatureAlgorithm = { digest: "sha256", identifier: sequence(oid("1.2.840.10045.4.3.2")) }
const P384: SignatureAlgorithm = { digest: "sha384", identifier: sequence(oid("1.2.840.10045.4.3.3")) }

/** The parameter sets of ML-DSA that a CA may have. Its signatures have no parameters (RFC 9881 section 3). */
const ofMlDsa = new Map(
  mlDsa.filter(({ name }) => name !== "ml-dsa-44").map((set): [string, SignatureAlgorithm] => [
    set.name,
    { digest: null, identifier: sequence(oid(set.oid)) }
  ])
)

/**
 * Returns the algorithm for a public or a private key: P-256 and RSA sign with SHA-256, P-384 with SHA-384, and
 * ML-DSA-65 and ML-DSA-87 without another digest.
 */
export const signatureAlgorithm = (key: KeyObject): Result.Result<SignatureAlgorithm, UnsupportedIssuer> => {
  const family = key.asymmetricKeyType
  const curve = key.asymmetricKeyDetails?.namedCurve
  if (family === "rsa") return Result.succeed(RSA)
  if (family === "ec" && curve === "prime256v1") return Result.succeed(P256)
  if (family === "ec" && curve === "secp384r1") return Result.succeed(P384)
  const found = ofMlDsa.get(family ?? "")
  if (found !== undefined) return Result.succeed(found)
  return Result.fail(new UnsupportedIssuer({ detail: `a ${family ?? "secret"} key${curve ? ` on ${curve}` : ""}` }))
}

/** Returns a key that is in the memory of this process. */
export const makeCaKey = (privateKey: KeyObject): Result.Result<CaKey, UnsupportedIssuer> =>
  Result.map(signatureAlgorithm(privateKey), (algorithm) => ({
    spki: createPublicKey(privateKey).export({ type: "spki", format: "der" }),
    algorithm: algorithm.identifier,
    // A P-256 signature costs less than moving the work to another thread. Other signatures take hundreds of
    // microseconds. On this thread, they would delay every other request.
    sign: algorithm === P256 ? inline(privateKey, algorithm) : pooled(privateKey, algorithm)
  }))

const notSigned = (cause: unknown) => new NotSigned({ detail: "the CA key did not sign", cause })

const inline = (key: KeyObject, { digest }: SignatureAlgorithm): CaKey["sign"] => (data) =>
  Effect.try({ try: () => sign(digest, data, key), catch: notSigned })

const pooled = (key: KeyObject, { digest }: SignatureAlgorithm): CaKey["sign"] => (data) =>
  Effect.callback((resume) =>
    sign(
      digest,
      data,
      key,
      (cause, signature) => resume(cause === null ? Effect.succeed(signature) : notSigned(cause))
    )
  )

/** A key whose signatures are none, for certificates that are only shown. */
export const draftKey: CaKey = {
  spki: new Uint8Array(),
  algorithm: P256.identifier,
  sign: () => Effect.succeed(Uint8Array.of(0))
}
