import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf } from "../support/Documents.ts"
import { hasRunLinesOf, Place, settled } from "../support/Place.ts"

/** Makes a machine with the passphrase of the document, and with a configuration if it serves. */
const machine = async (config?: string): Promise<Place> => {
  await builtServer()
  const place = await Place.make()
  writeFileSync(place.at("root-passphrase"), "correct horse battery staple\n", { mode: 0o600 })
  if (config !== undefined) writeFileSync(place.at("config.toml"), config)
  return place
}

const config = "[challenge]\nbypass = true\n[profiles.default]\n"

/** Replaces what differs from one ceremony to the next. */
const masked = (text: string): string =>
  text.replaceAll(/(?:[0-9A-F]{2}:){31}[0-9A-F]{2}/g, "FINGERPRINT")
    .replaceAll(/\b[0-9a-f]{32}\b/g, "SERIAL")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, "TIME")
    .replaceAll(/acme-svc \d+\.\d+\.\d+\S*/g, "VERSION")
    .trimEnd()

describe("docs/configure/authorities.md", () => {
  it("has a ceremony on one machine, and its transcript", async () => {
    const place = await machine(config)
    const said = await place.succeed("caInit")
    const [transcript = ""] = bodiesOf("docs/configure/authorities.md", "text")
    assert.strictEqual(masked(said.replaceAll(place.directory, "/var/lib/acme-svc")), masked(transcript))
    assert.strictEqual(readFileSync(place.at("root/transcript.txt"), "utf8"), said)
    assert.match(await place.succeed("caTestSign"), /^result +signed and verified; nothing was stored$/m)
  })

  it("has a ceremony on two machines, after which the service issues", async () => {
    const [root, service] = [await machine(), await machine(config)]
    await root.succeed("caRoot")
    await service.succeed("caCsr")
    copyFileSync(service.at("issuing.csr"), root.at("issuing.csr"))
    await root.succeed("caSign")
    assert.isFalse(existsSync(root.at("config.toml")))
    copyFileSync(root.at("issuing.pem"), service.at("issuing.pem"))
    await service.succeed("caImport")
    await service.succeed("caTestSign")

    const serving = await service.serve("serve", settled)
    const session = await AcmeSession.open(`http://localhost:${service.port}/profile/default/directory`)
    await session.register()
    const { chain } = await session.issue(["www.corp.example"], new Map())
    session.close()
    await serving.stop()
    const verifier = await machine()
    copyFileSync(root.at("root/root.pem"), verifier.at("root.pem"))
    writeFileSync(verifier.at("leaf.pem"), chain)
    assert.include(await verifier.succeed("verifyStrictly"), "leaf.pem: OK")
  })
})

describe("docs/configure/rotation.md", () => {
  it("makes another CA beside the one that issues, which can then be the next one", async () => {
    const place = await machine(config)
    await place.run("acme-svc init")
    const before = readFileSync(place.at("ca.pem"), "utf8")
    assert.include(await place.succeed("caOfNextRoot"), place.at("ca2.pem"))
    assert.strictEqual(readFileSync(place.at("ca.pem"), "utf8"), before)
    place.stand("TIME", new Date(Date.now() + 3_600_000).toISOString())
    assert.include(await place.succeed("caRotate"), "[profiles.default.signer.local_ca.others.ca2]")
  })
})

hasRunLinesOf("ca")
