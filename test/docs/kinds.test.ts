import { assert, describe, it } from "vitest"
import { certificateKinds } from "../../src/settings/CertificateKinds.ts"
import { accepted } from "../settings/Samples.ts"
import { bodiesOf } from "../support/Documents.ts"

describe("docs/kinds.md", () => {
  it.each([
    ["mail", ["default"], "default"],
    ["corp", ["default", "mutual", "server"], "server"]
  ])("has an example of the profile %s that the service accepts", (name, kinds, chosen) => {
    const fileText = bodiesOf("docs/kinds.md", "toml").find((body) => body.includes(`[profiles.${name}.`))
    const [profile] = accepted({ fileText }).config.profiles
    const found = profile === undefined ? assert.fail("no profile") : certificateKinds(profile)
    assert.deepStrictEqual([...found.byName.keys()].sort(), kinds)
    assert.strictEqual(found.chosen.name, chosen)
  })
})
