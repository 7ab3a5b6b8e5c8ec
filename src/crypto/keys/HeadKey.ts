import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, createPublicKey, generateKeyPair, sign, verify } from "node:crypto"
import { sha256 } from "../Digest.ts"

/*
 * The key that signs the heads of the chain of the audit trail (docs/contribute/decisions/audit-chain.md, "Signed
 * heads").
 */

/** The text is not a private key in unencrypted PEM, or the key is of a kind that signs no heads. */
export class NoHeadKey extends Data.TaggedError("NoHeadKey")<{ readonly reason: "unreadable" | "kind" }> {}

/** A key that signs heads. */
export interface HeadKey {
  /** The SHA-256 of the SubjectPublicKeyInfo, in hexadecimal, as for the key of a CA. */
  readonly id: string
  /** Returns the signature of a text, in base64: Ed25519 (RFC 8032), or ECDSA with SHA-256 in DER. */
  readonly sign: (text: string) => string
  /** Returns whether a signature in base64 belongs to the text and this key. */
  readonly verifies: (text: string, signature: string) => boolean
}

const isFit = ({ asymmetricKeyDetails, asymmetricKeyType }: KeyObject): boolean =>
  asymmetricKeyType === "ed25519" ||
  (asymmetricKeyType === "ec" && asymmetricKeyDetails?.namedCurve === "prime256v1")

/** Reads a key in PEM: Ed25519 or ECDSA P-256, not encrypted. */
export const readHeadKey = (pem: string): Result.Result<HeadKey, NoHeadKey> => {
  const read = Result.try({ try: () => createPrivateKey(pem), catch: () => new NoHeadKey({ reason: "unreadable" }) })
  return Result.flatMap(read, (privateKey) => {
    if (!isFit(privateKey)) return Result.fail(new NoHeadKey({ reason: "kind" }))
    const publicKey = createPublicKey(privateKey)
    const digest = privateKey.asymmetricKeyType === "ed25519" ? null : "sha256"
    return Result.succeed({
      id: sha256(publicKey.export({ type: "spki", format: "der" })),
      sign: (text) => sign(digest, Buffer.from(text), privateKey).toString("base64"),
      verifies: (text, signature) => verify(digest, Buffer.from(text), publicKey, Buffer.from(signature, "base64"))
    })
  })
}

/** Makes an ECDSA P-256 key, as PEM of PKCS#8. */
export const newHeadKey: Effect.Effect<string> = Effect.callback((resume) => {
  // If the generator fails, the runtime is broken, and no caller can handle that.
  generateKeyPair("ec", { namedCurve: "P-256" }, (cause, _, privateKey) => {
    const pem = cause === null ? privateKey.export({ type: "pkcs8", format: "pem" }).toString() : ""
    resume(cause === null ? Effect.succeed(pem) : Effect.die(cause))
  })
})
