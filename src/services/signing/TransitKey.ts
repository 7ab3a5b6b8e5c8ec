import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import type { CaKey, UnsupportedIssuer } from "../../crypto/x509/CaKey.ts"
import { NotSigned } from "../../crypto/x509/CaKey.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { makeRemoteKey, publicKeyOf } from "../../crypto/x509/RemoteKey.ts"
import type { Transit, TransitSettings, TransitVersion } from "../../engine/net/Transit.ts"
import { makeTransit, TransitFailed } from "../../engine/net/Transit.ts"
import type { Web } from "../../engine/net/Web.ts"

/* The key of a CA in the Transit engine of OpenBao or Vault (docs/contribute/decisions/ca-keys.md). */

const keyOver = (transit: Transit, publicKey: CaMaterial["publicKey"]): Result.Result<CaKey, UnsupportedIssuer> =>
  makeRemoteKey(publicKey, (asked) =>
    Effect.mapError(
      transit.sign(asked),
      ({ detail }) => new NotSigned({ detail: `the Transit engine did not sign: ${detail}` })
    ), transit.doubt)

/**
 * Returns the version of the key that belongs to the public key of a certificate, and the source of the key. A version
 * that is newer than the certificate signs nothing.
 */
export const makeTransitKey = (
  web: Web["Service"],
  settings: TransitSettings,
  publicKey: CaMaterial["publicKey"],
  limitMillis?: number
): Result.Result<{ readonly key: CaKey; readonly source: Transit }, UnsupportedIssuer> => {
  const spki = publicKey.export({ type: "spki", format: "der" })
  const source = makeTransit(
    web,
    settings,
    (versions) =>
      versions.find((one) => sameBytes(one.spki, spki)) ??
        (settings.key_version === 0
          ? "no version of the key matches the CA certificate"
          : `version ${settings.key_version} of the key and the CA certificate do not match`),
    limitMillis
  )
  return Result.map(keyOver(source, publicKey), (key) => ({ key, source }))
}

/**
 * Opens the key, and returns the version that belongs to `known`, the public key of a certificate. If there is no such
 * version, returns the newest one.
 */
export const findTransitKey = (
  web: Web["Service"],
  settings: TransitSettings,
  known?: Uint8Array
): Effect.Effect<CaKey, TransitFailed | UnsupportedIssuer> =>
  Effect.gen(function*() {
    let found: TransitVersion | undefined
    const transit = makeTransit(web, settings, (versions) => {
      const before = found
      const [newest] = versions
      const chosen = before === undefined
        ? versions.find(({ spki }) => known !== undefined && sameBytes(spki, known)) ?? newest
        : versions.find(({ spki }) => sameBytes(spki, before.spki))
      if (chosen === undefined) return "the server has another key than before"
      found = chosen
      return chosen
    })
    yield* transit.open
    const publicKey = found === undefined ? undefined : publicKeyOf(found.spki)
    if (publicKey === undefined) {
      return yield* new TransitFailed({ detail: "the public key is not decodable", isFault: true })
    }
    return yield* Effect.fromResult(keyOver(transit, publicKey))
  })
