import { Result } from "effect"
import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto"
import { assert, describe, it } from "vitest"
import { importJwk } from "../../../src/crypto/jose/Jwk.ts"
import { parseJws, signatureFault, verifyEs256, verifyJws } from "../../../src/crypto/jose/Jws.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import { accountKeyOf, newPrivateKey } from "../../support/Graph.ts"
import { acmeKey, signed } from "../../support/Handle.ts"
import { mutate, seeded } from "../Pki.ts"

describe("a valid JWS", () => {
  const url = "https://acme.example/profile/default/newOrder"
  const privateKeys = { ES256: newPrivateKey(), RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey }

  for (const [name, privateKey] of Object.entries(privateKeys)) {
    const [key, accountKey] = [acmeKey(privateKey), accountKeyOf(privateKey)]
    const header = { nonce: "AAAA", url, kid: "https://acme.example/profile/default/acct/1" }
    const good = signed(key, header, { identifiers: [{ type: "dns", value: "a.example" }] })

    it(`is refused after each of 10 000 mutations, unless the signed octets are unchanged (${name})`, () => {
      const sound = Result.getOrThrow(parseJws(Buffer.from(good)))
      assert.isTrue(verifyJws(sound, accountKey))
      const random = seeded(seedOf(8555))
      let refused = 0
      for (let time = runsOf(10_000); time > 0; time--) {
        const read = parseJws(mutate(Buffer.from(good), random))
        if (Result.isSuccess(read) && verifyJws(read.success, accountKey)) {
          assert.deepStrictEqual(read.success, sound)
        } else refused++
      }
      assert.isAbove(refused, 0)
    })
  }
})

describe("an ES256 signature", () => {
  const privateKey = newPrivateKey()
  const key = createPublicKey(privateKey)
  const input = Buffer.from("eyJhbGciOiJFUzI1NiJ9.e30")
  const dsaEncoding = "ieee-p1363"
  const half = (octet: number) => Buffer.alloc(32, octet)

  it("verifies even if the DER integer R or S needs fewer or more than 32 octets", () => {
    const starts = new Set<string>()
    for (let time = 0; time < 20_000 && starts.size < 6; time++) {
      const signature = sign("sha256", input, { key: privateKey, dsaEncoding })
      assert.isTrue(verifyEs256(input, key, signature), signature.toString("hex"))
      for (const at of [0, 32]) {
        const first = signature[at] ?? 0
        starts.add(`${at}: ${first === 0 ? "shorter" : first < 0x80 ? "as it is" : "with a sign"}`)
      }
    }
    assert.strictEqual(starts.size, 6)
  })

  it("gets the same verdict from verifyEs256 as from Node.js", () => {
    const good = sign("sha256", input, { key: privateKey, dsaEncoding })
    const [r, s] = [good.subarray(0, 32), good.subarray(32)]
    const forged = [half(0), half(1), half(0x80), half(0xff)].flatMap((
      other
    ) => [[other, s], [r, other], [other, other]])
    for (const pair of [[r, s], [s, r], ...forged]) {
      const signature = Buffer.concat(pair)
      const judged = verify("sha256", input, { key, dsaEncoding }, signature)
      assert.strictEqual(verifyEs256(input, key, signature), judged, signature.toString("hex"))
    }
  })

  it("is invalid if it has another length", () => {
    const good = sign("sha256", input, { key: privateKey, dsaEncoding })
    const der = sign("sha256", input, privateKey)
    for (const signature of [Buffer.alloc(0), good.subarray(1), Buffer.concat([good, half(0)]), der]) {
      assert.isFalse(verifyEs256(input, key, signature))
    }
  })
})

describe("an invalid signature", () => {
  const makes = {
    ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    ES384: () => generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey,
    ES512: () => generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey,
    EdDSA: () => generateKeyPairSync("ed25519").privateKey
  }

  it.each(Object.entries(makes))(
    "gets a message with both lengths if the length is wrong for %s",
    (algorithm, make) => {
      const [privateKey, other] = [make(), make()]
      const jws = Result.getOrThrow(
        parseJws(Buffer.from(signed(acmeKey(privateKey), { url: "https://acme.example/" }, {})))
      )
      const accountKey = accountKeyOf(privateKey)
      assert.isTrue(verifyJws(jws, accountKey))
      assert.strictEqual(signatureFault(jws, accountKeyOf(other)), "does not verify")
      const short = { ...jws, signature: jws.signature.subarray(1) }
      assert.isFalse(verifyJws(short, accountKey))
      const octets = jws.signature.length
      assert.strictEqual(
        signatureFault(short, accountKey),
        `has ${octets - 1} octets, and one of ${algorithm} has ${octets}`
      )
    }
  )
})

describe("an RSA key in a jwk", () => {
  const n = Buffer.alloc(256, 0xff)
  const said = (more: object) =>
    Result.match(importJwk({ kty: "RSA", n: n.toString("base64url"), e: "AQAB", ...more }), {
      onFailure: ({ detail }) => detail,
      onSuccess: () => "read"
    })

  it("gets a message that says which of its numbers is too large or zero, or is none", () => {
    const size = "An RSA key must have 2048 to 8192 bits."
    assert.strictEqual(said({}), "read")
    assert.strictEqual(said({ n: Buffer.alloc(1100, 0xff).toString("base64url") }), size)
    for (const zero of ["AA", ""]) {
      assert.strictEqual(said({ n: zero }), size)
      assert.strictEqual(said({ e: zero }), "An RSA exponent must be odd and at least 3.")
    }
    assert.strictEqual(said({ e: n.toString("base64url") }), "An RSA exponent must have at most 64 bits.")
    for (const wrong of [{ n: 7 }, { n: "A" }, { e: "AQ==" }, { e: undefined }]) {
      assert.strictEqual(said(wrong), "RSA members n and e must be base64url integers.")
    }
    assert.strictEqual(said({ n: Buffer.concat([Buffer.alloc(2000), n]).toString("base64url") }), "read")
  })
})

describe("an invalid JWS", () => {
  const said = (jws: object) =>
    Result.match(parseJws(Buffer.from(JSON.stringify(jws))), {
      onFailure: ({ detail }) => detail,
      onSuccess: () => "read"
    })
  const encoded = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url")
  const good = { protected: encoded({}), payload: "", signature: "AAAA" }

  it("gets a message that says whether it is nested too deeply or is no object", () => {
    const nested = `{"a":${"[".repeat(64)}${"]".repeat(64)}}`
    const read = (body: string) =>
      Result.match(parseJws(Buffer.from(body)), { onFailure: ({ detail }) => detail, onSuccess: () => "read" })
    assert.strictEqual(read(nested), "The body is nested more than 64 levels deep.")
    assert.strictEqual(read("[]"), "The body is not a JSON object.")
    const inHeader = (text: string) => said({ ...good, protected: Buffer.from(text).toString("base64url") })
    assert.strictEqual(inHeader(nested), "The protected header is nested more than 64 levels deep.")
    assert.strictEqual(inHeader("[]"), "The protected header is not a JSON object.")
  })

  it("gets a message that names the member that is not base64url, and says why", () => {
    assert.strictEqual(said(good), "read")
    const fault = (name: string, why: string) => `The member ${name} of the JWS is not base64url: ${why}.`
    assert.strictEqual(said({ ...good, payload: "e30=" }), fault("payload", "it has padding"))
    assert.strictEqual(
      said({ ...good, protected: `${good.protected}\n` }),
      fault("protected", "it holds the character U+000A")
    )
    assert.strictEqual(
      said({ ...good, signature: "A/AA" }),
      fault("signature", "it holds the character / of base64, where base64url has - and _")
    )
    assert.strictEqual(
      said({ ...good, protected: encoded({ nonce: "A" }) }),
      "The nonce is not base64url: it is cut short, or stray bits are set at its end."
    )
  })
})
