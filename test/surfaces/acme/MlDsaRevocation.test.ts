import { Effect } from "effect"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as certificates from "../../../src/store/orders/CertificateRows.ts"
import * as burntKeys from "../../../src/store/revocation/BurntKeys.ts"
import { spkiOf } from "../../crypto/Pki.ts"
import type { AcmeKey } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { acmeKey, at, bodyOf, freshNonce, posted, signed, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useOwnCa, work, workUnder } from "../../support/Issued.ts"

/* Certificates with keys of ML-DSA, which the local CA signs, and their revocation by their own key (RFC 9964). */

const config = configOf("certificates.kinds.default.keys = [\"ml-dsa-44\", \"ml-dsa-65\", \"ml-dsa-87\"]")
const names = ["a.example"]

/** Returns a new key. It is encoded and read back first, because some exports of a new key hang. */
const newKey = (type: "ml-dsa-44" | "ml-dsa-65" | "ml-dsa-87"): KeyObject =>
  createPrivateKey(generateKeyPairSync(type).privateKey.export({ type: "pkcs8", format: "pem" }))

describe.each(databases)("a certificate with a key of ML-DSA on $name", (backend) => {
  const { test } = useOwnCa(backend)

  /** Issues a certificate of a kind that accepts the key. */
  const issue = Effect.fnUntraced(function*(key: KeyObject) {
    const caller = yield* callerAt(profileOf(config), accountKeyOf())
    const { id } = yield* orderOf(caller, ...names)
    yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
    yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
    yield* finalize(caller, id, makeCsr({ names, key }).csr.toString("base64url"))
    yield* workUnder(config, "signer_issue_restricted")
    const owned = { id, profile: caller.profile.name, accountId: caller.accountId }
    const { certificate = "" } = (yield* certificates.certificate(owned)) ?? {}
    return new X509Certificate(certificate)
  })

  const revoke = Effect.fnUntraced(function*(key: AcmeKey, certificate: X509Certificate, reason?: number) {
    const app = yield* surfaceOf(config)
    const target = at("/revokeCert")
    const header = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
    const payload = { certificate: certificate.raw.toString("base64url"), ...reason === undefined ? {} : { reason } }
    return yield* app.handle(posted(target, signed(key, header, payload)))
  })

  for (const type of ["ml-dsa-44", "ml-dsa-65", "ml-dsa-87"] as const) {
    test(`is revoked by its own key of ${type}, and by no other key`, () =>
      Effect.gen(function*() {
        const key = acmeKey(newKey(type))
        const certificate = yield* issue(key.privateKey)
        assert.strictEqual(certificate.publicKey.asymmetricKeyType, type)
        const revoked = Effect.map(sql("SELECT id FROM orders WHERE revoked_at IS NOT NULL"), ({ length }) => length)
        for (const stranger of [acmeKey(newKey(type)), acmeKey()]) {
          assert.strictEqual((yield* revoke(stranger, certificate)).status, 401)
        }
        assert.strictEqual(yield* revoked, 0)
        assert.strictEqual((yield* revoke(key, certificate, 4)).status, 200)
        assert.strictEqual(yield* revoked, 1)
      }))

    test(`has its key of ${type} burnt if that key reports its own compromise`, () =>
      Effect.gen(function*() {
        const privateKey = newKey(type)
        const key = acmeKey(privateKey)
        const [first, second] = [yield* issue(privateKey), yield* issue(privateKey)]
        const forged = { ...key, privateKey: newKey(type) }
        const refused = yield* revoke(forged, first, 1)
        assert.deepStrictEqual([refused.status, bodyOf(refused).detail?.includes("does not verify")], [401, true])
        assert.isFalse(yield* burntKeys.isBurnt(spkiOf(privateKey)))
        assert.strictEqual((yield* revoke(key, first, 1)).status, 200)
        assert.isTrue(yield* burntKeys.isBurnt(spkiOf(privateKey)))
        yield* work("key_revoke")
        const again = yield* revoke(key, second)
        assert.deepStrictEqual([again.status, bodyOf(again).type], [
          400,
          "urn:ietf:params:acme:error:alreadyRevoked"
        ])
      }))
  }

  test("is not revoked by a request whose alg is another one than that of its key", () =>
    Effect.gen(function*() {
      const key = acmeKey(newKey("ml-dsa-44"))
      const certificate = yield* issue(key.privateKey)
      for (const alg of ["ML-DSA-65", "ML-DSA-87", "ES256", "EdDSA"]) {
        const app = yield* surfaceOf(config)
        const target = at("/revokeCert")
        const header = { alg, jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
        const payload = { certificate: certificate.raw.toString("base64url") }
        const answer = yield* app.handle(posted(target, signed(key, header, payload)))
        assert.deepStrictEqual([answer.status, bodyOf(answer).type], [
          400,
          "urn:ietf:params:acme:error:badSignatureAlgorithm"
        ], alg)
      }
      assert.strictEqual((yield* revoke(key, certificate)).status, 200)
    }))
})
