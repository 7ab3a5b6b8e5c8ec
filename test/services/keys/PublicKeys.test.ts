import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { PublicKeys } from "../../../src/services/keys/PublicKeys.ts"
import { ecKey, rsaKey, rsaSpki, spkiOf } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"

/** Writes a file with a list of keys. */
const listOf = (...lines: ReadonlyArray<string>): string => {
  const path = join(freshDirectory(), "keys")
  writeFileSync(path, lines.join("\n"))
  return path
}

const judged = (paths: ReadonlyArray<string>, spki: Uint8Array) =>
  Effect.provide(Effect.flatMap(PublicKeys, (keys) => keys.faultOf(spki)), PublicKeys.layer(paths))

const sha256 = (octets: Uint8Array) => createHash("sha256").update(octets).digest("hex")

describe("every key that clients send", () => {
  it.effect("is refused if the key itself is weak", () =>
    Effect.gen(function*() {
      assert.isUndefined(yield* judged([], spkiOf(ecKey)))
      assert.isUndefined(yield* judged([], spkiOf(rsaKey)))
      const fault = yield* judged([], rsaSpki(3n * 2n ** 2050n + 3n, 65537n))
      assert.deepInclude(fault, { reason: "weak_key" })
      assert.include(fault?.detail, "below 65536")
    }))

  it.effect("is refused if a list contains the SHA-256 of its SubjectPublicKeyInfo", () =>
    Effect.gen(function*() {
      const list = listOf("# keys from a leaked image", "", `  ${sha256(spkiOf(ecKey)).toUpperCase()}  # the third`)
      assert.deepInclude(yield* judged([list], spkiOf(ecKey)), { reason: "blocked_key" })
      assert.isUndefined(yield* judged([list], spkiOf(rsaKey)))
    }))

  it.effect("is refused if a list from Debian contains its modulus", () =>
    Effect.gen(function*() {
      const { n = "" } = rsaKey.export({ format: "jwk" })
      // The command `openssl rsa -noout -modulus | sha1sum | cut -c 21-40` prints the same.
      const modulus = Buffer.from(n, "base64url").toString("hex").toUpperCase()
      const name = createHash("sha1").update(`Modulus=${modulus}\n`).digest("hex").slice(20)
      const lists = [listOf("# openssl-blacklist", "00005890bc78bcbee3ca"), listOf(name, "")]
      assert.deepInclude(yield* judged(lists, spkiOf(rsaKey)), { reason: "blocked_key" })
      assert.isUndefined(yield* judged(lists.slice(0, 1), spkiOf(rsaKey)))
      assert.isUndefined(yield* judged(lists, spkiOf(ecKey)))
    }))

  it.effect("is checked once, however often it is sent", () =>
    Effect.gen(function*() {
      const keys = yield* PublicKeys
      const weak = rsaSpki(3n * 2n ** 2050n + 3n, 65537n)
      const [first, again] = [yield* keys.faultOf(weak), yield* keys.faultOf(Buffer.from(weak))]
      assert.isDefined(first)
      assert.strictEqual(first, again)
    }).pipe(Effect.provide(PublicKeys.layer([]))))

  it.effect("cannot be checked if a blocklist is unreadable or malformed, and the error names the file", () =>
    Effect.gen(function*() {
      const said = (path: string) => Effect.map(Effect.flip(judged([path], spkiOf(ecKey))), ({ message }) => message)
      assert.strictEqual(
        yield* said("/nowhere/keys"),
        "keys.blocklist_paths: /nowhere/keys cannot be read: no such file or directory."
      )
      const wrong = listOf("00005890bc78bcbee3ca", "00005890bc78bcbee3")
      assert.strictEqual(
        yield* said(wrong),
        `keys.blocklist_paths: ${wrong} holds neither 64 nor 20 hexadecimal digits in line 2.`
      )
    }))
})
