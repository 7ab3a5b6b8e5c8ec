import { readFileSync, renameSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { startForwardProxy } from "../support/ForwardProxy.ts"
import { isFull } from "../support/Full.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"

/*
 * Tests what docs/operate/service.md says about a relay if only some files of the relay's account come back from a
 * backup.
 */

describe("a relay's account", () => {
  let upstream: Server
  let credential: { readonly kid: string; readonly hmacKey: string }
  beforeAll(async () => {
    await builtServer()
    upstream = await startServer({ config: "[profiles.open]\n[profiles.bound]\neab.enabled = true\n" })
    const made = await commandLine(["eab", "create", "--label", "relay", "--json"], {
      config: null,
      directory: upstream.directory
    })
    credential = JSON.parse(made.stdout) as typeof credential
  })
  afterAll(() => upstream.dispose())

  /**
   * Starts with or without the credential, and returns the account's URL or the message of the failure. `init` looks up
   * the account in the same way as a start does, so that the service itself is started only in the full run.
   */
  const started = async (directory: string, profile: string, bound = false): Promise<string> => {
    const config = [
      "[profiles.default.signer]",
      "backend = \"relay\"",
      `relay.directory_url = "${upstream.profileUrl(profile)}"`,
      ...bound ? [`relay.eab = { kid = "${credential.kid}", hmac_key = "${credential.hmacKey}" }`] : []
    ].join("\n")
    const refused = await (isFull
      ? startServer({ directory, config }).then((server) => server.dispose())
      : commandLine(["init"], { directory, config }).then(({ code, stderr }) => {
        if (code !== 0) throw new Error(stderr)
      })).then(() => undefined, (error: unknown) => String(error))
    return refused ?? readFileSync(join(directory, "upstream_account.key.kid"), "utf8")
  }

  it("is found again by its key", async () => {
    const directory = freshDirectory()
    const [key, kid] = ["", ".kid"].map((suffix) => join(directory, `upstream_account.key${suffix}`)) as [
      string,
      string
    ]
    const account = await started(directory, "open")
    rmSync(kid)
    assert.strictEqual(await started(directory, "open"), account)
    renameSync(key, join(directory, "away"))
    assert.include(await started(directory, "open"), `names an account, but its key ${key} is gone (line `)
    renameSync(join(directory, "away"), key)
    assert.strictEqual(await started(directory, "open"), account)
    rmSync(key)
    rmSync(kid)
    const another = await started(directory, "open")
    assert.match(another, /^http\S+\/acct\/\S+\n$/)
    assert.notStrictEqual(another, account)
  })

  it("gets a new key and other contacts by commands", async () => {
    const directory = freshDirectory()
    const account = (await started(directory, "open")).trim()
    const upstreamCommand = (...words: ReadonlyArray<string>) =>
      commandLine(["upstream", ...words], {
        directory,
        config: `[profiles.default.signer]
backend = "relay"
relay.directory_url = "${upstream.profileUrl("open")}"`
      })
    const keyPath = join(directory, "upstream_account.key")
    const before = readFileSync(keyPath, "utf8")
    const rolled = await upstreamCommand("rollover", "--json")
    assert.strictEqual(rolled.code, 0, rolled.stderr)
    const shown = JSON.parse(rolled.stdout) as { readonly [member: string]: string }
    assert.strictEqual(shown["accountUrl"], account)
    assert.notStrictEqual(shown["keyThumbprint"], shown["previousKeyThumbprint"])
    assert.notStrictEqual(readFileSync(keyPath, "utf8"), before)
    const set = await upstreamCommand("contact", "--contact", "mailto:pki@example.org")
    assert.strictEqual(set.code, 0, set.stderr)
    assert.match(set.stdout, /mailto:pki@example\.org/)
    const known = await upstreamCommand("register")
    assert.match(known.stdout, /^The account is registered already, and the upstream knows it/)
    const wrong = await upstreamCommand("contact", "--contact", "nobody")
    assert.strictEqual(wrong.code, 2, wrong.stderr)
    rmSync(`${keyPath}.kid`)
    const none = await upstreamCommand("rollover")
    assert.deepStrictEqual([none.code, none.stderr.trim()], [
      3,
      "Profile default has no account at its upstream; `acme-svc upstream register` creates one."
    ])
    const events = JSON.parse(
      (await commandLine(["audit", "list", "--json"], { directory, config: null })).stdout
    ) as { readonly items: ReadonlyArray<{ readonly event: string }> }
    assert.deepStrictEqual(events.items.map(({ event }) => event), ["upstream_contact_updated", "upstream_key_changed"])
  })

  it("causes an error that distinguishes an upstream that fails from one that does not answer", async () => {
    const failing = createServer((_, response) => response.writeHead(500).end("<h1>oops</h1>"))
    await new Promise<void>((resolve) => failing.listen(0, "127.0.0.1", resolve))
    const { port } = failing.address() as AddressInfo
    const register = () =>
      commandLine(["upstream", "register"], {
        config: `[profiles.default.signer]\nbackend = "relay"\nrelay.directory_url = "http://127.0.0.1:${port}/"`,
        directory: freshDirectory()
      })
    const failed = await register()
    failing.close()
    assert.deepStrictEqual(
      [failed.code, failed.stderr.trim()],
      [1, "The upstream fails, with status 500: the directory answers 500."]
    )
    assert.match((await register()).stderr, /^The upstream does not answer: /)
  })

  it("is found again without the credential even if the upstream requires one", async () => {
    const directory = freshDirectory()
    const account = await started(directory, "bound", true)
    assert.strictEqual(await started(directory, "bound"), account, "kept")
    rmSync(join(directory, "upstream_account.key.kid"))
    assert.strictEqual(await started(directory, "bound"), account)
    assert.include(await started(freshDirectory(), "bound"), "the upstream makes no account: ")
  })

  it("is created through the forward proxy if there is one", async () => {
    const port = await freePort()
    const baseUrl = `http://ca.example:${port}`
    const far = await startServer({ port, env: { ACME_SVC_SERVER__BASE_URL: baseUrl } })
    const proxies = [await startForwardProxy(), await startForwardProxy({ refuse: 407 })]
    const directoryUrl = `${baseUrl}/profile/default/directory`
    try {
      const [through, refusing] = await Promise.all(proxies.map(({ url }) =>
        commandLine(["init"], {
          directory: freshDirectory(),
          config: [
            `[proxy]\nhttp_url = "${url}"`,
            "[profiles.default.signer]",
            "backend = \"relay\"",
            `relay.directory_url = "${directoryUrl}"`
          ].join("\n")
        })
      ))
      assert.strictEqual(through?.code, 0, through?.stderr)
      assert.include(proxies[0]?.seen.map(({ target }) => target) ?? [], directoryUrl)
      assert.strictEqual(refusing?.code, 1, "it may be tried again")
      assert.match(refusing?.stderr ?? "", /the proxy: answers 407/)
    } finally {
      for (const { stop } of proxies) await stop()
      await far.dispose()
    }
  })
})
