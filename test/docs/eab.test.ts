import { Effect } from "effect"
import { appendFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { whole } from "../../src/app/Commands.ts"
import { leavesOf } from "../../src/surfaces/cli/CommandTree.ts"
import type { Credential } from "../support/Binding.ts"
import { builtServer } from "../support/Databases.ts"
import type { Line } from "../support/DocumentLines.ts"
import { bodiesOf } from "../support/Documents.ts"
import { client } from "../support/Installed.ts"
import type { Serving } from "../support/Place.ts"
import { hasRunLinesOf, Place, settled } from "../support/Place.ts"

describe("the table of restrictions in docs/configure/credentials.md", () => {
  it("has each flag that sets one, and a value only for a flag that takes one", async () => {
    const leaves = leavesOf(await Effect.runPromise(whole))
    const set = leaves.find(({ path }) => path.join(" ").endsWith("eab set")) ?? assert.fail("no such command")
    const document = readFileSync(join(import.meta.dirname, "../../docs/configure/credentials.md"), "utf8")
    const [, section = ""] = document.split("## What a credential may ask for")
    const rows = section.split("\n## ")[0]?.matchAll(/^\| `(--[\w-]+)( \w+)?` +\|/gm) ?? []
    const flags = set.flags.filter(({ name }) => !["--clear", "--json"].includes(name))
    assert.deepStrictEqual(
      new Map([...rows].map(([, name, value]) => [name, value !== undefined])),
      new Map(flags.map(({ name, value }) => [name, value !== undefined]))
    )
  })
})

describe("docs/configure/credentials.md", () => {
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    await builtServer()
    place = await Place.make()
    await place.succeed("init")
    const [turnedOn = ""] = bodiesOf("docs/configure/credentials.md", "toml")
    appendFileSync(place.at("config.toml"), `\n${turnedOn}`)
    serving = await place.serve("serve", settled)
  })
  afterAll(() => serving.stop())

  /** Makes a credential that replaces the one in the document in all following lines. */
  const created = async (line: Line = "eabCreate"): Promise<Credential> => {
    const said = await place.succeed(line)
    const [, kid = ""] = /^kid +(\S+)$/m.exec(said) ?? []
    const [, key = ""] = /^hmac key +(\S+)$/m.exec(said) ?? []
    place.stand("KID", kid)
    place.stand("HMAC_KEY", key)
    return { kid, secret: Buffer.from(key, "base64url") }
  }
  /** Returns the files that the client gets. If the client is not installed, makes other files in their place. */
  const issued = async (which: "certbot" | "lego", line: Line, path: string, credential: Credential) => {
    if (client[which]) await place.succeed(line)
    else await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, path, credential)
    assert.match(readFileSync(place.at(path), "utf8"), /BEGIN CERTIFICATE/)
  }

  it("makes the service refuse a client without a credential", async () => {
    const refused = await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, "none.pem")
      .then(() => undefined, (error: unknown) => String(error))
    assert.include(refused, "externalAccountRequired")
  })

  it("lets certbot and lego register with a credential", async () => {
    const credential = await created()
    await issued("certbot", "certbotEab", "demo-certbot-eab/live/demo.localhost/cert.pem", credential)
    await issued("lego", "legoEab", "demo-lego-eab/certificates/demo.localhost.crt", credential)
    assert.match(
      await place.succeed("eabList"),
      new RegExp(`^${credential.kid}  web servers  every    active .* 2$`, "m")
    )
    assert.match(await place.succeed("eabShow"), /^accounts +2$/m)
    assert.match(await place.succeed("eabRevoke"), /^status +revoked$/m)
  })

  it("refuses to delete a credential whose accounts have certificates", async () => {
    const refused = await place.paste("eabDeleteAccounts")
    assert.deepStrictEqual([refused.code, refused.stdout], [3, ""])
    assert.include(await place.succeed("eabDeactivateAccounts"), "0 kept, 2 deactivated, 0 deleted")
  })

  it("deletes a credential with or without its accounts", async () => {
    await created("eabCreateScoped")
    assert.match(await place.succeed("eabShow"), /^profile +default$/m)
    assert.match(await place.succeed("eabSet"), /^orders ?per ?day +100$/im)
    assert.include(await place.succeed("eabDelete"), "Deleted the credential")
    await created()
    assert.include(await place.succeed("eabDeleteAccounts"), "Deleted the credential")
    assert.strictEqual(await place.succeed("eabList"), "0 of 0 row(s).\n")
  })
})

hasRunLinesOf("eab")
