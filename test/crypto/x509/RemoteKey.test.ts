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
    const whole = (parameters: string, point: Buffer) => {
      const prefix = Buffer.from(parameters, "hex")
      const wrapped = Buffer.from(ecSpki(prefix, Buffer.concat([Buffer.from([4, point.length]), point])))
      assert.deepStrictEqual(Buffer.from(ecSpki(prefix, point)), wrapped)
      return wrapped
    }
    assert.deepStrictEqual(whole("06052b81040022", spki(one).subarray(-97)), spki(one))
    // 04 3f is also the head of an OCTET STRING of 63 octets.
    const ambiguous = "043f538ad03451a2034feaacc5cf59663a857f73759c8ca9f8b712e4997131ec"
      + "547b7815013d0e023367d6f3c5a04e9e89c77bdd36ab57cd688441b9733b8e182c"
    const p256 = "3059301306072a8648ce3d020106082a8648ce3d030107034200"
    assert.strictEqual(
      whole("06082a8648ce3d030107", Buffer.from(ambiguous, "hex")).toString("hex"),
      `${p256}${ambiguous}`
    )
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const { e = "", n = "" } = publicKey.export({ format: "jwk" })
    assert.deepStrictEqual(
      Buffer.from(rsaSpki(Buffer.from(n, "base64url"), Buffer.from(e, "base64url"))),
      publicKey.export({ type: "spki", format: "der" })
    )
  })
})
