import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { importSpki } from "../../crypto/jose/Jwk.ts"
import type { Account } from "../../domain/Account.ts"
import type { AccountId } from "../../domain/Id.ts"

const capacity = 10_000

/**
 * Copies the octets of a key into memory of their own. Octets that were read from a request are part of a block of
 * Node.js's pool, and a reference to them would keep the whole block in memory.
 */
const withOctetsOfItsOwn = (key: AccountKey): AccountKey => ({
  ...key,
  spki: Buffer.from(Uint8Array.from(key.spki).buffer)
})

/**
 * A cache of imported account keys. If it holds more than 10 000 keys, the least recently used key is dropped.
 * Importing a key costs twice as much as verifying with it (docs/contribute/decisions/x509.md). The key of an account
 * may have been changed by another process, so callers that rely on a cached key must compare it with the row.
 */
export class AccountKeys extends Context.Service<AccountKeys, {
  /** Returns the key of the account as it was last seen here. */
  readonly cached: (id: AccountId) => AccountKey | undefined
  /** Returns the key in the row of an account. */
  readonly of: (account: Pick<Account, "id" | "pubkey">) => AccountKey
  /** Keeps a key that was just imported from a request. */
  readonly keep: (id: AccountId, key: AccountKey) => void
}>()("acme/services/keys/AccountKeys") {
  static readonly layer: Layer.Layer<AccountKeys> = Layer.sync(this, () => {
    const kept = new Map<AccountId, AccountKey>()
    const put = (id: AccountId, key: AccountKey): AccountKey => {
      kept.delete(id)
      kept.set(id, key)
      if (kept.size > capacity) {
        const [oldest] = kept.keys()
        if (oldest !== undefined) kept.delete(oldest)
      }
      return key
    }
    return {
      cached: (id) => {
        const key = kept.get(id)
        return key === undefined ? undefined : put(id, key)
      },
      of: ({ id, pubkey }) => {
        const key = kept.get(id)
        return put(id, key?.spki.equals(pubkey) === true ? key : withOctetsOfItsOwn(importSpki(pubkey)))
      },
      keep: (id, key) => void put(id, withOctetsOfItsOwn(key))
    }
  })
}
