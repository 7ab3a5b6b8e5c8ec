import { it } from "@effect/vitest"
import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { writeFileSync } from "node:fs"
import { assert, describe } from "vitest"
import { anchor, issuerCertificate } from "../../../src/operations/acme/Publications.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import { openssl } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { foreignCa, settingsIn, signerOf } from "../../support/LocalCa.ts"

describe("the certificates that a profile publishes", () => {
  it.effect("are its root as PEM for trust stores and the issuer of its leaves as DER", () =>
    Effect.gen(function*() {
      const settings = settingsIn(freshDirectory())
      const root = foreignCa({ name: "Corporate Root" })
      const intermediate = foreignCa({ name: "Issuing CA", issuer: root })
      writeFileSync(settings.cert_path, intermediate.certificatePem + root.certificatePem)
      const published = Effect.all([anchor("default"), issuerCertificate("default")])
      const [pem, der] = yield* Effect.provide(
        published,
        Issuers.layer([{ name: "default", signer: signerOf(settings) }])
      )
      assert.strictEqual(pem, root.certificatePem)
      assert.deepStrictEqual(Buffer.from(der), new X509Certificate(intermediate.certificatePem).raw)
      assert.include(openssl(["x509", "-inform", "DER", "-noout", "-subject"], der).toString(), "Issuing CA")
    }))

  it.effect("do not exist if the profile has no CA of its own", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(anchor("relayed")))._tag, "NotPublished")
      assert.strictEqual((yield* Effect.flip(issuerCertificate("relayed")))._tag, "NotPublished")
    }).pipe(Effect.provide(Issuers.layer([]))))
})
