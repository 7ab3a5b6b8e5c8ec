import { X509Certificate } from "node:crypto"
import { chmodSync, copyFileSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { bodiesOf } from "../support/Documents.ts"
import { client, gateComesBack, gateComesBackForTokens } from "../support/Installed.ts"
import { hasBao, startBao } from "../support/OpenBao.ts"
import { hasRunLinesOf, Place, settled } from "../support/Place.ts"
import { runToEnd, startServer } from "../support/Server.ts"

describe("docs/configure/signers.md", () => {
  it.each(bodiesOf("docs/configure/signers.md", "toml"))(
    "has an example that the service accepts: %#",
    async (body) => {
      await builtServer()
      const place = await Place.make()
      writeFileSync(place.at("config.toml"), body)
      assert.match(await place.succeed("profiles"), /^web .*\/profile\/web\/directory /m)
    }
  )

  it("has a command that encrypts the key of the CA, with which the CA then signs", async () => {
    await builtServer()
    const place = await Place.make()
    const [body = ""] = bodiesOf("docs/configure/signers.md", "toml")
    writeFileSync(place.at("ca-passphrase"), "correct horse\n", { mode: 0o600 })
    writeFileSync(place.at("config.toml"), "[challenge]\nbypass = true\n[profiles.web]\n")
    await (await place.serve("serve", settled)).stop()
    await place.succeed("encryptKey")
    chmodSync(place.at("ca.encrypted.key"), 0o600)
    unlinkSync(place.at("ca.key"))
    writeFileSync(place.at("config.toml"), `[challenge]\nbypass = true\n${body}`)
    const serving = await place.serve("serve", settled)
    const session = await AcmeSession.open(`http://localhost:${place.port}/profile/web/directory`)
    await session.register()
    const { chain } = await session.issue(["encrypted.example"], new Map())
    const issuer = new X509Certificate(readFileSync(place.at("ca.pem")))
    assert.isTrue(new X509Certificate(chain).verify(issuer.publicKey))
    session.close()
    await serving.stop()
  })

  it("has commands that make a key in OpenBao and a token for it, with which a CA then signs", async () => {
    if (!hasBao()) return gateComesBackForTokens()
    await builtServer()
    const bao = await startBao()
    try {
      const programs = freshDirectory()
      symlinkSync(bao.program, join(programs, "bao"))
      const place = await Place.make({
        PATH: `${programs}:${process.env["PATH"]}`,
        BAO_ADDR: bao.address,
        BAO_CACERT: bao.caPath,
        BAO_TOKEN: bao.rootToken
      })
      const [policy = ""] = bodiesOf("docs/configure/signers.md", "text").filter((body) => body.startsWith("path "))
      writeFileSync(place.at("acme-svc.hcl"), policy)
      for (const line of ["baoEnable", "baoKey", "baoPolicy", "baoToken"] as const) await place.succeed(line)
      chmodSync(place.at("bao-token"), 0o600)
      copyFileSync(bao.caPath, place.at("bao-ca.pem"))
      const [body = ""] = bodiesOf("docs/configure/signers.md", "toml").filter((one) =>
        one.includes("[profiles.web.signer.local_ca.transit]")
      )
      const config = body.replace(/^address = .*$/m, `address = "${bao.address}"`)
      writeFileSync(place.at("config.toml"), `[challenge]\nbypass = true\n${config}`)
      writeFileSync(place.at("root-passphrase"), "correct horse\n", { mode: 0o600 })
      assert.match(await place.succeed("caInit"), /^ {2}private key +in the Transit engine$/m)
      assert.match(await place.succeed("caTestSign"), /^key ?source +transit$/im)
      const serving = await place.serve("serve", settled)
      const session = await AcmeSession.open(`http://localhost:${place.port}/profile/web/directory`)
      await session.register()
      const { chain } = await session.issue(["www.corp.example"], new Map())
      assert.isTrue(new X509Certificate(chain).verify(new X509Certificate(readFileSync(place.at("ca.pem"))).publicKey))
      session.close()
      await serving.stop()
    } finally {
      await bao.stop()
    }
  })

  it("has commands that register with a credential, and show the orders at the upstream CA", async () => {
    await builtServer()
    const config = "[challenge]\nbypass = true\n[profiles.bound]\neab.enabled = true\n"
    const upstream = await startServer({ config })
    try {
      const made = await runToEnd(["eab", "create", "--label", "web", "--json"], {
        config: null,
        directory: upstream.directory
      })
      const { hmacKey, kid } = JSON.parse(made.stdout) as { readonly kid: string; readonly hmacKey: string }
      const place = await Place.make()
      const relay = { backend: "relay", relay: { directory_url: upstream.profileUrl("bound"), poll_interval_ms: 50 } }
      writeFileSync(
        place.at("config.toml"),
        [
          "[challenge]\nbypass = true\n[profiles.web.signer]",
          `backend = "${relay.backend}"`,
          ...Object.entries(relay.relay).map(([key, value]) => `relay.${key} = ${JSON.stringify(value)}`)
        ].join("\n")
      )
      writeFileSync(place.at("hmac"), hmacKey)
      place.stand("KID", kid)
      place.stand("HMAC_FILE", "hmac")
      assert.match(await place.succeed("upstreamRegister"), /^Registered: http/)
      assert.match(await place.succeed("upstreamShow"), /^registered +true$/m)
      const serving = await place.serve("serve", settled)
      const session = await AcmeSession.open(`http://localhost:${place.port}/profile/web/directory`)
      await session.register()
      const { order } = await session.issue(["relayed.example"], new Map())
      place.stand("ORDER_ID", order.url.slice(order.url.lastIndexOf("/") + 1))
      assert.match(await place.succeed("upstreamOrder"), /^status +valid$/m)
      assert.strictEqual(await place.succeed("upstreamOrdersFailed"), "0 of 0 row(s).\n")
      session.close()
      await serving.stop()
    } finally {
      await upstream.dispose()
    }
  })

  it("has a command that shows whether an answer about an unknown token comes from the service", async () => {
    if (!client.curl) return gateComesBack()
    await builtServer()
    const upstream = await startServer()
    const place = await Place.make()
    place.stand("http://www.example.org/", `http://localhost:${place.port}/`)
    const asked = async (signer: string) => {
      writeFileSync(place.at("config.toml"), `[profiles.default]\n${signer}`)
      const serving = await place.serve("serve", settled)
      const said = await place.succeed("curlToken")
      await serving.stop()
      return said
    }
    try {
      const relay = [
        "signer.backend = \"relay\"",
        "signer.relay.challenge_strategy = \"http01\"",
        `signer.relay.directory_url = "${upstream.directoryUrl}"`
      ]
      assert.match(await asked(relay.join("\n")), /^HTTP\/1\.1 404 [^]*There is no such token\.$/m)
      assert.match(await asked(""), /^HTTP\/1\.1 404 (?![^]*There is no such token\.)/m)
    } finally {
      await upstream.dispose()
    }
  })
})

hasRunLinesOf("signers")
