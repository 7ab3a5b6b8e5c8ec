import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import type { HeadKey } from "../../crypto/keys/HeadKey.ts"
import { newHeadKey, readHeadKey } from "../../crypto/keys/HeadKey.ts"
import { emit } from "../../domain/words/Log.ts"
import { readTextFile, removeLeftovers, said, writeNewFile } from "../../engine/host/KeyFile.ts"

/*
 * The file with the key that signs the heads of the chain (docs/contribute/decisions/audit-chain.md, "Signed heads").
 */

/** The key cannot be used. `detail` is a sentence that names the configuration key and the file. */
export class HeadKeyUnusable extends Data.TaggedError("HeadKeyUnusable")<{ readonly detail: string }> {
  override get message(): string {
    return this.detail
  }
}

const unusable = (detail: string) => new HeadKeyUnusable({ detail: `audit.chain_key_path: ${detail}.` })

const parsed = (path: string, text: string): Effect.Effect<HeadKey, HeadKeyUnusable> =>
  Effect.mapError(Effect.fromResult(readHeadKey(text)), ({ reason }) =>
    unusable(
      reason === "unreadable"
        ? `${path} holds no private key in unencrypted PEM`
        : `${path} holds a key that is neither ECDSA P-256 nor Ed25519`
    ))

/** Reads the key, or returns `undefined` if there is no file yet. Changes nothing. */
export const find = (path: string): Effect.Effect<HeadKey | undefined, HeadKeyUnusable> =>
  Effect.gen(function*() {
    const file = yield* readTextFile(path).pipe(
      Effect.catchIf(({ reason }) => reason === "absent", () => Effect.succeed(undefined)),
      Effect.mapError((error) => unusable(`${path} cannot be used: ${said(error)}`))
    )
    if (file === undefined) return undefined
    if (file.permissive) yield* emit("audit_chain_key_permissive", { path })
    return yield* parsed(path, file.text)
  })

/** Reads the key. Makes the key if there is none, in a file that only its owner can read. */
export const load = (path: string): Effect.Effect<HeadKey, HeadKeyUnusable, Entropy> =>
  Effect.gen(function*() {
    yield* removeLeftovers(path)
    const known = yield* find(path)
    if (known !== undefined) return known
    const content = yield* newHeadKey
    const entropy = yield* Entropy
    yield* Effect.mapError(
      writeNewFile({ path, content, mode: 0o600, suffix: yield* entropy.token }),
      (error) => unusable(`${path} cannot be written: ${said(error)}`)
    )
    const key = yield* parsed(path, content)
    yield* emit("audit_chain_key_made", { path, key_id: key.id })
    return key
  })
