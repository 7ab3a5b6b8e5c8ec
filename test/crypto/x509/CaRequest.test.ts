import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { checkPrimeSync, generateKeyPairSync, sign } from "node:crypto"
import * as pkijs from "pkijs"
import { assert } from "vitest"
import { encodeSubject } from "../../../src/crypto/x509/CaCertificate.ts"
import { makeCaKey } from "../../../src/crypto/x509/CaKey.ts"
import { readCaRequest, signCaRequest } from "../../../src/crypto/x509/CaRequest.ts"
import { cn, csrOf, csrOfPrimes, ecKey, openssl, opensslCsr, rsaKey, seq, spkiOf, utf8 } from "../Pki.ts"

const subject = encodeSubject({ commonName: "Örtliche CA", country: "CH" })
const named = { subject: seq(cn(utf8("A CA"))), extensions: [] }

const nextPrime = (from: bigint): bigint => {
  let candidate = from | 1n
  while (!checkPrimeSync(candidate)) candidate += 2n
  return candidate
}

const refusal = (der: Uint8Array): string =>
  Result.match(readCaRequest(der), { onFailure: ({ detail }) => detail, onSuccess: () => "accepted" })

describe("signCaRequest", () => {
  it.effect("makes a request that OpenSSL and pkijs verify, and that asks for a CA that issues leaves", () =>
    Effect.gen(function*() {
      const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey
      for (const key of [ecKey, p384, rsaKey]) {
        const der = yield* signCaRequest(Result.getOrThrow(makeCaKey(key)), subject)
        const text = openssl(
          ["req", "-inform", "DER", "-noout", "-text", "-verify", "-nameopt", "RFC2253,-esc_msb,utf8"],
          der
        ).toString()
        for (const part of ["CN=Örtliche CA,C=CH", "CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign"]) {
          assert.include(text, part)
        }
        assert.isTrue(yield* Effect.promise(() => pkijs.CertificationRequest.fromBER(der).verify()))
        const read = Result.getOrThrow(readCaRequest(der))
        assert.deepStrictEqual(Buffer.from(read.spki), spkiOf(key))
        assert.deepStrictEqual(Buffer.from(read.subject), Buffer.from(subject))
      }
    }))
})

describe("readCaRequest", () => {
  it("accepts a request of a CA, whatever extensions it asks for", () => {
    assert.strictEqual(refusal(csrOf(named)), "accepted")
    assert.strictEqual(refusal(csrOf({ ...named, attributes: [] })), "accepted")
  })

  it("refuses a signature that does not verify, or that has an unsafe digest", () => {
    const signature = sign("sha256", Buffer.from("another text"), ecKey)
    assert.include(refusal(csrOf({ ...named, signature })), "signature of the CSR does not verify")
    assert.include(refusal(opensslCsr(rsaKey, ["-sha1", "-subj", "/CN=A CA"])), "no longer safe, such as SHA-1")
  })

  it("refuses a key that is weak, or with which a CA does not sign", () => {
    const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey
    assert.include(refusal(csrOf({ ...named, key: small })), "1024 bits; 2048 to 8192")
    const first = nextPrime(7n << 1021n)
    assert.include(refusal(csrOfPrimes(first, nextPrime(first + 2n))), "is weak: the primes of the RSA modulus")
    const edwards = generateKeyPairSync("ed25519").privateKey
    assert.include(
      refusal(csrOf({ ...named, key: edwards })),
      "ed25519; a CA has a P-256, a P-384, an RSA, an ML-DSA-65 or an ML-DSA-87 key"
    )
    const p521 = generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey
    assert.include(refusal(csrOf({ ...named, key: p521 })), "a CA has a P-256")
  })

  it("refuses an empty name, and what is no request", () => {
    assert.include(refusal(csrOf({ extensions: [] })), "empty subject")
    assert.include(refusal(Buffer.from("hello")), "not a DER PKCS#10 request")
    assert.include(refusal(Buffer.concat([csrOf(named), Buffer.from([0])])), "not a DER PKCS#10 request")
    assert.include(refusal(seq()), "not a DER PKCS#10 request")
  })
})
