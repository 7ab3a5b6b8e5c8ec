import { X509Certificate } from "node:crypto"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf, oneLine } from "../support/Documents.ts"
import { hasRunLinesOf, Place } from "../support/Place.ts"

const document = "docs/start/second-machine.md"

describe(document, () => {
  it("has a configuration with which the service makes its certificate, and a command that prints what to paste", async () => {
    await builtServer()
    const [configuration = ""] = bodiesOf(document, "toml")
    const [, baseUrl = ""] = /^base_url = "(.*)"$/m.exec(configuration) ?? []
    const [, bindAddress = ""] = /^bind_address = "(.*)"$/m.exec(configuration) ?? []
    const listening = { ACME_SVC_SERVER__BIND_ADDRESS: bindAddress }
    const place = await Place.make({ ...listening, ACME_SVC_SERVER__BASE_URL: baseUrl })
    writeFileSync(place.at("config.toml"), configuration)
    assert.strictEqual((await place.run("acme-svc init")).code, 0)
    assert.isTrue(existsSync(place.at("server.pem")))

    const said = await place.succeed("guideClient")
    assert.include(said, new X509Certificate(readFileSync(place.at("ca.pem"))).fingerprint256)
    const own = new X509Certificate(readFileSync(place.at("server.pem"))).fingerprint256
    assert.match(said, new RegExp(`s_client -connect acme\\.example\\.org:3000 .*&&\n.*grep -F ${own} &&\n`))
    const printed = said.split("\n").map(oneLine)
    const [asked = ""] = bodiesOf(document, "text").filter((body) => body.startsWith("lego "))
    assert.include(printed, oneLine(asked))

    // Behind a proxy, clients see the certificate of the proxy. If it is missing, only the root is known.
    const proxied = await Place.make({ ...listening, ACME_SVC_SERVER__BASE_URL: "https://acme.example.org" })
    writeFileSync(proxied.at("config.toml"), configuration)
    assert.strictEqual((await proxied.run("acme-svc init")).code, 0)
    assert.notInclude(await proxied.succeed("guideClient"), "s_client")
    rmSync(place.at("server.pem"))
    assert.notInclude(await place.succeed("guideClient"), "s_client")
  })
})

hasRunLinesOf("secondMachine")
