import { writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { certificateKinds } from "../../src/settings/CertificateKinds.ts"
import { accepted } from "../settings/Samples.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf } from "../support/Documents.ts"
import { hasRunLinesOf, Place } from "../support/Place.ts"

describe("docs/configure/kinds.md", () => {
  it.each([
    ["mail", ["default"], "default"],
    ["corp", ["default", "mutual", "server"], "server"]
  ])("has an example of the profile %s that the service accepts", (name, kinds, chosen) => {
    const fileText = bodiesOf("docs/configure/kinds.md", "toml").find((body) => body.includes(`[profiles.${name}.`))
    const [profile] = accepted({ fileText }).config.profiles
    const found = profile === undefined ? assert.fail("no profile") : certificateKinds(profile)
    assert.deepStrictEqual([...found.byName.keys()].sort(), kinds)
    assert.strictEqual(found.chosen.name, chosen)
  })

  it("has commands that list kinds, try a CSR and find the orders of a kind", async () => {
    await builtServer()
    const place = await Place.make()
    const example = bodiesOf("docs/configure/kinds.md", "toml").find((body) => body.includes("[profiles.corp.")) ?? ""
    writeFileSync(place.at("config.toml"), example)
    writeFileSync(place.at("request.pem"), makeCsr({ names: ["www.example.org"] }).csr)
    await place.run("acme-svc init")
    assert.match(await place.succeed("kindsList"), /^corp +mutual +1d +server_auth client_auth +/m)
    const tried = await place.succeed("kindsTry")
    assert.match(tried, /^subject +O=Example\\, Inc\.$/m)
    assert.match(tried, /^extended key usage +serverAuth, clientAuth$/m)
    assert.include(await place.succeed("ordersOfKind"), "0 of 0 row(s).")
  })
})

hasRunLinesOf("kinds")
