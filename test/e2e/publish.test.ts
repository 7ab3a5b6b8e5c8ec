import { Effect } from "effect"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { openssl } from "../crypto/Pki.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer } from "../support/Databases.ts"
import { makeHttpClient } from "../support/Http.ts"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"
import { talk } from "../support/Talk.ts"

/* Lists and certificates over HTTP without TLS, while ACME is served with TLS. */

const configOf = (publish: number | undefined, metrics: number): string =>
  `${publish === undefined ? "" : `[publish]\nenabled = true\nbind_address = "127.0.0.1:${publish}"\n`}
[metrics]
enabled = true
bind_address = "127.0.0.1:${metrics}"
[profiles.default]
[profiles.closed]
signer.local_ca = { cert_path = "closed.pem", key_path = "closed.key", crl_path = "closed.crl" }
filter.rules = ["nobody"]
filter.check.nobody = { type = "allowed_ip", allow = ["192.0.2.1"] }
filter.rule.nobody = { when = "nobody", then = "allow" }
`

describe("the listener without TLS", () => {
  const http = makeHttpClient()
  let server: Server
  let port: number
  let metrics: number

  const ask = (path: string, at = port, method = "GET") => http.send(`http://127.0.0.1:${at}${path}`, { method })
  const get = (path: string) =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const client = yield* talk(port)
      yield* client.send(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      const said = yield* client.ended
      return Buffer.from(said.slice(said.indexOf("\r\n\r\n") + 4), "latin1")
    })))
  const closed = (at: number) =>
    vi.waitFor(async () => assert.match(await ask("/", at).then(String, String), /ECONNREFUSED/), {
      timeout: patienceMs,
      interval: 50
    })
  let generation = 0
  const reload = async (publish: number | undefined) => {
    writeFileSync(join(server.directory, "config.toml"), configOf(publish, metrics))
    const next = ++generation
    server.signal("SIGHUP")
    return (await server.waitForEvent("server_config_reloaded", {
      where: ({ fields }) => fields["generation"] === next
    })).fields
  }

  beforeAll(async () => {
    await builtServer()
    port = await freePort()
    metrics = await freePort()
    server = await startServer({ tls: true, config: configOf(port, metrics) })
  })

  afterAll(async () => {
    http.close()
    await server?.stop()
  })

  it("serves lists and certificates even where a policy refuses clients", async () => {
    assert.strictEqual((await server.waitForEvent("publish_listening")).fields["address"], `127.0.0.1:${port}`)
    for (const [profile, file] of [["default", "ca"], ["closed", "closed"]] as const) {
      const text = openssl(
        ["crl", "-inform", "DER", "-noout", "-issuer", "-crlnumber"],
        await get(`/profile/${profile}/crl`)
      )
      assert.match(text.toString(), /crlNumber=0x0?1/i)
      const pem = readFileSync(join(server.directory, `${file}.pem`), "utf8")
      assert.strictEqual((await get(`/profile/${profile}/ca.pem`)).toString(), pem)
      const issuer = await get(`/profile/${profile}/issuer.cer`)
      assert.strictEqual(openssl(["x509", "-inform", "DER"], issuer).toString(), pem)
    }
    for (const path of ["/profile/default/directory", "/health", "/ready"]) {
      assert.strictEqual((await ask(path)).status, 404, path)
    }
    assert.strictEqual((await ask("/profile/default/crl", port, "POST")).status, 405)
    assert.strictEqual((await ask("/profile/default/crl", port, "HEAD")).status, 200)
  })

  it("counts and records its requests", async () => {
    await ask("/profile/default/crl")
    const { span } = await server.waitForEvent("request_completed", {
      where: (record) => record.span["profile"] === "closed" && record.fields["status"] === 200
    })
    assert.strictEqual(span["method"], "GET")
    const { text } = await ask("/metrics", metrics)
    assert.match(text, /^acme_svc_requests_total\{.*profile="default",route="\/crl",status="200"\} [1-9]/m)
  })

  it("moves, stops and starts again at reloads", async () => {
    const moved = await freePort()
    assert.deepInclude(await reload(moved), { listeners_rebound: 1 })
    assert.strictEqual((await ask("/profile/default/crl", moved)).status, 200)
    await closed(port)
    await reload(undefined)
    await server.waitForEvent("server_listener_stopped", { where: ({ fields }) => fields["listener"] === "publish" })
    await closed(moved)
    await reload(port)
    assert.strictEqual((await ask("/profile/default/crl")).status, 200)
  })

  it("stops with the process without waiting for an idle connection", async () => {
    await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const client = yield* talk(port)
      yield* client.send("GET /profile/default/ca.pem HTTP/1.1\r\nHost: x\r\n\r\n")
      yield* client.heard(/END CERTIFICATE/)
      server.signal("SIGTERM")
      yield* client.ended
    })))
    const { fields } = await server.waitForEvent("server_shutdown_completed")
    assert.strictEqual(fields["requests_cut"], 0)
    await closed(port)
  })
})

describe("publish.bind_address", () => {
  beforeAll(builtServer)

  it("prevents the startup if it is the address of another listener", async () => {
    const port = await freePort()
    const server = `[server]\nbind_address = "localhost:${port}"\n`
    const { code, records, stderr } = await commandLine(["serve"], { config: server + configOf(port, 0) })
    assert.strictEqual(code, 3)
    assert.match(stderr, /publish\.bind_address: .*server\.bind_address/)
    const told = records.map(({ fields }) => fields["event"])
    assert.include(told, "publish_config_invalid")
    assert.notInclude(told, "db_opened")
  })

  it("is named in the error if it is already in use", async () => {
    const squatter = createServer().listen(0, "127.0.0.1")
    await once(squatter, "listening")
    const { port } = squatter.address() as AddressInfo
    const env = { ACME_SVC_SERVER__BIND_ADDRESS: "127.0.0.1:0" }
    const { code, records, stderr } = await commandLine(["serve"], { config: configOf(port, 0), env })
    assert.strictEqual(code, 1, stderr)
    assert.match(stderr, /^publish\.bind_address: Cannot listen on 127\..*\(EADDRINUSE\)\.$/m)
    const failed = records.find(({ fields }) => fields["event"] === "publish_socket_bind_failed")?.fields
    assert.strictEqual(failed?.["address"], `127.0.0.1:${port}`)
    const worker = await startServer({
      config: configOf(port, await freePort()),
      flags: ["--role", "worker"],
      startedBy: "job_runner_started"
    })
    squatter.close()
    await worker.waitForEvent("metrics_listening")
    await worker.stop()
    assert.notInclude(worker.records().map(({ fields }) => fields["event"]), "publish_listening")
  })
})
