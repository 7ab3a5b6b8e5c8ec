import { describe, it } from "@effect/vitest"
import { Result } from "effect"
import { calculateJwkThumbprint, exportJWK, FlattenedSign } from "jose"
import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto"
import { assert } from "vitest"
import { accountAlgorithms, certificateAlgorithms, importJwk, importSpki } from "../../../src/crypto/jose/Jwk.ts"
import { checkAlgorithm, checkKey, parseJws, signatureFault, verifyJws } from "../../../src/crypto/jose/Jws.ts"
import { hexed, rsaKey, spkiOf } from "../Pki.ts"

/* Keys of the type AKP and signatures of ML-DSA (RFC 9964). The library jose is the second judge. */

const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const
const typeOf = { "ML-DSA-44": "ml-dsa-44", "ML-DSA-65": "ml-dsa-65", "ML-DSA-87": "ml-dsa-87" } as const

const refusal = (jwk: { readonly [member: string]: unknown }): string => {
  const read = importJwk(jwk)
  return Result.isFailure(read) ? read.failure.detail : assert.fail("the key was accepted")
}

/** Returns the JWK of a public key. The key is encoded and read back first, because some exports of a new key hang. */
const jwkOf = (spki: Buffer) => createPublicKey({ key: spki, format: "der", type: "spki" }).export({ format: "jwk" })

describe.each(algorithms)("a JWK of %s", (alg) => {
  const { privateKey } = generateKeyPairSync(typeOf[alg])
  const spki = spkiOf(privateKey)
  const jwk = jwkOf(spki)
  const pub = String(jwk["pub"])

  it("is read as the key that Node.js exported", async () => {
    for (const given of [jwk, { ...jwk, priv: "AAAA", kid: "1", use: "sig" }]) {
      const key = Result.getOrThrow(importJwk(given))
      assert.strictEqual(key.algorithm, alg)
      assert.deepStrictEqual(key.spki, spki)
      assert.strictEqual(key.thumbprint, await calculateJwkThumbprint({ kty: "AKP", alg, pub }))
    }
    const { algorithm, spki: stored, thumbprint } = importSpki(spki)
    assert.deepStrictEqual({ algorithm, stored, thumbprint }, {
      algorithm: alg,
      stored: spki,
      thumbprint: Result.getOrThrow(importJwk(jwk)).thumbprint
    })
  })

  it("is refused without alg, and with any other alg", () => {
    const { alg: _, ...without } = jwk
    for (const other of [without, { ...jwk, alg: "ES256" }, { ...jwk, alg: alg.toLowerCase() }, { ...jwk, alg: 44 }]) {
      assert.include(refusal(other), "The member alg of an AKP key must be")
    }
    for (const other of algorithms.filter((one) => one !== alg)) {
      assert.match(refusal({ ...jwk, alg: other }), /^The member pub must be base64url of exactly \d+ octets\.$/)
    }
  })

  it("is refused if pub is missing, of another type, padded, not base64url, of another length, or the seed", () => {
    const { pub: _, ...without } = jwk
    const octets = Buffer.from(pub, "base64url")
    const others = [undefined, null, 44, [pub], `${pub}=`, `${pub}==`, `${pub} `, pub.replace(/.$/, "*")]
    const lengths = [
      octets.subarray(1),
      Buffer.concat([octets, Buffer.alloc(1)]),
      ...[0, 32, 90_000].map((size) => Buffer.alloc(size))
    ]
    for (const wrong of [without, ...others.map((pub) => ({ ...jwk, pub }))]) {
      assert.include(refusal(wrong), "The member pub must be base64url of exactly")
    }
    for (const wrong of lengths) {
      assert.include(
        refusal({ ...jwk, pub: wrong.toString("base64url") }),
        "The member pub must be base64url of exactly"
      )
    }
  })

  it("verifies what jose signed, and nothing else", async () => {
    const sound = createPrivateKey(privateKey.export({ type: "pkcs8", format: "pem" }))
    const text = await new FlattenedSign(Buffer.from("{}")).setProtectedHeader({ alg }).sign(await exportJWK(sound))
    const jws = Result.getOrThrow(parseJws(Buffer.from(JSON.stringify(text))))
    const key = Result.getOrThrow(importJwk(jwk))
    assert.isTrue(verifyJws(jws, key))
    assert.isFalse(verifyJws({ ...jws, signingInput: Buffer.concat([jws.signingInput, Buffer.alloc(1)]) }, key))
    const other = Result.getOrThrow(importJwk(jwkOf(spkiOf(generateKeyPairSync(typeOf[alg]).privateKey))))
    assert.isFalse(verifyJws(jws, other))
    const cut = { ...jws, signature: jws.signature.subarray(1) }
    assert.isFalse(verifyJws(cut, key))
    assert.strictEqual(
      signatureFault(cut, key),
      `has ${cut.signature.length} octets, and one of ${alg} has ${jws.signature.length}`
    )
    assert.strictEqual(signatureFault(jws, other), "does not verify")
  })

  it("may sign for a certificate and never for an account", () => {
    const key = Result.getOrThrow(importJwk(jwk))
    assert.include(certificateAlgorithms(), alg)
    assert.isTrue(Result.isSuccess(checkAlgorithm(alg, certificateAlgorithms())))
    assert.isTrue(Result.isSuccess(checkKey(alg, key, certificateAlgorithms())))
    assert.isTrue(Result.isFailure(checkAlgorithm(alg, accountAlgorithms)))
    const refused = checkKey(alg, key, accountAlgorithms)
    assert.strictEqual(Result.isFailure(refused) ? refused.failure._tag : "", "BadPublicKey")
    for (const other of certificateAlgorithms().filter((one) => one !== alg)) {
      const crossed = checkKey(other, key, certificateAlgorithms())
      assert.strictEqual(Result.isFailure(crossed) ? crossed.failure._tag : "", "BadSignatureAlgorithm", other)
    }
    const classical = checkKey(alg, importSpki(spkiOf(rsaKey)), certificateAlgorithms())
    assert.strictEqual(Result.isFailure(classical) ? classical.failure._tag : "", "BadSignatureAlgorithm")
  })
})

describe("the thumbprint of an AKP", () => {
  it("is the one that RFC 9964 gives for the key of ML-DSA-44 whose seed is zero", () => {
    const der = hexed(`3034 020100 300b0609608648016503040311 0422 8020 ${"00".repeat(32)}`)
    const spki = spkiOf(createPrivateKey({ key: der, format: "der", type: "pkcs8" }))
    assert.match(String(jwkOf(spki)["pub"]), /^unH59k4Ru.*DZgbTP07e7gEWzw4MFRrndjbDQ$/)
    assert.strictEqual(
      Result.getOrThrow(importJwk(jwkOf(spki))).thumbprint,
      "T4xl70S7MT6Zeq6r9V9fPJGVn76wfnXJ21-gyo0Gu6o"
    )
  })
})
