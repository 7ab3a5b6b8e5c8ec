import { Either } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "vitest"
import { parseJws, verifyJws } from "../../../src/pki/jose/Jws.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import { accountKeyOf, newPrivateKey } from "../../support/Graph.ts"
import { acmeKey, signed } from "../../support/Handle.ts"
import { mutate, seeded } from "../Pki.ts"

describe("a good JWS", () => {
  const url = "https://acme.example/profile/default/newOrder"
  const privateKeys = { ES256: newPrivateKey(), RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey }

  for (const [name, privateKey] of Object.entries(privateKeys)) {
    const [key, accountKey] = [acmeKey(privateKey), accountKeyOf(privateKey)]
    const header = { nonce: "AAAA", url, kid: "https://acme.example/profile/default/acct/1" }
    const good = signed(key, header, { identifiers: [{ type: "dns", value: "a.example" }] })

    it(`${name}: 10 000 mutations are refused, or say octet for octet what was signed`, () => {
      const sound = Either.getOrThrow(parseJws(Buffer.from(good)))
      assert.isTrue(verifyJws(sound, accountKey))
      const random = seeded(seedOf(8555))
      let refused = 0
      for (let time = runsOf(10_000); time > 0; time--) {
        const read = parseJws(mutate(Buffer.from(good), random))
        if (Either.isRight(read) && verifyJws(read.right, accountKey)) {
          assert.deepStrictEqual(read.right, sound)
        } else refused++
      }
      assert.isAbove(refused, 0)
    })
  }
})

describe("a JWS that is none", () => {
  const said = (jws: object) =>
    Either.match(parseJws(Buffer.from(JSON.stringify(jws))), { onLeft: ({ detail }) => detail, onRight: () => "read" })
  const encoded = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url")
  const good = { protected: encoded({}), payload: "", signature: "AAAA" }

  it("is told which member is no base64url, and why", () => {
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
