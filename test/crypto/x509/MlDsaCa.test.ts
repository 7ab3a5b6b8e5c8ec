import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, generateKeyPairSync, randomBytes, verify, X509Certificate } from "node:crypto"
import * as pkijs from "pkijs"
import { assert } from "vitest"
import { generateCa } from "../../../src/crypto/x509/CaCertificate.ts"
import { loadCa, readCaKey } from "../../../src/crypto/x509/CaMaterial.ts"
import { readCaRequest, signCaRequest } from "../../../src/crypto/x509/CaRequest.ts"
import { checkChain } from "../../../src/crypto/x509/Chain.ts"
import { encodeEntries, makeCrlSigner } from "../../../src/crypto/x509/Crl.ts"
import { decodeChain } from "../../../src/crypto/x509/Decoded.ts"
import { encryptionOctets } from "../../../src/crypto/x509/EncryptedKey.ts"
import { lintLeaf } from "../../../src/crypto/x509/Lint.ts"
import { pkcs8Of } from "../../../src/crypto/x509/Pkcs8.ts"
import { remoteAlgorithm } from "../../../src/crypto/x509/RemoteKey.ts"
import { readRevocationList, verifyList } from "../../../src/crypto/x509/RevocationList.ts"
import { generateKey } from "../../../src/crypto/x509/SelfSigned.ts"
import { DAY, makeCa, newSerial, NOW, requestOf } from "../Ca.ts"
import { cn, csrOf, der, ecKey, hexed, pem, rsaKey, seq, spkiOf, utf8 } from "../Pki.ts"

/* CAs of this service with keys of ML-DSA (RFC 9881). Debian's OpenSSL does not know such keys. */

const sets = [
  { type: "ml-dsa-65", oid: "0609608648016503040312", signature: 3309, key: 1952, expanded: 4032 },
  { type: "ml-dsa-87", oid: "0609608648016503040313", signature: 4627, key: 2592, expanded: 4896 }
] as const

const octetsOf = (text: string) =>
  Buffer.from(text.split("\n").filter((line) => !line.startsWith("-")).join(""), "base64")

/** Returns the seed of a key and what the runtime computed from it. */
const partsOf = (key: KeyObject, size: number) => {
  const whole = key.export({ type: "pkcs8", format: "der" })
  return {
    seed: Buffer.from(String(key.export({ format: "jwk" }).priv), "base64url"),
    expanded: whole.subarray(whole.length - size)
  }
}

describe.each(sets)("a CA with a key of $type", ({ expanded: size, key: keyOctets, oid, signature, type }) => {
  const algorithm = seq(hexed(oid))
  const pkcs8 = (inner: Uint8Array) => pem("PRIVATE KEY", seq(hexed("020100"), algorithm, der(0x04, inner)))

  it.effect("is made with identifiers without parameters, and is loaded again", () =>
    Effect.gen(function*() {
      const { certificatePem, material } = yield* Effect.promise(() => makeCa(type))
      const certificate = new X509Certificate(certificatePem)
      assert.strictEqual(certificate.publicKey.asymmetricKeyType, type)
      assert.isTrue(certificate.verify(certificate.publicKey))
      assert.strictEqual(certificate.raw.toString("hex").split(algorithm.toString("hex")).length - 1, 3)
      const parsed = pkijs.Certificate.fromBER(new Uint8Array(certificate.raw))
      assert.deepStrictEqual(Buffer.from(parsed.toSchema(true).toBER(false)), certificate.raw)
      assert.strictEqual(material.keyType, type)
      assert.strictEqual(material.keyIdentifier.length, 20)
      const [shown] = decodeChain(certificatePem)
      assert.deepInclude(shown, { keyType: type, signatureAlgorithm: type.toUpperCase() })
    }))

  it.effect("has a key file with the seed alone, in the clear and encrypted", () =>
    Effect.gen(function*() {
      const fields = { keyType: type, subject: { commonName: "CA" }, now: NOW, serial: newSerial() }
      const clear = yield* generateCa(fields)
      const octets = octetsOf(clear.privateKeyPem)
      assert.strictEqual(octets.toString("hex").slice(0, -64), `3034020100300b${oid}04228020`)
      const encrypted = yield* generateCa({
        ...fields,
        encryption: { passphrase: "correct horsé", random: randomBytes(encryptionOctets) }
      })
      assert.match(encrypted.privateKeyPem, /^-----BEGIN ENCRYPTED PRIVATE KEY-----/)
      assert.isBelow(octetsOf(encrypted.privateKeyPem).length, 256)
      const { publicKey } = new X509Certificate(encrypted.certificatePem)
      const opened = createPrivateKey({ key: encrypted.privateKeyPem, passphrase: "correct horsé" })
      assert.isTrue(verify(null, Buffer.from("x"), publicKey, yield* signedBy(opened)))
      const read = Result.getOrThrow(readCaKey(encrypted.privateKeyPem, "correct horsé"))
      Result.getOrThrow(loadCa(encrypted.certificatePem, read))
      assert.isTrue(Result.isFailure(readCaKey(encrypted.privateKeyPem, "correct horse")))
    }))

  it("reads a key from its seed, from what follows from it, and from both if they agree", () => {
    const key = generateKeyPairSync(type).privateKey
    const { expanded, seed } = partsOf(key, size)
    const forms = {
      seed: pkcs8(der(0x80, seed)),
      expanded: pkcs8(der(0x04, expanded)),
      both: pkcs8(seq(der(0x04, seed), der(0x04, expanded)))
    }
    for (const [name, text] of Object.entries(forms)) {
      assert.deepEqual(Result.getOrThrow(readCaKey(text)).spki, spkiOf(key), name)
    }
    assert.deepEqual(Buffer.from(pkcs8Of(key)), octetsOf(forms.seed))
    // Without the seed there is no shorter form.
    assert.deepEqual(Buffer.from(pkcs8Of(createPrivateKey(forms.expanded))), octetsOf(forms.expanded))
    const refused = [
      pkcs8(seq(der(0x04, randomBytes(32)), der(0x04, expanded))),
      pkcs8(der(0x80, seed.subarray(1))),
      pkcs8(der(0x04, expanded.subarray(1))),
      pem("PRIVATE KEY", seq(hexed("020100"), seq(hexed(oid), hexed("0500")), der(0x04, der(0x80, seed))))
    ]
    for (const text of refused) {
      assert.strictEqual(Result.isFailure(readCaKey(text)) && "refused", "refused")
    }
  })

  it.effect("signs leaves with classical keys and with keys of ML-DSA, which pass every check", () =>
    Effect.gen(function*() {
      const ca = yield* Effect.promise(() => makeCa(type))
      const keys = [
        [ecKey, "ecdsa"],
        [rsaKey, "rsa"],
        [generateKeyPairSync("ml-dsa-44").privateKey, "ml-dsa-44"]
      ] as const
      for (const [key, keyType] of keys) {
        const request = requestOf({ spki: spkiOf(key), keyType })
        const leaf = yield* ca.issuer.build(request)
        const lint = (octets: Uint8Array, lintIssuer = ca.lint) => lintLeaf(octets, { issuer: lintIssuer, request })
        assert.isUndefined(lint(leaf))
        assert.isTrue(new X509Certificate(leaf).verify(new X509Certificate(ca.certificatePem).publicKey))
        const changed = Buffer.from(leaf)
        changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
        assert.strictEqual(lint(changed), "signature")
        const other = yield* Effect.promise(() => makeCa("ecdsa-p256"))
        assert.strictEqual(lint(leaf, { ...ca.lint, publicKey: other.material.publicKey }), "algorithm")
        const expected = { spki: request.spki, names: request.names, now: NOW, issuer: ca.material }
        const chainOf = (octets: Uint8Array) => pem("CERTIFICATE", octets) + ca.material.chainPem
        assert.isUndefined(checkChain(chainOf(leaf), expected))
        assert.strictEqual(checkChain(chainOf(changed), expected), "sequence")
      }
    }))

  it.effect("signs lists that are longer by its signature only", () =>
    Effect.gen(function*() {
      const [ca, other, classical] = yield* Effect.promise(() =>
        Promise.all([makeCa(type), makeCa(type), makeCa("ecdsa-p256")])
      )
      const entries = encodeEntries(
        Array.from({ length: 1000 }, (_, at) => ({ serial: (at + 1).toString(16), revokedAt: NOW, reason: 1 }))
      )
      const fields = { number: 1, thisUpdate: NOW, nextUpdate: NOW + DAY, entries: [entries] }
      const list = yield* makeCrlSigner(ca.material, ca.key)(fields)
      const ofClassical = yield* makeCrlSigner(classical.material, classical.key)(fields)
      assert.isBelow(list.length - ofClassical.length, signature)
      const read = yield* readRevocationList(list)
      assert.strictEqual(read.entries.length, 1000)
      yield* verifyList(read, ca.material.publicKey)
      for (const { material } of [other, classical]) {
        assert.include((yield* Effect.flip(verifyList(read, material.publicKey))).detail, "does not verify")
      }
    }))

  it.effect("makes a request that another CA accepts", () =>
    Effect.gen(function*() {
      const { privateKey, spki } = yield* generateKey(type)
      const key = Result.getOrThrow(readCaKey(pem("PRIVATE KEY", pkcs8Of(privateKey))))
      assert.isAbove(spki.length, keyOctets)
      const request = yield* signCaRequest(key, seq(cn(utf8("CA"))))
      assert.deepEqual(Result.getOrThrow(readCaRequest(request)).spki, spki)
      const changed = Buffer.from(request)
      changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
      assert.isTrue(Result.isFailure(readCaRequest(changed)))
    }))

  it("cannot be in a token, which signs digests", () => {
    const refused = remoteAlgorithm(generateKeyPairSync(type).publicKey)
    assert.include(Result.isFailure(refused) ? refused.failure.detail : "", `a ${type} key, which must be in a file`)
  })
})

/** Signs a text, so that a key that was read is used. */
const signedBy = (key: KeyObject) =>
  Result.getOrThrow(readCaKey(pem("PRIVATE KEY", key.export({ type: "pkcs8", format: "der" })))).sign(Buffer.from("x"))

describe("a key of ML-DSA-44", () => {
  const key = generateKeyPairSync("ml-dsa-44").privateKey

  it("is refused for a CA, in its file and in a request", () => {
    const refused = readCaKey(pem("PRIVATE KEY", pkcs8Of(key)))
    assert.include(Result.isFailure(refused) ? refused.failure.detail : "", "unsupported type ml-dsa-44")
    const request = readCaRequest(csrOf({ key, subject: seq(cn(utf8("CA"))), extensions: [] }))
    const { detail } = Result.isFailure(request) ? request.failure : { detail: "" }
    assert.include(detail, "is ml-dsa-44; a CA has a P-256, a P-384, an RSA, an ML-DSA-65 or an ML-DSA-87 key")
  })
})
