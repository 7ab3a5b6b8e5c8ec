import { describe, it } from "@effect/vitest"
import { Result } from "effect"
import { createPrivateKey, generateKeyPairSync } from "node:crypto"
import { assert } from "vitest"
import type { LeafKey } from "../../../src/crypto/keys/LeafKeys.ts"
import { defaultLeafKeys, leafKeys } from "../../../src/crypto/keys/LeafKeys.ts"
import type { Csr } from "../../../src/crypto/x509/Csr.ts"
import { parseCsr, reopenCsr } from "../../../src/crypto/x509/Csr.ts"
import type { CsrRefused } from "../../../src/crypto/x509/CsrRefused.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import {
  algorithms,
  bitString,
  csrOf,
  type CsrParts,
  ecKey,
  hexed,
  mutate,
  oid,
  rsaKey,
  seeded,
  seq,
  spkiOf
} from "../Pki.ts"

/* Requests with a key of ML-DSA (RFC 9881). Node.js makes the keys and the signatures. */

const sets = [
  { name: "ml-dsa-44", spoken: "ML-DSA-44", arc: 17, keyOctets: 1312, signatureOctets: 2420 },
  { name: "ml-dsa-65", spoken: "ML-DSA-65", arc: 18, keyOctets: 1952, signatureOctets: 3309 },
  { name: "ml-dsa-87", spoken: "ML-DSA-87", arc: 19, keyOctets: 2592, signatureOctets: 4627 }
] as const

const keys = {
  "ml-dsa-44": generateKeyPairSync("ml-dsa-44").privateKey,
  "ml-dsa-65": generateKeyPairSync("ml-dsa-65").privateKey,
  "ml-dsa-87": generateKeyPairSync("ml-dsa-87").privateKey
}

const accepted = (csr: Uint8Array, names: ReadonlyArray<LeafKey> = leafKeys): Csr =>
  Result.getOrThrowWith(parseCsr(csr, names), (refused) => refused)

const refusal = (csr: Uint8Array, names: ReadonlyArray<LeafKey> = leafKeys): CsrRefused => {
  const read = parseCsr(csr, names)
  return Result.isFailure(read) ? read.failure : assert.fail("the request was accepted")
}

const reasonOf = (parts: CsrParts): string => refusal(csrOf(parts)).reason

describe.each(sets)("a request with a key of $spoken", ({ arc, keyOctets, name, signatureOctets, spoken }) => {
  const key = keys[name]
  const spki = spkiOf(key)
  const raw = spki.subarray(spki.length - keyOctets)
  const algorithm = seq(oid(`2.16.840.1.101.3.4.3.${arc}`))
  const signature = (parts: CsrParts = {}) => {
    const whole = csrOf({ key, ...parts })
    return whole.subarray(whole.length - signatureOctets)
  }

  it("is accepted if the key is named", () => {
    const csr = csrOf({ key })
    for (const read of [accepted(csr, [name]), Result.getOrThrow(reopenCsr(csr))]) {
      assert.strictEqual(read.keyType, name)
      assert.deepStrictEqual(Buffer.from(read.spki), spki)
      assert.deepStrictEqual(read.names, ["a.example.com"])
    }
  })

  it("is refused with key_type and the name of the key if the key is not named", () => {
    const others = leafKeys.filter((other) => other !== name)
    for (const names of [undefined, defaultLeafKeys, others, []]) {
      const { detail, reason } = Result.match(parseCsr(csrOf({ key }), names), {
        onFailure: (refused) => refused,
        onSuccess: () => assert.fail("the request was accepted")
      })
      assert.strictEqual(reason, "key_type")
      assert.strictEqual(
        detail,
        `The key is ${name}, and the accepted keys are ${(names ?? defaultLeafKeys).join(", ")}.`
      )
    }
  })

  it("is refused with undecodable if the key has another length, is a seed, or is wrapped once more", () => {
    const seed = createPrivateKey(key.export({ format: "pem", type: "pkcs8" })).export({ format: "jwk" })
    const octets = [
      raw.subarray(1),
      Buffer.concat([raw, Buffer.alloc(1)]),
      Buffer.alloc(0),
      Buffer.alloc(100_000),
      Buffer.from(String(seed["priv"]), "base64url"),
      seq(raw)
    ]
    for (const wrong of octets) {
      const csr = csrOf({ key, spki: seq(algorithm, bitString(wrong)) })
      assert.strictEqual(refusal(csr).reason, "undecodable", `${wrong.length} octets`)
      assert.include(refusal(csr).detail, spoken)
    }
    for (const other of sets.filter((set) => set.name !== name)) {
      const crossed = seq(seq(oid(`2.16.840.1.101.3.4.3.${other.arc}`)), bitString(raw))
      assert.strictEqual(reasonOf({ key, spki: crossed }), "undecodable", other.spoken)
    }
  })

  it("is refused with undecodable if the key has parameters", () => {
    for (const parameters of [hexed("0500"), hexed("3000"), oid("2.16.840.1.101.3.4.2.1")]) {
      const withParameters = seq(seq(oid(`2.16.840.1.101.3.4.3.${arc}`), parameters), bitString(raw))
      assert.strictEqual(reasonOf({ key, spki: withParameters }), "undecodable")
    }
  })

  it("is refused with signature if the signature is cut, too long, empty, of another request or by another key", () => {
    const other = generateKeyPairSync(name).privateKey
    const good = signature()
    const wrong = [
      good.subarray(1),
      good.subarray(0, -1),
      Buffer.concat([good, Buffer.alloc(1)]),
      Buffer.alloc(0),
      Buffer.alloc(signatureOctets),
      Buffer.alloc(100_000),
      signature({ extensions: [] }),
      csrOf({ key: other, spki }).subarray(-signatureOctets)
    ]
    for (const signature of wrong) assert.strictEqual(reasonOf({ key, signature }), "signature")
  })

  it("is refused with signature_algorithm if the algorithm has parameters or belongs to another key", () => {
    const withNull = seq(oid(`2.16.840.1.101.3.4.3.${arc}`), hexed("0500"))
    assert.strictEqual(reasonOf({ key, algorithm: withNull }), "signature_algorithm")
    const others = sets.filter((set) => set.name !== name).map((set) => seq(oid(`2.16.840.1.101.3.4.3.${set.arc}`)))
    // The last one is HashML-DSA, for which RFC 9881 has no use.
    const prehashed = seq(oid(`2.16.840.1.101.3.4.3.${arc + 15}`))
    for (const wrong of [algorithms.ecdsa, algorithms.rsa, algorithms.ed25519, ...others, prehashed]) {
      assert.strictEqual(reasonOf({ key, algorithm: wrong }), "signature_algorithm")
    }
  })

  it("is refused with key_type if the key is one of HashML-DSA", () => {
    const prehashed = seq(seq(oid(`2.16.840.1.101.3.4.3.${arc + 15}`)), bitString(raw))
    assert.strictEqual(reasonOf({ key, spki: prehashed }), "key_type")
  })

  it("is refused after each of 300 mutations, unless the same request is read", () => {
    const csr = csrOf({ key })
    const random = seeded(seedOf(9881))
    let refused = 0
    for (let time = runsOf(300); time > 0; time--) {
      const read = parseCsr(mutate(csr, random), leafKeys)
      if (Result.isFailure(read)) refused++
      else assert.deepStrictEqual(Buffer.from(read.success.der), csr)
    }
    assert.isAbove(refused, 0)
  })
})

describe("a signature of ML-DSA", () => {
  it("is refused with signature_algorithm on a request with a key of another type", () => {
    for (const key of [ecKey, rsaKey, generateKeyPairSync("ed25519").privateKey]) {
      const csr = csrOf({ key, algorithm: algorithms.mlDsa44, signature: Buffer.alloc(2420) })
      assert.strictEqual(refusal(csr, defaultLeafKeys).reason, "signature_algorithm")
      assert.include(refusal(csr, defaultLeafKeys).detail, "an algorithm for ML-DSA-44 keys, but holds an")
    }
  })

  it("does not make a request with a key of ECDSA valid, even if it verifies under another key", () => {
    const signer = keys["ml-dsa-44"]
    const csr = csrOf({ key: signer, spki: spkiOf(ecKey) })
    assert.strictEqual(refusal(csr).reason, "signature_algorithm")
  })
})
