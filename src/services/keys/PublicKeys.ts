import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { sha1, sha256 } from "../../crypto/Digest.ts"
import { keyWeakness, modulusOf } from "../../crypto/keys/KeyWeakness.ts"
import { readTextFile, said } from "../../engine/host/KeyFile.ts"

/** Why the service refuses a key. `detail` is a sentence for the client. */
export interface KeyFault {
  readonly reason: "weak_key" | "blocked_key"
  readonly detail: string
}

/** A list of refused keys could not be read. */
export class KeyListUnusable
  extends Data.TaggedError("KeyListUnusable")<{ readonly path: string; readonly detail: string }> {
  override get message(): string {
    return `keys.blocklist_paths: ${this.path} ${this.detail}.`
  }
}

const capacity = 10_000
const maxListBytes = 64 * 1024 * 1024
const linesInOneGo = 20_000

/** SHA-256 of a SubjectPublicKeyInfo, or the second half of Debian's SHA-1 of a modulus. */
const entry = /^(?:[0-9a-f]{64}|[0-9a-f]{20})$/

/** Returns the entry that an RSA key has in Debian's lists. */
const debianName = (modulus: Uint8Array): string =>
  sha1(`Modulus=${Buffer.from(modulus).toString("hex").toUpperCase().replace(/^0+/, "")}\n`).slice(20)

// Lets other fibers run, because requests are answered while a list of several hundred thousand keys is read.
const others = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

const read = Effect.fnUntraced(function*(path: string, into: Set<string>) {
  const { text: whole } = yield* Effect.mapError(
    readTextFile(path, maxListBytes),
    (error) => new KeyListUnusable({ path, detail: `cannot be read: ${said(error)}` })
  )
  const lines = whole.split("\n")
  for (const [index, line] of lines.entries()) {
    const text = line.replace(/#.*/, "").trim().toLowerCase()
    if (entry.test(text)) into.add(text)
    else if (text !== "") {
      const detail = `holds neither 64 nor 20 hexadecimal digits in line ${index + 1}`
      return yield* new KeyListUnusable({ path, detail })
    }
    if (index % linesInOneGo === linesInOneGo - 1) yield* others
  }
})

/**
 * Checks whether the public key of an account or a certificate is weak, or is on a list of the operator. The slow part
 * is done only once for each key.
 */
export class PublicKeys extends Context.Service<PublicKeys, {
  /** Returns what is wrong with a key, given as a well-formed SubjectPublicKeyInfo in its canonical DER encoding. */
  readonly faultOf: (spki: Uint8Array) => Effect.Effect<KeyFault | undefined>
}>()("acme/services/keys/PublicKeys") {
  /** Provides the checks. `paths` are files with lists of refused keys. */
  static readonly layer = (paths: ReadonlyArray<string>): Layer.Layer<PublicKeys, KeyListUnusable> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const blocked = new Set<string>()
        for (const path of paths) yield* read(path, blocked)
        const isBlocked = (spki: Uint8Array, name: string) => {
          const modulus = modulusOf(spki)
          return blocked.has(name) || (modulus !== undefined && blocked.has(debianName(modulus)))
        }
        const judge = (spki: Uint8Array, name: string): KeyFault | undefined => {
          const weakness = keyWeakness(spki)
          if (weakness !== undefined) return { reason: "weak_key", detail: `The key is unsafe: ${weakness}.` }
          return blocked.size > 0 && isBlocked(spki, name)
            ? { reason: "blocked_key", detail: "The key is on a list of keys that are known to others." }
            : undefined
        }
        const known = new Map<string, KeyFault | undefined>()
        return {
          faultOf: (spki) =>
            Effect.sync(() => {
              const name = sha256(spki)
              const fault = known.has(name) ? known.get(name) : judge(spki, name)
              known.delete(name)
              known.set(name, fault)
              if (known.size > capacity) {
                const [oldest] = known.keys()
                if (oldest !== undefined) known.delete(oldest)
              }
              return fault
            })
        }
      })
    )
}
