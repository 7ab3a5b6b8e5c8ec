import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { importJwk } from "../../../src/crypto/jose/Jwk.ts"
import { AccountKeys } from "../../../src/services/keys/AccountKeys.ts"

const imported = () => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  return Result.getOrThrow(importJwk({ ...publicKey.export({ format: "jwk" }) }))
}

describe("AccountKeys", () => {
  it.effect("keeps a key without the block of memory its octets were read into", () =>
    Effect.gen(function*() {
      const keys = yield* AccountKeys
      const [fresh, stored] = [imported(), imported()]
      keys.keep(fresh)
      for (const { spki, thumbprint } of [fresh, stored]) {
        const kept = keys.get(spki)
        expect(kept.thumbprint).toBe(thumbprint)
        expect(kept.spki.equals(spki)).toBe(true)
        expect(kept.spki.buffer.byteLength).toBe(spki.length)
      }
    }).pipe(Effect.provide(AccountKeys.layer)))
})
