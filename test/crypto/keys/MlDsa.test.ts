import { describe, it } from "@effect/vitest"
import { generateKeyPairSync, sign, verify } from "node:crypto"
import { assert } from "vitest"
import { importMlDsa, isMlDsaSupported, mlDsa, mlDsaOf, mlDsaSpki } from "../../../src/crypto/keys/MlDsa.ts"
import { oid, seq, spkiOf } from "../Pki.ts"

describe.each(mlDsa)("the parameter set $algorithm", (set) => {
  const key = generateKeyPairSync(set.name).privateKey
  const spki = spkiOf(key)

  it("has the OID and the sizes that Node.js gives its keys and signatures", () => {
    const algorithm = seq(oid(set.oid))
    assert.deepStrictEqual(spki.subarray(4, 4 + algorithm.length), algorithm)
    assert.deepStrictEqual(mlDsaSpki(set, spki.subarray(spki.length - set.keyOctets)), spki)
    assert.strictEqual(sign(null, Buffer.alloc(1), key).length, set.signatureOctets)
    assert.strictEqual(mlDsaOf(set.oid), set)
  })

  it("is supported by the runtime of the tests, and imports its own keys", () => {
    assert.isTrue(isMlDsaSupported(set))
    const octets = Buffer.from("octets")
    const imported = importMlDsa(set, spki) ?? assert.fail("no key")
    assert.isTrue(verify(null, octets, imported, sign(null, octets, key)))
  })

  it("imports no key of another type, and no octets that are not a key", () => {
    for (const other of mlDsa.filter((one) => one !== set)) assert.isUndefined(importMlDsa(other, spki))
    for (const octets of [new Uint8Array(), spki.subarray(1), spki.subarray(0, -1)]) {
      assert.isUndefined(importMlDsa(set, octets))
    }
  })
})
