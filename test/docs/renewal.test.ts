import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { client, gateComesBack } from "../support/Installed.ts"
import type { Serving } from "../support/Place.ts"
import { begun, hasRunLinesOf, Place } from "../support/Place.ts"

describe("docs/clients/renewal.md", () => {
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    ;({ place, serving } = await begun())
  })
  afterAll(() => serving.stop())

  const issued = async (): Promise<number> =>
    Number(/of (\d+) row/.exec(await place.succeed("ordersBelow"))?.[1] ?? Number.NaN)

  it("lets certbot renew", async () => {
    if (!client.certbot) return gateComesBack()
    await place.succeed("certbot")
    const before = await issued()
    await place.succeed("certbotRenew")
    assert.strictEqual(await issued(), before + 1)
  })

  it("has a command that finds no certificate that expires within thirty days", async () => {
    assert.match(await place.succeed("ordersEnding"), /^0 of 0 row\(s\)\.$/m)
  })

  it("lets lego renew", async () => {
    if (!client.lego) return gateComesBack()
    await place.succeed("lego")
    const before = await issued()
    await place.succeed("legoRenew")
    assert.strictEqual(await issued(), before + 1)
  })

  it("has a command that shows what was issued", async () => {
    assert.isAtLeast(await issued(), 0)
  })
})

hasRunLinesOf("renewal")
