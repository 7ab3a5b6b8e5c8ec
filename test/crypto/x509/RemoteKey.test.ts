import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { generateKeyPairSync, sign } from "node:crypto"
import { assert } from "vitest"
import { ecdsaSignature, ecSpki, makeRemoteKey, rsaSpki } from "../../../src/crypto/x509/RemoteKey.ts"

const data = Buffer.from("signed")
const one = generateKeyPairSync("ec", { namedCurve: "P-384" })
const other = generateKeyPairSync("ec", { namedCurve: "P-384" })
const spki = (key: typeof one) => key.publicKey.export({ type: "spki", format: "der" })

describe("a key that is not here", () => {
  it.effect("gives only signatures that fit the certificate", () =>
    Effect.gen(function*() {
      const signedBy = (key: typeof one) =>
        Result.getOrThrow(makeRemoteKey(one.publicKey, () =>
          Effect.succeed(
            ecdsaSignature(sign("sha384", data, { key: key.privateKey, dsaEncoding: "ieee-p1363" }))
          ))).sign(data)
      yield* signedBy(one)
      assert.strictEqual((yield* Effect.flip(signedBy(other))).detail, "the signature does not fit the CA certificate")
    }))

  it("has the public key of its token, whose point may be in an OCTET STRING or alone", () => {
    const parameters = Buffer.from("06052b81040022", "hex")
    const point = spki(one).subarray(-97)
    for (const given of [point, Buffer.concat([Buffer.from([4, 97]), point])]) {
      assert.deepStrictEqual(Buffer.from(ecSpki(parameters, given)), spki(one))
    }
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const { e = "", n = "" } = publicKey.export({ format: "jwk" })
    assert.deepStrictEqual(
      Buffer.from(rsaSpki(Buffer.from(n, "base64url"), Buffer.from(e, "base64url"))),
      publicKey.export({ type: "spki", format: "der" })
    )
  })
})
