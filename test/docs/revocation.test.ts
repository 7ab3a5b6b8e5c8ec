import { Schema } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { nouns } from "../../src/surfaces/operator/Nouns.ts"
import { bodiesOf, text } from "../support/Documents.ts"
import { client, gateComesBack } from "../support/Installed.ts"
import { foreignCa, keyPem } from "../support/LocalCa.ts"
import type { Serving } from "../support/Place.ts"
import { begun, hasRunLinesOf, Place } from "../support/Place.ts"

describe("docs/operate/revocation.md", () => {
  const listed = nouns.flatMap(({ acts }) => acts).find(({ cli }) => cli?.command === "crl list")
  /** Returns the words in the first column of the table with this heading. */
  const words = (heading: string): ReadonlyArray<string> => {
    const [table = ""] = text("docs/operate/revocation.md").split(`| ${heading} `)[1]?.split("\n\n") ?? []
    return [...table.matchAll(/^\| `(\w+)`/gm)].flatMap(([, word]) => word ?? [])
  }

  it.each([["state", "state"], ["ca", "caState"], ["issues", "issuance"]])(
    "has every word of the column `%s` of `crl list`",
    (column, member) => {
      const { definitions } = Schema.toJsonSchemaDocument(listed?.output ?? assert.fail("crl list"))
      const { properties } = definitions["Ca"] as {
        readonly properties: Readonly<Record<string, { readonly enum?: ReadonlyArray<string> }>>
      }
      assert.sameMembers([...words(`\`${column}\` of \`crl list\``)], [...properties[member]?.enum ?? []])
    }
  )
})

describe("docs/operate/revocation.md and docs/configure/rotation.md", () => {
  const leaf = "demo-certbot/live/demo.localhost/cert.pem"
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    ;({ place, serving } = await begun())
  })
  afterAll(() => serving.stop())

  /** Returns the number of orders that are shown as revoked. */
  const revoked = async (): Promise<number> => (await place.succeed("ordersNamed")).match(/ {2}revoked /g)?.length ?? 0

  it("lets certbot revoke by its account and by the certificate's key", async () => {
    if (!client.certbot) return gateComesBack()
    await place.succeed("certbot")
    await place.succeed("certbotRevoke")
    assert.strictEqual(await revoked(), 1)
    await place.succeed("certbotRenew")
    await place.succeed("certbotRevokeByKey")
    assert.strictEqual(await revoked(), 2)
  })

  it("lets lego revoke by its account", async () => {
    if (!client.lego) return gateComesBack()
    const before = await revoked()
    await place.succeed("lego")
    await place.succeed("legoRevoke")
    assert.strictEqual(await revoked(), before + 1)
  })

  it("lets an operator revoke by the order", async () => {
    await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, leaf)
    assert.match(await place.succeed("verifyCrl"), /cert\.pem: OK/)
    const [, id = ""] = /^([0-9a-f-]{36})  default  default  valid /m.exec(await place.succeed("ordersNamed")) ?? []
    place.stand("ORDER_ID", id)
    assert.match(await place.succeed("orderRevoke"), /^The revocation list is signed\.$/m)
    assert.match(await place.succeed("orderShow"), /^status +valid, revoked$/m)
    const refused = await place.paste("verifyCrl")
    assert.notStrictEqual(refused.code, 0)
    assert.include(refused.stderr, "certificate revoked")
    assert.include(await place.succeed("crlText"), "Superseded")
  })

  it("lets an operator revoke by the serial number in the certificate", async () => {
    await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, leaf)
    const before = await revoked()
    const [, serial = ""] = /^serial=([0-9A-F]+)$/m.exec(await place.succeed("leafSerial")) ?? []
    place.stand("SERIAL", serial)
    assert.match(await place.succeed("certRevoke"), new RegExp(`^${serial.toLowerCase()}: Revoked\\. Job `, "m"))
    assert.strictEqual(await revoked(), before + 1)
    assert.include((await place.paste("verifyCrl")).stderr, "certificate revoked")
  })

  it("raises the number of the list after a restore", async () => {
    const [, issuer = ""] = /^([0-9a-f]{64})  default .* ok$/m.exec(await place.succeed("crlList")) ?? []
    place.stand("ISSUER", issuer)
    assert.include(await place.succeed("crlRaise"), "to 41; the next list has a higher number")
    assert.match(await place.succeed("crlList"), new RegExp(`^${issuer}  default +issuing +4[12] `, "m"))
  })

  it("lets an operator put the next CA into the configuration", async () => {
    const made = foreignCa({ name: "Next" })
    writeFileSync(place.at("ca2.pem"), made.certificatePem)
    writeFileSync(place.at("ca2.key"), keyPem(made.key), { mode: 0o600 })
    place.stand("TIME", new Date(Date.now() + 86_400_000).toISOString())
    assert.include(await place.succeed("caRotate"), "[profiles.default.signer.local_ca.others.ca2]")
  })

  it("lets an operator declare the CA compromised", async () => {
    const leaves = await revoked()
    await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, leaf)
    assert.include(await place.succeed("crlCompromised"), "is compromised; a worker revokes its certificates.")
    while ((await revoked()) === leaves); // a worker revokes it soon
    assert.match(await place.succeed("crlList"), / default +compromised /)
  })

  it.each(
    ["docs/operate/revocation.md", "docs/configure/rotation.md"].flatMap((document) => bodiesOf(document, "toml"))
  )(
    "shows a file that the service accepts: %#",
    async (body) => {
      const another = await Place.make()
      writeFileSync(another.at("config.toml"), body.includes("[profiles.") ? body : `${body}\n[profiles.default]\n`)
      for (const [, name = ""] of body.matchAll(/local_ca\.others\.(\w+)\]/g)) {
        const [, table = ""] = body.split(`others.${name}]`)
        const [cert = "", key = ""] = ["cert", "key"].map((one) =>
          new RegExp(`^${one}_path = "(.*)"$`, "m").exec(table)?.[1] ?? ""
        )
        const made = foreignCa({ name })
        writeFileSync(another.at(cert), made.certificatePem)
        writeFileSync(another.at(key), keyPem(made.key), { mode: 0o600 })
      }
      for (const [, urls = ""] of body.matchAll(/^(?:crl_distribution_points|ca_issuer_urls) = (.*)$/gm)) {
        assert.include(urls, "{issuer}", "another CA could not replace this one while its certificates are valid")
      }
      await another.succeed("init")
      for (const [, file = ""] of body.matchAll(/^(?:cert|key)_path = "(.*)"$/gm)) {
        assert.isTrue(existsSync(another.at(file)), file)
      }
    }
  )
})

hasRunLinesOf("revocation")
