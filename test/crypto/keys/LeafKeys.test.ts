import { describe, it } from "@effect/vitest"
import { generateKeyPairSync } from "node:crypto"
import { assert } from "vitest"
import type { LeafKey } from "../../../src/crypto/keys/LeafKeys.ts"
import { defaultLeafKeys, isLeafKey, leafKeys, leafKeySupported } from "../../../src/crypto/keys/LeafKeys.ts"
import { rsaSpki, spkiOf } from "../Pki.ts"

const ec = (namedCurve: string) => spkiOf(generateKeyPairSync("ec", { namedCurve }).privateKey)
const rsa = (bits: number) => rsaSpki((1n << BigInt(bits - 1)) | 0xabcdef1n, 65537n)

const keys: ReadonlyArray<readonly [name: string, spki: Uint8Array, accepting: ReadonlyArray<LeafKey>]> = [
  ["P-256", ec("P-256"), ["ecdsa-p256"]],
  ["P-384", ec("P-384"), ["ecdsa-p384"]],
  ["P-521", ec("P-521"), ["ecdsa-p521"]],
  ["secp256k1", ec("secp256k1"), []],
  ["RSA of 2047 bits", rsa(2047), []],
  ["RSA of 2048 bits", rsa(2048), ["rsa-2048+"]],
  ["RSA of 3071 bits", rsa(3071), ["rsa-2048+"]],
  ["RSA of 3072 bits", rsa(3072), ["rsa-2048+", "rsa-3072+"]],
  ["RSA of 4095 bits", rsa(4095), ["rsa-2048+", "rsa-3072+"]],
  ["RSA of 4096 bits", rsa(4096), ["rsa-2048+", "rsa-3072+", "rsa-4096+"]],
  ["RSA of 8192 bits", rsa(8192), ["rsa-2048+", "rsa-3072+", "rsa-4096+"]],
  ["Ed25519", spkiOf(generateKeyPairSync("ed25519").privateKey), ["ed25519"]],
  ["Ed448", spkiOf(generateKeyPairSync("ed448").privateKey), []],
  ["ML-DSA-44", spkiOf(generateKeyPairSync("ml-dsa-44").privateKey), ["ml-dsa-44"]],
  ["ML-DSA-65", spkiOf(generateKeyPairSync("ml-dsa-65").privateKey), ["ml-dsa-65"]],
  ["ML-DSA-87", spkiOf(generateKeyPairSync("ml-dsa-87").privateKey), ["ml-dsa-87"]],
  ["octets that are not a key", Uint8Array.of(1, 2, 3), []]
]

describe("the accepted keys of certificates", () => {
  it.each(keys)("are compared with %s", (_, spki, accepting) => {
    assert.deepStrictEqual(leafKeys.filter((key) => isLeafKey(spki, [key])), accepting)
    assert.isFalse(isLeafKey(spki, []))
    assert.strictEqual(isLeafKey(spki, leafKeys), accepting.length > 0)
  })

  it("contain every key by default, except those of ML-DSA", () => {
    const accepted = keys.filter(([, spki]) => isLeafKey(spki, defaultLeafKeys)).map(([name]) => name)
    const expected = keys.filter(([, , accepting]) => accepting.some((key) => !key.startsWith("ml-dsa")))
    assert.deepStrictEqual(accepted, expected.map(([name]) => name))
  })

  it("are all supported by the runtime of this service", () => {
    for (const key of leafKeys) assert.isTrue(leafKeySupported(key), key)
  })
})
