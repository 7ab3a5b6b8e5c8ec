import { Effect } from "effect"
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:https"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, beforeEach, describe, it, vi } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { makeHttpClient } from "../support/Http.ts"
import { verifyChain } from "../support/Openssl.ts"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import { talk } from "../support/Talk.ts"

/* A running process gets one configuration after another by SIGHUP (docs/contribute/decisions/process.md, "Reload"). */

interface Settings {
  readonly port: number
  readonly baseUrl: string
  readonly tls: boolean
  readonly profiles: ReadonlyArray<string>
  /** Further keys of the section `server`. */
  readonly limits: string
  readonly more: string
}

const configOf = ({ baseUrl, limits, more, port, profiles, tls }: Settings): string =>
  [
    `[server]\nbind_address = "127.0.0.1:${port}"\nbase_url = "${baseUrl}"\n${limits}\n[server.tls]\nenabled = ${tls}`,
    more,
    ...profiles.map((name) => `[profiles.${name}]\nenabled = true`)
  ].join("\n\n")

/** The environment has no address, because that would override the file. */
const fromFile = {
  ACME_SVC_SERVER__BIND_ADDRESS: undefined,
  ACME_SVC_SERVER__BASE_URL: undefined,
  ACME_SVC_SERVER__TLS__ENABLED: undefined
}

const statusOverTls = (port: number, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false }, (response) => {
      response.resume()
      response.once("end", () => resolve(response.statusCode))
    }).once("error", reject).end()
  })

describe.each(databases)("reload on $name", ({ freshUrl }) => {
  let ground: Ground
  let url: string
  let first: Settings
  let generation = 0

  const write = (settings: Partial<Settings> | string) =>
    writeFileSync(
      join(ground.server.directory, "config.toml"),
      typeof settings === "string" ? settings : configOf({ ...first, ...settings })
    )

  /** Reloads with other settings, and returns what was logged about the reload. */
  const reload = async (settings: Partial<Settings> = {}) => {
    write(settings)
    const next = ++generation
    ground.server.signal("SIGHUP")
    const { fields } = await ground.server.waitForEvent("server_config_reloaded", {
      where: (record) => record.fields["generation"] === next
    })
    return fields
  }

  /** Reloads with a configuration that is refused, and returns the text of the refusal. */
  const refused = async (settings: Partial<Settings> | string, event = "server_config_reload_refused") => {
    write(settings)
    const before = ground.server.records().filter(({ fields }) => fields["event"] === event).length
    ground.server.signal("SIGHUP")
    let seen = 0
    const { fields } = await ground.server.waitForEvent(event, {
      where: (record) => record.fields["event"] === event && ++seen > before
    })
    return String(fields["error"])
  }

  const http = makeHttpClient()
  const statusOf = async (url: string): Promise<number> => (await http.send(url, { method: "GET" })).status

  const issue = async (name: string, directoryUrl = ground.server.directoryUrl) => {
    const session = await AcmeSession.open(directoryUrl)
    await session.register()
    const { chain } = await session.issue([name], ground.responder.tokens)
    await verifyChain(chain, ground.server.caFile, name)
  }

  beforeAll(async () => {
    await builtServer()
    const port = await freePort()
    first = { port, baseUrl: `http://127.0.0.1:${port}`, tls: false, profiles: ["default"], limits: "", more: "" }
    url = await freshUrl()
    ground = await startGround({ config: configOf(first), databaseUrl: url, env: fromFile, port })
  })

  beforeEach(() => reload())

  afterAll(async () => {
    http.close()
    await ground?.dispose()
  })

  it("is refused if the file has disappeared", async () => {
    rmSync(join(ground.server.directory, "config.toml"))
    ground.server.signal("SIGHUP")
    const { fields } = await ground.server.waitForEvent("server_config_reload_refused")
    assert.match(String(fields["error"]), /\/config\.toml was there before, and does not exist any more\.$/)
  })

  it("begins to serve an added profile and stops serving a removed one", async () => {
    const { profileUrl } = ground.server
    assert.strictEqual(await statusOf(profileUrl("second")), 404)
    assert.deepInclude(await reload({ profiles: ["default", "second"] }), {
      listeners_rebound: 0,
      changed_keys: ["profiles.second"]
    })
    await ground.server.waitForEvent("profile_mounted", { where: ({ fields }) => fields["profile"] === "second" })
    await issue("second.example", profileUrl("second"))
    await reload({ profiles: ["second"], more: "[challenge]\nbypass = true" })
    await ground.server.waitForEvent("challenge_validation_bypassed")
    await ground.server.waitForEvent("profile_unmounted", { where: ({ fields }) => fields["profile"] === "default" })
    assert.strictEqual(await statusOf(profileUrl("default")), 404)
    await reload()
    await issue("again.example")
  })

  it("applies the new generation to an open connection at its next request", async () => {
    const said = await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const client = yield* talk(first.port)
      const ask = client.send(`GET /profile/late/directory HTTP/1.1\r\nHost: x\r\n\r\n`)
      yield* ask
      yield* client.heard(/HTTP\/1\.1 404 [^]*\}/)
      yield* Effect.promise(() => reload({ profiles: ["default", "late"] }))
      yield* ask
      return yield* client.heard(/HTTP\/1\.1 200 [^]*\}/)
    })))
    assert.include(said, "newNonce")
  })

  it("refuses a wrong configuration with all of its errors", async () => {
    const error = await refused({ more: "[order]\nmax_identifiers = 0\n[nonce]\nttl = 1" })
    assert.strictEqual(
      error.replaceAll(/line \d+/g, "line N"),
      "The configuration is refused, 2 faults: nonce.ttl: is not a known key; the nearest is nonce.ttl_seconds (line N of "
        + "config.toml); order.max_identifiers: must be at least 1 (line N of config.toml)"
    )
    const many = await refused({
      more: `[order]\n${Array.from({ length: 30 }, (_, at) => `key_${at} = 1`).join("\n")}`
    })
    assert.match(
      many,
      /^The configuration is refused, 30 faults: order\.key_0: .*; and \d+ more, which `acme-svc config check` shows$/
    )
    assert.isAtMost(many.length, 500)
    assert.include(await refused("no toml at all ["), "config.toml")
    await issue("unchanged.example")
  })

  it("does not keep commands about records from working if the file on disk is refused", async () => {
    const { directory, directoryUrl } = ground.server
    const section = `[database]\nurl = "${url}"\n`
    const run = (...words: ReadonlyArray<string>) =>
      commandLine(words, { config: null, directory, env: { ...fromFile, ACME_SVC_DATABASE__URL: undefined } })
    const session = await AcmeSession.open(directoryUrl)
    await session.register()
    const { order } = await session.issue(["night.example"], ground.responder.tokens)
    for (const broken of ["[order]\nmax_identifiers = 0\n", "[order]\nno toml at all ["]) {
      await refused(`${section}${broken}`)
      const listed = await run("jobs", "list")
      assert.deepStrictEqual([listed.code, listed.stderr.startsWith("Warning: ")], [0, true], listed.stderr)
    }
    const revoked = await run("order", "revoke", order.url.replace(/.*\//, ""), "--wait", "60")
    assert.strictEqual(revoked.code, 0, revoked.stderr)
    assert.match(revoked.stdout, /^Revoked\. Job .*\nThe revocation list is signed\.\n$/)
  })

  it("refuses a custom page that does not compile, and names its file and line", async () => {
    const [folder, port] = [freshDirectory(), await freePort()]
    const own = join(folder, "login.html")
    const url = `http://127.0.0.1:${port}/ui/login`
    const more = `[admin]\nenabled = true\nbind_address = "127.0.0.1:${port}"\ntemplate_dir = "${folder}"`
    const page = async (): Promise<string> => (await http.send(url, { method: "GET" })).text
    writeFileSync(own, "<p>Ours</p>")
    await reload({ more })
    assert.strictEqual(await page(), "<p>Ours</p>")
    writeFileSync(own, "<p>Ours</p>\n{% for %}")
    assert.include(await refused({ more }), `${own}:2: `)
    assert.strictEqual(await page(), "<p>Ours</p>")
    writeFileSync(own, "<p>Again</p>")
    await reload({ more })
    assert.strictEqual(await page(), "<p>Again</p>")
  })

  it("is refused completely if it would change a key of the section database", async () => {
    const before = await statusOf(ground.server.profileUrl("third"))
    const error = await refused({
      more: `[database]\nacquire_timeout_ms = 4321\npool_max = 7`,
      profiles: ["default", "third"]
    })
    assert.match(
      error,
      /^database\.pool_max: cannot change from "\d+" to "\d+" while the service runs \(line \d+ of config\.toml\)\. database\.acquire_timeout_ms: cannot /
    )
    assert.deepStrictEqual([before, await statusOf(ground.server.profileUrl("third"))], [404, 404])
  })

  it("binds the new socket before it closes the old one, and finishes the requests on the old one", async () => {
    const port = await freePort()
    const held = await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const client = yield* talk(first.port)
      yield* client.send(
        `POST /profile/default/newAccount HTTP/1.1\r\nHost: x\r\nContent-Type: application/jose+json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`
      )
      yield* client.heard(/100 Continue/)
      assert.deepInclude(yield* Effect.promise(() => reload({ port })), { listeners_rebound: 1 })
      yield* client.send("{}")
      return yield* client.ended
    })))
    assert.match(held, /HTTP\/1\.1 400 /)
    assert.strictEqual(await statusOf(`http://127.0.0.1:${port}/health`), 200)
    const old = () => statusOf(`http://127.0.0.1:${first.port}/health`).then(String, String)
    // The end of a connection that was kept open might not have arrived yet.
    await vi.waitFor(async () => assert.match(await old(), /ECONNREFUSED/), { timeout: patienceMs, interval: 50 })
    const listening = await ground.server.waitForEvent("server_listening", {
      where: ({ fields }) => fields["address"] === `127.0.0.1:${port}`
    })
    assert.strictEqual(listening.level, "info")
  })

  it("is refused if an address cannot be bound, and the old socket keeps working", async () => {
    const squatter = createServer()
    await new Promise<void>((resolve) => squatter.listen(0, "127.0.0.1", resolve))
    const { port } = squatter.address() as AddressInfo
    const error = await refused({ port, profiles: ["default", "fourth"] }, "server_config_reload_failed")
    assert.include(error, "server.bind_address")
    await ground.server.waitForEvent("server_socket_bind_failed", {
      where: ({ fields }) => fields["address"] === `127.0.0.1:${port}`
    })
    assert.strictEqual(await statusOf(`${first.baseUrl}/health`), 200)
    assert.strictEqual(await statusOf(ground.server.profileUrl("fourth")), 404)
    await new Promise((resolve) => squatter.close(resolve))
  })

  it("turns TLS on and off without moving the socket", async () => {
    const secure = first.baseUrl.replace("http:", "https:")
    assert.strictEqual(await statusOf(`${first.baseUrl}/health`), 200)
    assert.deepInclude(await reload({ tls: true, baseUrl: secure }), { listeners_rebound: 0 })
    assert.strictEqual(await statusOverTls(first.port, "/health"), 200)
    // An open connection gets its answer and must then be opened again.
    assert.strictEqual(await statusOf(`${first.baseUrl}/health`), 200)
    assert.match(await statusOf(`${first.baseUrl}/health`).then(String, String), /Error|ECONNRESET/)
    assert.deepInclude(await reload(), { listeners_rebound: 0 })
    assert.strictEqual(await statusOf(`${first.baseUrl}/health`), 200)
  })

  it("applies the new settings of the queue and the log", async () => {
    await reload({
      more:
        "[jobs]\nmax_concurrent = 3\npoll_interval_ms = 500\nlease_seconds = 60\n[logging]\nfilter = \"acme_svc=debug\""
    })
    const { fields } = await ground.server.waitForEvent("job_runner_retuned", {
      where: (record) => record.fields["max_concurrent"] === 3
    })
    assert.deepInclude(fields, { poll_interval_ms: 500, lease_seconds: 60, retry_base_seconds: 30 })
    await statusOf(`${first.baseUrl}/health`)
    const seen = await ground.server.waitForEvent("request_completed", { where: ({ level }) => level === "debug" })
    assert.strictEqual(seen.fields["status"], 200)
    await issue("retuned.example")
  })

  it("applies limits from the next request on, even for open connections", async () => {
    const post = (octets: number) => {
      const head = "POST /profile/default/newAccount HTTP/1.1\r\nHost: x\r\nContent-Type: application/jose+json\r\n"
      return `${head}Content-Length: ${octets}\r\n\r\n${"x".repeat(octets)}`
    }
    const said = await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const client = yield* talk(first.port)
      yield* client.send(post(2000))
      yield* client.heard(/HTTP\/1\.1 400 [^]*\}/)
      yield* Effect.promise(() => reload({ limits: "max_body_bytes = 1000" }))
      yield* client.send(post(2000))
      return yield* client.ended
    })))
    assert.match(said, /HTTP\/1\.1 413 /)
  })

  it("keeps the key of a signer whose section has not changed, and creates no other key", async () => {
    const key = join(ground.server.directory, "ca.key")
    renameSync(key, `${key}.away`)
    await reload({ profiles: ["default", "beside"] })
    assert.isFalse(existsSync(key))
    await issue("kept.example")
    await issue("kept.example", ground.server.profileUrl("beside"))
    renameSync(`${key}.away`, key)
  })

  it("fails no request and leaves no socket open in fifty reloads under load", async () => {
    const load = { runs: true }
    const failures: Array<string> = []
    let done = 0
    const client = async (index: number) => {
      const session = await AcmeSession.open(ground.server.directoryUrl)
      await session.register()
      for (let round = 0; load.runs; round++) {
        const name = `c${index}-${round}.example`
        try {
          const { chain } = await session.issue([name], ground.responder.tokens)
          await verifyChain(chain, ground.server.caFile, name)
          done++
        } catch (error) {
          failures.push(String(error))
          return
        }
      }
    }
    const descriptors = () => readdirSync(`/proc/${ground.server.pid()}/fd`).length
    await reload()
    const clients = [client(0), client(1), client(2)]
    const before = descriptors()
    for (let round = 0; round < 50; round++) {
      if (round % 5 === 4) await refused({ more: "[order]\nmax_identifiers = 0" })
      else {await reload({
          profiles: round % 2 === 0 ? ["default", "extra"] : ["default"],
          more: `[jobs]\nmax_concurrent = ${round % 7 + 2}`
        })}
    }
    load.runs = false
    await Promise.all(clients)
    await reload()
    assert.deepStrictEqual(failures, [])
    assert.isAbove(done, 0)
    assert.isAtMost(descriptors(), before + 20, "files and sockets of the process")
  })

  it("applies the last configuration after only a few reloads if signals come in quick succession", async () => {
    for (let index = 0; index < 50; index++) ground.server.signal("SIGHUP")
    write({ profiles: ["default", "last"] })
    ground.server.signal("SIGHUP")
    await ground.server.waitForEvent("profile_mounted", { where: ({ fields }) => fields["profile"] === "last" })
    const before = generation
    const reloads = ground.server.records().filter(({ fields }) => fields["event"] === "server_config_reloaded")
    generation = Math.max(...reloads.map(({ fields }) => Number(fields["generation"])), generation) + 1
    await ground.server.waitForEvent("server_config_reloaded", {
      where: ({ fields }) => Number(fields["generation"]) >= before + 1
    })
    assert.isAtMost(generation - before, 12)
  })
})
