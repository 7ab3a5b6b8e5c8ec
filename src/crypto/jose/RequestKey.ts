import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { createPrivateKey, createPublicKey } from "node:crypto"

/* Signatures that this service makes as a client of other CAs. `Jws.ts` reads the requests of its own clients. */

// Most processes make no such signatures, so the library is loaded only when it is needed.
const library = Effect.promise(() => import("./Library.ts"))

/** A flattened JWS (RFC 7515 section 7.2.2) whose only header is the protected one. */
export interface SignedJws {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

/** A protected header without its `alg`, because the key determines the `alg`. */
export type Header = Readonly<Record<string, unknown>>

/** A P-256 key that signs requests. */
export interface RequestKey {
  /** The public half of the key, with only the required members. */
  readonly jwk: { readonly crv: string; readonly kty: string; readonly x: string; readonly y: string }
  /** The SHA-256 of the JWK (RFC 7638) in base64url. */
  readonly thumbprint: string
  /** Signs with ES256. */
  readonly sign: (header: Header, payload: string) => Effect.Effect<SignedJws>
}

/**
 * No requests can be signed with the key, because the text is not a private key in PEM, or the key is not ECDSA P-256.
 */
export class NoRequestKey extends Data.TaggedError("NoRequestKey")<{ readonly reason: "unreadable" | "kind" }> {}

/**
 * Reads a key from unencrypted PEM, either PKCS#8 or the older form that exists only for EC keys. The library itself
 * cannot read the older form.
 */
export const readRequestKey = (pem: string): Effect.Effect<RequestKey, NoRequestKey> =>
  Effect.gen(function*() {
    const key = yield* Effect.try({
      try: () => createPrivateKey(pem),
      catch: () => new NoRequestKey({ reason: "unreadable" })
    })
    if (key.asymmetricKeyType !== "ec" || key.asymmetricKeyDetails?.namedCurve !== "prime256v1") {
      return yield* new NoRequestKey({ reason: "kind" })
    }
    const { FlattenedSign, calculateJwkThumbprint, exportJWK } = yield* library
    const { crv = "", kty = "", x = "", y = "" } = yield* Effect.promise(() => exportJWK(createPublicKey(key)))
    const jwk = { crv, kty, x, y }
    return {
      jwk,
      thumbprint: yield* Effect.promise(() => calculateJwkThumbprint(jwk)),
      sign: (header, payload) =>
        flattened(() =>
          new FlattenedSign(Buffer.from(payload)).setProtectedHeader({ alg: "ES256", ...header }).sign(key)
        )
    }
  })

const flattened = (
  sign: () => Promise<{ readonly protected?: string; readonly payload: string; readonly signature: string }>
): Effect.Effect<SignedJws> =>
  Effect.map(Effect.promise(sign), ({ payload, protected: header = "", signature }) => ({
    protected: header,
    payload,
    signature
  }))

/**
 * Makes a P-256 key, as PEM. The caller must read the PEM back before it uses the key, as the service does at every
 * later startup.
 */
export const newRequestKey: Effect.Effect<string> = Effect.gen(function*() {
  const { exportPKCS8, generateKeyPair } = yield* library
  const pem = yield* Effect.promise(async () =>
    exportPKCS8((await generateKeyPair("ES256", { extractable: true })).privateKey)
  )
  return `${pem}\n`
})

/**
 * Returns a JWS that is signed with HS256. The secret must not be empty. An external account binding is such a JWS (RFC
 * 8555 section 7.3.4).
 */
export const signByMac = (secret: Uint8Array, header: Header, payload: string): Effect.Effect<SignedJws> =>
  Effect.flatMap(
    library,
    ({ FlattenedSign }) =>
      flattened(() =>
        new FlattenedSign(Buffer.from(payload)).setProtectedHeader({ alg: "HS256", ...header }).sign(secret)
      )
  )
