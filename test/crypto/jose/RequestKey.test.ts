import { it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { createHash, createHmac, createPrivateKey, createPublicKey, verify } from "node:crypto"
import { assert, describe } from "vitest"
import { importSpki } from "../../../src/crypto/jose/Jwk.ts"
import { parseJws, verifyJws } from "../../../src/crypto/jose/Jws.ts"
import { newRequestKey, readRequestKey, signByMac } from "../../../src/crypto/jose/RequestKey.ts"
import { isFull } from "../../support/Full.ts"
import { newEcKey, newRsaKey } from "../../support/Keys.ts"

/* Uses the cryptography of Node.js to check the signatures that a relay makes. */

const textOf = (part: string): string => Buffer.from(part, "base64url").toString()

const key = newEcKey()
const [pkcs8, sec1] = (["pkcs8", "sec1"] as const).map((type) => key.export({ type, format: "pem" }).toString())
const publicKey = createPublicKey(key)

describe("a key that signs requests", () => {
  for (const [form, pem = ""] of [["PKCS#8", pkcs8], ["the older form of EC keys", sec1]] as const) {
    it.effect(`is read from ${form}, and makes signatures in the form of a JWS`, () =>
      Effect.gen(function*() {
        const { jwk, sign, thumbprint } = yield* readRequestKey(pem)
        const { crv, kty, x, y } = publicKey.export({ format: "jwk" })
        assert.deepStrictEqual<object>(jwk, { crv, kty, x, y })
        const canonical = `{"crv":"${crv}","kty":"${kty}","x":"${x}","y":"${y}"}`
        assert.strictEqual(thumbprint, createHash("sha256").update(canonical).digest("base64url"))
        for (const payload of ["", "{}", JSON.stringify({ contact: ["mailto:ä@example.org"] })]) {
          const signed = yield* sign({ nonce: "n", url: "https://ca.example/é", kid: "k" }, payload)
          assert.sameMembers(Object.keys(signed), ["protected", "payload", "signature"])
          const { payload: body, protected: head, signature } = signed
          assert.deepStrictEqual(JSON.parse(textOf(head)), {
            alg: "ES256",
            nonce: "n",
            url: "https://ca.example/é",
            kid: "k"
          })
          assert.strictEqual(textOf(body), payload)
          const octets = Buffer.from(signature, "base64url")
          assert.strictEqual(octets.length, 64)
          const under = { key: publicKey, dsaEncoding: "ieee-p1363" } as const
          assert.isTrue(verify("sha256", Buffer.from(`${head}.${body}`), under, octets))
        }
      }))
  }

  it.effect("makes signatures of 64 octets, even if one of the two numbers has leading zeros", () =>
    Effect.gen(function*() {
      const { sign } = yield* readRequestKey(pkcs8 ?? "")
      const account = importSpki(publicKey.export({ type: "spki", format: "der" }))
      let short = 0
      for (let made = 0; made < (isFull ? 10_000 : 500); made++) {
        const signed = yield* sign({ nonce: "bm9uY2U", url: "https://ca.example/", kid: "k" }, String(made))
        const octets = Buffer.from(signed.signature, "base64url")
        assert.strictEqual(octets.length, 64)
        assert.isTrue(verifyJws(yield* Effect.fromResult(parseJws(Buffer.from(JSON.stringify(signed)))), account))
        if (octets[0] === 0 || octets[32] === 0) short++
      }
      if (isFull) assert.isAbove(short, 0)
    }))

  it.effect("is generated anew each time, as one unencrypted block of PEM", () =>
    Effect.gen(function*() {
      const [first, second] = yield* Effect.all([newRequestKey, newRequestKey])
      assert.notStrictEqual(first, second)
      assert.match(first, /^-----BEGIN PRIVATE KEY-----\n(?:[A-Za-z0-9+/=]{1,64}\n)+-----END PRIVATE KEY-----\n$/)
      assert.strictEqual(createPrivateKey(first).export({ type: "pkcs8", format: "pem" }).toString(), first)
      const { jwk } = yield* readRequestKey(first)
      assert.strictEqual(jwk.x, createPublicKey(createPrivateKey(first)).export({ format: "jwk" }).x)
    }))

  const pem = (of: ReturnType<typeof newRsaKey>) => of.export({ type: "pkcs8", format: "pem" }).toString()
  const refused: { readonly [text: string]: readonly [string, "unreadable" | "kind"] } = {
    "nothing": ["", "unreadable"],
    "a public key": [publicKey.export({ type: "spki", format: "pem" }).toString(), "unreadable"],
    "a key that is cut": [(pkcs8 ?? "").slice(0, 100), "unreadable"],
    "an RSA key": [pem(newRsaKey()), "kind"]
  }
  for (const [what, [text, reason]] of Object.entries(refused)) {
    it.effect(`cannot be read from ${what}`, () =>
      Effect.gen(function*() {
        const read = yield* Effect.result(readRequestKey(text))
        assert.strictEqual(Result.isFailure(read) ? read.failure.reason : "read", reason)
      }))
  }
})

describe("a MAC", () => {
  for (const length of [1, 16, 32, 200]) {
    it.effect(`is made by HS256 with a secret of ${length} octets`, () =>
      Effect.gen(function*() {
        const secret = Buffer.alloc(length, 0x5a)
        const { payload, protected: head, signature } = yield* signByMac(secret, { kid: "k", url: "u" }, "{}")
        assert.deepStrictEqual(JSON.parse(textOf(head)), { alg: "HS256", kid: "k", url: "u" })
        assert.strictEqual(
          signature,
          createHmac("sha256", secret).update(`${head}.${payload}`).digest("base64url")
        )
      }))
  }
})
