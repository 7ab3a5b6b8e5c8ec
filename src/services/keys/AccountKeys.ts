import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { importSpki } from "../../crypto/jose/Jwk.ts"

const capacity = 10_000

/**
 * Copies the octets of a key. Octets that are read from a request are part of a block of Node.js's pool, and a
 * reference to them would keep the whole block in memory.
 */
const withOctetsOfItsOwn = (key: AccountKey): AccountKey => ({
  ...key,
  spki: Buffer.from(Uint8Array.from(key.spki).buffer)
})

/**
 * A cache of imported account keys. Beyond 10 000 it drops the least recently used one. Importing a key costs twice as much
 * as verifying with it (docs/decisions/x509.md). A key never changes, so no entry can be stale.
 */
export class AccountKeys extends Context.Service<AccountKeys, {
  /** Returns the key of a stored DER SubjectPublicKeyInfo. */
  readonly get: (spki: Uint8Array) => AccountKey
  /** Keeps a key that was just imported from a request. */
  readonly keep: (key: AccountKey) => void
}>()("acme/services/keys/AccountKeys") {
  static readonly layer: Layer.Layer<AccountKeys> = Layer.sync(this, () => {
    const kept = new Map<string, AccountKey>()
    const put = (name: string, key: AccountKey): AccountKey => {
      kept.delete(name)
      kept.set(name, key)
      if (kept.size > capacity) {
        const [oldest] = kept.keys()
        if (oldest !== undefined) kept.delete(oldest)
      }
      return key
    }
    const nameOf = (spki: Uint8Array): string =>
      Buffer.from(spki.buffer, spki.byteOffset, spki.length).toString("latin1")
    return {
      get: (spki) => {
        const name = nameOf(spki)
        return put(name, kept.get(name) ?? withOctetsOfItsOwn(importSpki(spki)))
      },
      keep: (key) => void put(nameOf(key.spki), withOctetsOfItsOwn(key))
    }
  })
}
