import { X509Certificate } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { inspect } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { OrderBody } from "../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { DnsAnswerer } from "../support/DnsAnswerer.ts"
import { startDnsAnswerer } from "../support/DnsAnswerer.ts"
import type { DnsUpdateServer } from "../support/DnsUpdateServer.ts"
import { startDnsUpdateServer } from "../support/DnsUpdateServer.ts"
import { isFull } from "../support/Full.ts"
import { relayWhileKilled } from "../support/KilledRelays.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"

/* `signer.backend = "relay"`, with a second instance of this service as the upstream. */

const secret = Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")

/** Returns the configuration of the upstream. */
const upstreamConfig = (port: number): string =>
  [
    "[challenge]\nenabled = [\"http-01\", \"dns-01\"]",
    "[profiles.trusting]\nchallenge.bypass = true",
    `[profiles.web]\nchallenge.http_01.port = ${port}`,
    "[profiles.zone]\nchallenge.enabled = [\"dns-01\"]",
    "[profiles.bound]\neab.enabled = true",
    "[profiles.strict]\nfilter.rules = [\"no\"]",
    "[profiles.strict.filter.check.names]\ntype = \"identifiers\"\nallow = [\"*.allowed.example\"]",
    "[profiles.strict.filter.rule.no]\nwhen = \"not names\"\nthen = \"deny\""
  ].join("\n")

const relaying = (name: string, upstream: string, more = ""): string =>
  [
    `[profiles.${name}.signer]`,
    "backend = \"relay\"",
    `[profiles.${name}.signer.relay]`,
    `directory_url = "${upstream}"`,
    `account_key_path = "${name}.key"`,
    "poll_interval_ms = 50",
    more
  ].join("\n")

describe.each(databases)("a relay on $name", (backend) => {
  let upstream: Server
  let server: Server
  let dns: DnsAnswerer
  let updates: DnsUpdateServer
  let databaseUrl = ""
  beforeAll(async () => {
    await builtServer()
    const [port, upstreamPort] = [await freePort(), await freePort()]
    const at = (profile: string) => `http://127.0.0.1:${upstreamPort}/profile/${profile}/directory`
    databaseUrl = await backend.freshUrl()
    dns = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] } })
    updates = await startDnsUpdateServer(
      "example.",
      [{ name: "relay.", algorithm: "hmac-sha256", secret }],
      (name, values) => {
        dns.zone.set(name, { TXT: values })
      }
    )
    upstream = await startServer({
      config: upstreamConfig(port),
      port: upstreamPort,
      env: { ACME_SVC_DNS__RESOLVER: dns.address }
    })
    const dns01 = [
      "challenge_strategy = \"dns01\"",
      "[profiles.zone.signer.relay.dns01.rfc2136]",
      `server = "127.0.0.1:${updates.port}"`,
      "zone = \"example.\"",
      "tsig_key_name = \"relay.\"",
      `tsig_key_secret = "${secret}"`
    ].join("\n")
    server = await startServer({
      databaseUrl,
      port,
      config: [
        "[challenge]\nbypass = true\nenabled = [\"http-01\", \"dns-01\"]",
        // Each kill uses up an attempt of each order in progress.
        "[jobs]\nmax_attempts = 20",
        relaying("default", at("trusting")),
        relaying("web", at("web"), "challenge_strategy = \"http01\""),
        relaying("zone", at("zone"), dns01),
        relaying("strict", at("strict")),
        `${relaying("bound", at("trusting"))}\n[profiles.bound.eab]\nenabled = true`
      ].join("\n")
    })
  })
  afterAll(async () => {
    await server.dispose()
    await upstream.dispose()
    await updates.stop()
    await dns.stop()
  })

  const sessionAt = (profile: string) => AcmeSession.open(server.directoryUrl.replace("/default/", `/${profile}/`))

  const ordered = async (profile: string, ...names: ReadonlyArray<string>) => {
    const session = await sessionAt(profile)
    await session.register()
    const { body, url } = await session.newOrder(names)
    for (const authorization of body.authorizations) {
      const { challenges } = await session.authorization(authorization)
      await session.trigger(challenges[0]?.url ?? "")
    }
    await session.awaitOrder(url, ["ready"])
    const answer = await session.finalize(body, makeCsr({ names }).csr)
    assert.deepStrictEqual([answer.status, answer.headers["retry-after"]], [200, "0"])
    const order: OrderBody = await session.awaitOrder(url, ["valid", "invalid"])
    return { session, order, url }
  }

  const issued = async (profile: string, ...names: ReadonlyArray<string>) => {
    const { order, session } = await ordered(profile, ...names)
    assert.strictEqual(order.status, "valid", JSON.stringify(order.error))
    const chain = await session.download(order.certificate ?? "")
    const leaf = new X509Certificate(chain)
    assert.isTrue(leaf.verify(new X509Certificate(readFileSync(upstream.caFile)).publicKey), "the upstream signed it")
    return { session, leaf }
  }

  it("registers at its first start, and stores its key and account in files", () => {
    for (const name of ["default", "web", "zone", "strict"]) {
      const key = join(server.directory, `${name}.key`)
      assert.strictEqual(statSync(key).mode & 0o777, 0o600)
      assert.match(
        readFileSync(`${key}.kid`, "utf8"),
        /^http:\/\/127\.0\.0\.1:\d+\/profile\/\w+\/acct\/[0-9a-f-]{36}\n$/
      )
    }
    assert.isFalse(existsSync(join(server.directory, "ca.key")), "no CA of its own")
  })

  it("gets certificates signed and revoked by an upstream that bypasses validation", async () => {
    const { leaf, session } = await issued("default", "a.example", "*.a.example")
    const revoke = { certificate: leaf.raw.toString("base64url"), reason: 4 }
    const answer = await session.post(session.directory.revokeCert ?? "", revoke)
    assert.strictEqual(answer.status, 200, answer.text)
    const upstreamRows = await sqlAt(
      `sqlite://${join(upstream.directory, "sqlite.db")}`,
      "SELECT revocation_reason FROM orders WHERE revoked_at IS NOT NULL"
    )
    assert.deepStrictEqual(upstreamRows.map((row) => Number(row["revocation_reason"])), [4])
    const rows = await sqlAt(databaseUrl, "SELECT status, error FROM upstream_orders")
    assert.deepStrictEqual(rows.map(({ error, status }) => [status, error]), [["valid", null]])
  })

  it("serves the upstream's token with http01 only while the upstream validates", async () => {
    await issued("web", "c.example", "d.example")
    assert.deepStrictEqual(await sqlAt(databaseUrl, "SELECT token FROM http01_tokens"), [])
    const refused = await ordered("web", "*.c.example").then(() => "nothing", String)
    assert.match(
      refused,
      /rejectedIdentifier.*http01, which cannot prove a wildcard; that needs challenge_strategy dns01/
    )
    const asked = async (path: string, method = "GET") =>
      (await fetch(`${server.baseUrl}/.well-known/acme-challenge/${path}`, { method })).status
    assert.deepStrictEqual([await asked(""), await asked("unknown"), await asked("a/b"), await asked("x", "POST")], [
      404,
      404,
      404,
      405
    ])
  })

  it("publishes values with dns01 in addition to existing ones, and removes only its own", async () => {
    updates.texts.set("_acme-challenge.e.example", ["somebody's"])
    await issued("zone", "e.example", "*.e.example")
    assert.deepStrictEqual(updates.texts.get("_acme-challenge.e.example"), ["somebody's"])
    assert.deepStrictEqual(updates.made.map(({ action }) => action).sort(), ["add", "add", "delete", "delete"])
    const refused = await ordered("zone", "outside.test").then(() => "nothing", String)
    assert.match(
      refused,
      /rejectedIdentifier.*the record _acme-challenge\.outside\.test, which this server cannot publish/
    )
  })

  it("shows the upstream's refusal of a name in the order, in the log and to operators", async () => {
    const { order, url } = await ordered("strict", "b.example")
    assert.strictEqual(order.status, "invalid")
    assert.strictEqual(order.error?.type, "urn:ietf:params:acme:error:rejectedIdentifier")
    assert.match(order.error?.detail ?? "", /^The upstream authority refused a name: /)
    await server.waitForEvent("http_01_responder_mounted")
    const failed = await server.waitForEvent("upstream_request_failed", {
      where: ({ fields }) => fields["profile"] === "strict"
    })
    assert.deepInclude(failed.fields, { status: 403 })

    const command = async (...words: ReadonlyArray<string>) => {
      const env = { ACME_SVC_DATABASE__URL: databaseUrl }
      const ended = await commandLine(["upstream", "order", ...words], {
        config: null,
        directory: server.directory,
        env
      })
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
      return ended.stdout
    }
    const id = url.slice(url.lastIndexOf("/") + 1)
    const list = JSON.parse(await command("list", "--profile", "strict", "--status", "invalid", "--json")) as {
      readonly items: ReadonlyArray<Record<string, unknown>>
      readonly total: number
    }
    assert.strictEqual(list.total, 1)
    const [listed] = list.items
    assert.deepInclude(listed, { orderId: id, profile: "strict", status: "invalid", localStatus: "invalid" })
    assert.match(String(listed?.["error"]), /^upstream_refused: rejectedIdentifier: /)
    assert.strictEqual(listed?.["clientIp"], "127.0.0.1")
    assert.notProperty(listed, "csr")
    const shown = JSON.parse(await command("show", id, "--json")) as Record<string, unknown>
    const { job, ...order_ } = shown
    assert.deepStrictEqual(order_, listed)
    assert.deepInclude(job, { kind: "signer_relay_issue", status: "failed" })
    assert.match(await command("list"), /^ORDER +PROFILE +UPSTREAM +HERE[^]+\n\d+ of \d+ row\(s\)\.\n$/)
    assert.match(await command("show", id), /\nnames +b\.example\n/)
  })

  it("shows no upstream order for an order that is not relayed", async () => {
    const env = { ACME_SVC_DATABASE__URL: databaseUrl }
    const at = { config: null, directory: server.directory, env }
    const unknown = "01890a5d-ac96-774b-bcce-b302099a8057"
    const missing = await commandLine(["upstream", "order", "show", unknown], at)
    assert.deepStrictEqual([missing.code, missing.stderr], [
      3,
      `There is no upstream order ${unknown}.\n`
    ])
    const wrong = await commandLine(["upstream", "order", "list", "--status", "ready"], at)
    assert.strictEqual(wrong.code, 3)
    assert.match(wrong.stderr, /processing, valid, invalid/)
  })

  it("gets its account from init", async () => {
    const directory = freshDirectory()
    const config = relaying("trusting", upstream.directoryUrl.replace("/default/", "/trusting/"))
    const made = await commandLine(["init"], { config, directory })
    assert.strictEqual(made.code, 0, made.stderr)
    assert.match(made.stdout, /\ncreated account +trusting\.key, trusting\.key\.kid\n$/)
    const again = await commandLine(["init"], { config, directory })
    assert.strictEqual(again.stdout, "Nothing to do: everything exists.\n")
    const bound = relaying("bound", upstream.directoryUrl.replace("/default/", "/bound/"))
    const refused = await commandLine(["init"], { config: bound, directory: freshDirectory() })
    assert.strictEqual(refused.code, 3)
    assert.match(refused.stderr, /^Profile bound: .*external account binding/)
  })

  it("requires a credential from its own clients if the profile binds accounts", async () => {
    const session = await sessionAt("bound")
    assert.deepInclude(session.directory.meta, { externalAccountRequired: true })
    const answer = await session.post(session.directory.newAccount, { termsOfServiceAgreed: true })
    assert.deepStrictEqual([answer.status, problemType(answer)], [403, "externalAccountRequired"])
    session.close()
  })

  it("registers by a command with a credential, and does not store the HMAC key", async () => {
    const directory = freshDirectory()
    const bound = upstream.directoryUrl.replace("/default/", "/bound/")
    const command = (...words: ReadonlyArray<string>) =>
      commandLine(["upstream", ...words], { config: relaying("bound", bound), directory })
    const shown = async () => JSON.parse((await command("show", "--json")).stdout) as Record<string, unknown>
    assert.deepInclude(await shown(), {
      accountKeyPath: `${directory}/bound.key`,
      accountKeyPresent: false,
      registered: false
    })

    const unbound = await command("register")
    assert.deepStrictEqual([unbound.code, unbound.stdout], [3, ""])
    assert.match(unbound.stderr, /^The upstream refused: .*external account binding/)
    const made = await commandLine(["eab", "create", "--label", "relay", "--json"], {
      config: upstreamConfig(1),
      directory: upstream.directory
    })
    const { hmacKey, kid } = JSON.parse(made.stdout) as { readonly kid: string; readonly hmacKey: string }
    const file = join(freshDirectory(), "hmac")
    writeFileSync(file, `${hmacKey}\n`, { mode: 0o600 })
    const registered = await command("register", "--eab-kid", kid, "--eab-hmac-key-file", file)
    assert.deepStrictEqual([registered.code, registered.stderr], [0, ""])
    assert.match(registered.stdout, /^Registered: http\S+\n$/)
    const again = await command("register")
    assert.match(again.stdout, /^The account is registered already, and the upstream knows it: http\S+\n$/)
    assert.deepInclude(await shown(), { accountKeyPresent: true, registered: true })
    for (const name of readdirSync(directory)) assert.notInclude(readFileSync(join(directory, name), "utf8"), hmacKey)
    const wrong = await commandLine(["upstream", "show"], { config: "[profiles.a]\n", directory: freshDirectory() })
    assert.deepStrictEqual([wrong.code, wrong.stderr], [3, "Profile a does not relay to an upstream.\n"])
  })

  it("writes none of its secrets to the log or to the database", async () => {
    const tables = ["jobs", "audit_log", "upstream_orders", "orders", "http01_tokens"]
    const rows = await Promise.all(tables.map((table) => sqlAt(databaseUrl, `SELECT * FROM ${table}`)))
    const said = [
      server.stdout(),
      server.stderr(),
      inspect(rows, { depth: null, maxArrayLength: null, maxStringLength: null })
    ].join("\n")
    assert.include(said, "upstream_relay_succeeded", "what is searched is there")
    const keys = ["default", "web", "zone", "strict"].map((name) =>
      readFileSync(join(server.directory, `${name}.key`), "utf8").split("\n")[1] ?? ""
    )
    for (const one of [secret, Buffer.from(secret, "base64").toString(), ...keys]) assert.notInclude(said, one)
  })

  it("opens one upstream order for each of its own even if it is killed at random points", async () => {
    const countUpstream = async () => {
      const [row] = await sqlAt(
        `sqlite://${join(upstream.directory, "sqlite.db")}`,
        "SELECT count(*) AS n FROM orders WHERE profile = 'zone'"
      )
      return Number(row?.["n"])
    }
    const [before, orders] = [await countUpstream(), isFull ? 24 : 6]
    const nameOf = (index: number) => `k${index}.example`
    await relayWhileKilled({ server, databaseUrl, profile: "zone", nameOf, orders, between: 3, withinMillis: 120 })
    assert.strictEqual(await countUpstream() - before, orders)
  })
})
