import { it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { foreignCa, settingsIn, signerOf } from "../../support/LocalCa.ts"

/** Makes two profiles, each with its own CA. */
const twoCas = () => {
  const directory = freshDirectory()
  return ["well", "gone"].map((name) => {
    const settings = settingsIn(directory, { cert_path: join(directory, `${name}.pem`) })
    writeFileSync(settings.cert_path, foreignCa({ name }).certificatePem)
    return { name, signer: signerOf(settings) }
  })
}

const built = (...words: Parameters<typeof Issuers.layer>) =>
  Effect.scoped(Effect.map(Layer.build(Issuers.layer(...words)), Context.get(Issuers)))

describe("the CAs of the profiles", () => {
  it.effect("do not include a CA whose certificate is missing, if its profile may be degraded", () =>
    Effect.gen(function*() {
      const profiles = twoCas()
      const before = yield* built(profiles)
      rmSync(profiles[1]?.signer.local_ca.cert_path ?? "")
      const refused = yield* Effect.flip(built(profiles, undefined, (name) => name === "well"))
      assert.deepInclude(refused, { profile: "gone", isOutside: true })
      const { of } = yield* built(profiles, undefined, (name) => name === "gone")
      assert.strictEqual(of("well", 0)?.id, before.of("well", 0)?.id)
      assert.isUndefined(of("gone", 0))
      // A process still uses a certificate that it has already read.
      assert.isDefined((yield* built(profiles, before.bySection)).of("gone", 0))
    }))

  it.effect("are refused for a file that is not a certificate, even if profiles may be degraded", () =>
    Effect.gen(function*() {
      const profiles = twoCas()
      writeFileSync(profiles[1]?.signer.local_ca.cert_path ?? "", "no certificate")
      const refused = yield* Effect.flip(built(profiles, undefined, () => true))
      assert.deepInclude(refused, { profile: "gone", isOutside: false })
    }))
})
