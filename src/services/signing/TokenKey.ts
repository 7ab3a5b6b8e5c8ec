import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import type { CaKey, UnsupportedIssuer } from "../../crypto/x509/CaKey.ts"
import { NotSigned } from "../../crypto/x509/CaKey.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { digestInfo, ecdsaSignature, ecSpki, makeRemoteKey, publicKeyOf, rsaSpki } from "../../crypto/x509/RemoteKey.ts"
import type { TokenPublicKey } from "../../engine/token/pkcs11Module.ts"
import type { Token, TokenLimits, TokenSettings } from "../../engine/token/Token.ts"
import { makeToken, TokenFailed } from "../../engine/token/Token.ts"

/* The key of a CA in a PKCS#11 token (docs/contribute/decisions/ca-keys.md). */

const spkiOf = (key: TokenPublicKey): Uint8Array =>
  key.kind === "rsa" ? rsaSpki(key.modulus, key.exponent) : ecSpki(key.parameters, key.point)

const keyOver = (token: Token, publicKey: CaMaterial["publicKey"]): Result.Result<CaKey, UnsupportedIssuer> =>
  makeRemoteKey(publicKey, ({ digest, family }) =>
    (family === "ec"
      ? Effect.map(token.sign("CKM_ECDSA", digest), ecdsaSignature)
      : token.sign("CKM_RSA_PKCS", digestInfo(digest))).pipe(
        Effect.mapError(({ detail }) => new NotSigned({ detail: `the token did not sign: ${detail}` }))
      ))

/**
 * Returns the key in the token that belongs to the public key of a certificate, and the token as its source. The token is
 * opened when it is first needed. A token with another key signs nothing.
 */
export const makeTokenKey = (
  settings: TokenSettings,
  publicKey: CaMaterial["publicKey"],
  limits?: TokenLimits
): Result.Result<{ readonly key: CaKey; readonly source: Token }, UnsupportedIssuer> => {
  const spki = publicKey.export({ type: "spki", format: "der" })
  const source = makeToken(
    settings,
    (key) => sameBytes(spkiOf(key), spki) ? undefined : "the key of the token and the CA certificate do not match",
    limits
  )
  return Result.map(keyOver(source, publicKey), (key) => ({ key, source }))
}

/** Opens the token, and returns the key that the settings name, whatever its public key is. */
export const findTokenKey = (
  settings: TokenSettings,
  limits?: TokenLimits
): Effect.Effect<CaKey, TokenFailed | UnsupportedIssuer> =>
  Effect.gen(function*() {
    let spki: Uint8Array | undefined
    const token = makeToken(
      settings,
      (key) => {
        const found = spkiOf(key)
        if (spki !== undefined && !sameBytes(found, spki)) return "the token has another key than before"
        spki = found
        return undefined
      },
      limits
    )
    yield* token.open
    const publicKey = spki === undefined ? undefined : publicKeyOf(spki)
    if (publicKey === undefined) {
      return yield* new TokenFailed({ detail: "the public key in the token is not decodable", isFault: true })
    }
    return yield* Effect.fromResult(keyOver(token, publicKey))
  })
