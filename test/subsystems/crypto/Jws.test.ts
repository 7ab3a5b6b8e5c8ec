import { Either } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "vitest"
import { parseJws, verifyJws } from "../../../src/subsystems/crypto/Jws.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import { accountKeyOf, newPrivateKey } from "../../support/Graph.ts"
import { acmeKey, signed } from "../../support/Handle.ts"
import { mutate, seeded } from "./Pki.ts"

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
