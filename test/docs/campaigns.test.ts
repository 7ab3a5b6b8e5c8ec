import { writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { builtServer } from "../support/Databases.ts"
import { hasRunLinesOf, Place } from "../support/Place.ts"

describe("docs/configure/campaigns.md", () => {
  it("has commands that start, show, pause, resume, end and confirm a campaign", async () => {
    await builtServer()
    const place = await Place.make()
    writeFileSync(place.at("config.toml"), "[profiles.default]\n")
    await place.run("acme-svc init")
    assert.strictEqual((await place.succeed("campaignPreview")).trim(), "0")
    const idIn = (text: string) => /^id +([0-9a-f-]{36})$/m.exec(text)?.[1] ?? ""
    const id = idIn(await place.succeed("campaignStart"))
    place.stand("CAMPAIGN_ID", id)
    assert.include(await place.succeed("campaignList"), "RSA keys of 2048 bits")
    assert.match(await place.succeed("campaignShow"), /^filter key +rsa-2048$/m)
    assert.include(await place.succeed("campaignSilent"), "0 of 0 row(s).")
    assert.include(await place.succeed("campaignPause"), "is paused.")
    assert.include(await place.succeed("campaignResume"), "is running.")
    assert.include(await place.succeed("campaignEnd"), "has ended; 0 certificates were left.")
    place.stand("CAMPAIGN_ID", idIn(await place.succeed("campaignDated")))
    assert.include(await place.succeed("campaignConfirm"), "is revoked at 2099-01-01T00:00:00Z.")
  })
})

hasRunLinesOf("campaigns")
