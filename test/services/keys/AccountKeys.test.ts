import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { importJwk } from "../../../src/crypto/jose/Jwk.ts"
import { AccountId } from "../../../src/domain/Id.ts"
import { AccountKeys } from "../../../src/services/keys/AccountKeys.ts"

const imported = () => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  return Result.getOrThrow(importJwk({ ...publicKey.export({ format: "jwk" }) }))
}

const ids = [
  AccountId("00000000-0000-4000-8000-000000000001"),
  AccountId("00000000-0000-4000-8000-000000000002")
] as const

describe("AccountKeys", () => {
  it.effect("stores only the octets of a key, and not the larger block of memory into which they were read", () =>
    Effect.gen(function*() {
      const keys = yield* AccountKeys
      const [fresh, stored] = [imported(), imported()]
      keys.keep(ids[0], fresh)
      expect(keys.of({ id: ids[1], pubkey: stored.spki }).thumbprint).toBe(stored.thumbprint)
      for (const [id, { spki, thumbprint }] of [[ids[0], fresh], [ids[1], stored]] as const) {
        const kept = keys.cached(id)
        expect(kept?.thumbprint).toBe(thumbprint)
        expect(kept?.spki.equals(spki)).toBe(true)
        expect(kept?.spki.buffer.byteLength).toBe(spki.length)
      }
    }).pipe(Effect.provide(AccountKeys.layer)))

  it.effect("returns the key of the given row even if another key of the account was stored before", () =>
    Effect.gen(function*() {
      const keys = yield* AccountKeys
      const [former, present] = [imported(), imported()]
      keys.keep(ids[0], former)
      expect(keys.of({ id: ids[0], pubkey: present.spki }).thumbprint).toBe(present.thumbprint)
      expect(keys.cached(ids[0])?.thumbprint).toBe(present.thumbprint)
      expect(keys.cached(ids[1])).toBeUndefined()
    }).pipe(Effect.provide(AccountKeys.layer)))
})
