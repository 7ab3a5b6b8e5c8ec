import { Effect, Result } from "effect"
import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { generateCa } from "../../src/crypto/x509/CaCertificate.ts"
import { serialFrom } from "../../src/crypto/x509/Leaf.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { makeHttpClient } from "../support/Http.ts"
import { patienceMs } from "../support/Patience.ts"

/*
 * A profile whose CA has expired or is missing is served but does not issue. The other profiles work as usual
 * (docs/contribute/decisions/degraded-profiles.md).
 */

const config = `
[metrics]
enabled = true
bind_address = "127.0.0.1:0"
[profiles.default]
[profiles.default.signer.local_ca]
cert_path = "good/ca.pem"
key_path = "good/ca.key"
crl_path = "good/ca.crl"
[profiles.ended]
[profiles.ended.signer.local_ca]
cert_path = "ended/ca.pem"
key_path = "ended/ca.key"
crl_path = "ended/ca.crl"
[profiles.gone]
[profiles.gone.signer.local_ca]
cert_path = "gone/ca.pem"
key_path = "gone/ca.key"
crl_path = "gone/ca.crl"
`

const hourSeconds = 3600
const caLifeSeconds = 3652 * 24 * hourSeconds

/** Writes a CA that was made at the given epoch second into a folder. */
const writeCa = async (folder: string, name: string, now: number) => {
  const subject = { organization: "", organizationalUnit: "", country: "", state: "", locality: "", commonName: name }
  const made = await Effect.runPromise(
    Effect.result(generateCa({ keyType: "ecdsa-p256", subject, now, serial: serialFrom(randomBytes(16)) }))
  )
  const { certificatePem, privateKeyPem } = Result.getOrThrow(made)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "ca.pem"), certificatePem)
  writeFileSync(join(folder, "ca.key"), privateKeyPem, { mode: 0o600 })
}

describe.each(databases)("profiles that cannot issue because of the host, on $name", ({ freshUrl }) => {
  let ground: Ground
  const http = makeHttpClient()
  const urlOf = (profile: string, path: string) => `${ground.server.baseUrl}/profile/${profile}${path}`

  beforeAll(async () => {
    await builtServer()
    const directory = freshDirectory()
    const now = Math.floor(Date.now() / 1000)
    for (const [name, at] of [["good", now], ["ended", now - 2 * caLifeSeconds], ["gone", now]] as const) {
      await writeCa(join(directory, name), name, at)
    }
    renameSync(join(directory, "gone", "ca.key"), join(directory, "gone", "ca.key.away"))
    ground = await startGround({ directory, config, databaseUrl: await freshUrl() })
  }, 2 * patienceMs)

  afterAll(() => ground?.dispose())

  const profiles = ["ended", "gone"] as const

  it("are reported in the log and in the metrics", async () => {
    for (const profile of profiles) {
      const { fields } = await ground.server.waitForEvent("profile_degraded", {
        where: (record) => record.fields["profile"] === profile
      })
      assert.match(String(fields["error"]), profile === "ended" ? /ended at/ : /only .*ca\.pem exists/)
    }
    const { address } = (await ground.server.waitForEvent("metrics_listening")).fields
    // On a busy machine, a scrape leaves out what could not be sampled in time.
    await vi.waitFor(async () => {
      const { text } = await http.send(`http://${String(address)}/metrics`)
      assert.include(text, `acme_svc_profile_degraded{profile="default"} 0`)
      for (const profile of profiles) assert.include(text, `acme_svc_profile_degraded{profile="${profile}"} 1`)
    }, { timeout: patienceMs, interval: 200 })
  })

  it("refuse orders with an explanation, while the others issue", async () => {
    for (const profile of profiles) {
      const session = await AcmeSession.open(urlOf(profile, "/directory"))
      await session.register()
      const refused = await session.post(session.directory.newOrder ?? "", {
        identifiers: [{ type: "dns", value: "a.example" }]
      })
      assert.strictEqual(refused.status, 503)
      assert.match(String((refused.json as { readonly detail: string }).detail), /cannot issue certificates at present/)
      assert.strictEqual(refused.headers["retry-after"], "60")
    }
    const session = await AcmeSession.open(urlOf("default", "/directory"))
    await session.register()
    await session.issue(["b.example"], ground.responder.tokens)
  })

  it("still serve their revocation lists and certificates", async () => {
    assert.strictEqual((await http.send(urlOf("ended", "/crl"))).status, 200)
    for (const profile of profiles) {
      assert.strictEqual((await http.send(urlOf(profile, "/ca.pem"))).status, 200)
      assert.strictEqual((await http.send(urlOf(profile, "/directory"))).status, 200)
    }
  })

  it("are named by config check, which still succeeds", async () => {
    const checked = await commandLine(["config", "check"], {
      directory: ground.server.directory,
      config: null,
      env: {}
    })
    assert.strictEqual(checked.code, 0, checked.stderr)
    for (const profile of profiles) assert.include(checked.stderr, `Profile ${profile}: signer.local_ca`)
    assert.notInclude(checked.stderr, "Profile default")
  })

  it("issue again once the missing file is back", async () => {
    const { directory } = ground.server
    renameSync(join(directory, "gone", "ca.key.away"), join(directory, "gone", "ca.key"))
    await ground.server.waitForEvent("profile_recovered", { where: ({ fields }) => fields["profile"] === "gone" })
    const session = await AcmeSession.open(urlOf("gone", "/directory"))
    await session.register()
    await vi.waitFor(async () => {
      const { status } = await session.post(session.directory.newOrder ?? "", {
        identifiers: [{ type: "dns", value: "c.example" }]
      })
      assert.strictEqual(status, 201)
    }, { timeout: patienceMs, interval: 500 })
    await session.issue(["d.example"], ground.responder.tokens)
  })

  it("never result from a reload, because a reload that would degrade a working profile is refused", async () => {
    const { directory } = ground.server
    const written = readFileSync(join(directory, "config.toml"), "utf8")
    writeFileSync(
      join(directory, "config.toml"),
      written.replaceAll("good/ca.", "ended/ca.").replace(
        "[profiles.gone]\n",
        "[profiles.gone]\nchallenge.bypass = true\n"
      )
    )
    ground.server.signal("SIGHUP")
    await ground.server.waitForEvent("server_config_reload_refused")
    writeFileSync(join(directory, "config.toml"), written)
    const session = await AcmeSession.open(urlOf("default", "/directory"))
    await session.register()
    await session.issue(["e.example"], ground.responder.tokens)
  })
})
