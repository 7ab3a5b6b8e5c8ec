import * as Effect from "effect/Effect"
import type { Entropy } from "../../crypto/Entropy.ts"
import { nameOfHead, signedText } from "../../domain/AuditChain.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as headKeys from "../../services/audit/HeadKeyFile.ts"
import * as links from "../../store/ChainLinks.ts"

const daySeconds = 86_400

/**
 * Signs the newest link, unless a link was signed within the last day. Fails if the key cannot be used, or is the key
 * of a CA: whoever may sign certificates could otherwise also rewrite the trail, and a signature of one kind must never
 * pass for one of the other. The log then has the signed head, so that a copy exists outside of the database.
 */
export const signHead = (
  path: string,
  caKeys: ReadonlySet<string>
): Effect.Effect<void, headKeys.HeadKeyUnusable | StorageFailed, Database | Entropy> =>
  Effect.gen(function*() {
    const head = yield* links.head
    if (head === undefined || head.signature !== undefined) return
    const signedAt = yield* currentSeconds
    const before = yield* links.signed
    if (before?.signedAt !== undefined && Math.abs(signedAt - before.signedAt) < daySeconds) return
    const key = yield* headKeys.load(path)
    if (caKeys.has(key.id)) {
      return yield* new headKeys.HeadKeyUnusable({
        detail: `audit.chain_key_path: ${path} holds the key of a CA; heads need a key of their own.`
      })
    }
    const signature = key.sign(signedText(head, signedAt))
    const { hash, sequence } = head
    const isStored = yield* links.sign({ sequence, hash, signature, keyId: key.id, signedAt })
    if (isStored !== undefined) {
      yield* emit("audit_head_signed", { head: nameOfHead(head), audit_row: head.lastId, key_id: key.id, signature })
    }
  })
