import { once } from "node:events"
import { writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { makeHttpClient } from "../support/Http.ts"
import { readOpenMetrics } from "../support/OpenMetrics.ts"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import { startServer } from "../support/Server.ts"

const sections = (port: number, more = ""): string =>
  `[metrics]\nenabled = true\nbind_address = "127.0.0.1:${port}"\n\n${more}\n\n[profiles.default]\nenabled = true\n`

/** Returns the samples of a scrape: `name{labels}` and the value. */
const samplesOf = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line) => {
      const at = line.lastIndexOf(" ")
      return [line.slice(0, at), Number(line.slice(at + 1))] as const
    })
  )

/** Leaves out what changes with time, and what is read from the database, which is missing on a busy machine. */
const steady = (samples: ReadonlyMap<string, number>) =>
  [...samples].filter(([name]) =>
    !/^acme_svc_(?:jobs|job_oldest|database_pool|certificates_expiring|crl_next|authority_not_after)/.test(name)
  )

const roles = `role="acme,admin,worker"`

describe.each(databases)("the metrics listener on $name", ({ freshUrl }) => {
  const http = makeHttpClient()
  let ground: Ground
  let port: number
  let session: AcmeSession

  const ask = (path: string, method = "GET", at = port) => http.send(`http://127.0.0.1:${at}${path}`, { method })
  const scrape = async (at = port) => samplesOf((await ask("/metrics", "GET", at)).text)
  const value = async (sample: string) => (await scrape()).get(sample)

  beforeAll(async () => {
    await builtServer()
    port = await freePort()
    ground = await startGround({ config: sections(port), databaseUrl: await freshUrl() })
    session = await AcmeSession.open(ground.server.directoryUrl)
    await session.register()
  })

  afterAll(async () => {
    http.close()
    await ground?.dispose()
  })

  it("answers GET and HEAD of /metrics in the OpenMetrics format", async () => {
    const answer = await ask("/metrics")
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(answer.headers["content-type"], "application/openmetrics-text; version=1.0.0")
    const text = answer.text
    assert.strictEqual(readOpenMetrics(text).get("acme_svc_requests"), "counter")
    assert.notMatch(text, /_created\b/)
    assert.deepInclude(await ask("/metrics", "HEAD"), { status: 200 })
    const refused = await ask("/metrics", "POST")
    assert.deepStrictEqual([refused.status, refused.headers["allow"]], [405, "GET, HEAD"])
    assert.deepStrictEqual(
      (await Promise.all(["/", "/health", "/metrics/"].map((path) => ask(path)))).map(({ status }) => status),
      [404, 404, 404]
    )
    assert.strictEqual((await http.send(`${ground.server.baseUrl}/metrics`, { method: "GET" })).status, 404)
    const ready = `{"ready":true,"roles":["acme","admin","worker"]}`
    assert.strictEqual((await ask("/ready")).text, ready)
    assert.strictEqual((await http.send(`${ground.server.baseUrl}/ready`, { method: "GET" })).text, ready)
    assert.strictEqual((await ground.server.waitForEvent("metrics_listening")).fields["address"], `127.0.0.1:${port}`)
  })

  it("starts the counters of issuance at 0", async () => {
    const samples = await scrape()
    assert.strictEqual(samples.get(`acme_svc_certificates_issued_total{${roles},profile="default"}`), 0)
    for (const reason of ["badCSR", "serverInternal"]) {
      const series = `acme_svc_certificate_issue_failures_total{${roles},profile="default",reason="${reason}"}`
      assert.strictEqual(samples.get(series), 0)
    }
  })

  it("counts requests by route and status, and issuances by outcome", async () => {
    const route = (name: string, status: number) =>
      `acme_svc_requests_total{${roles},profile="default",route="${name}",status="${status}"}`
    const before = await value(route("/newOrder", 201)) ?? 0
    await session.issue(["counted.example"], ground.responder.tokens)
    await ground.server.waitForEvent("order_finalized") // The service counts the event before it logs the event.
    const samples = await scrape()
    assert.strictEqual(samples.get(route("/newOrder", 201)), before + 1)
    assert.strictEqual(samples.get(route("/order/{id}/finalize", 200)), 1)
    const durations = `acme_svc_request_duration_seconds_count{${roles},profile="default",route="/order/{id}/finalize"}`
    assert.strictEqual(samples.get(durations), 1)
    assert.strictEqual(samples.get(`acme_svc_certificates_issued_total{${roles},profile="default"}`), 1)
    assert.strictEqual(samples.get(`acme_svc_certificate_issue_duration_seconds_count{${roles},profile="default"}`), 1)
    const ready = await session.newOrder(["refused.example"])
    await session.authorize(ready.body, ground.responder.tokens)
    await session.post(ready.body.finalize, { csr: "AAAA" })
    const failures = `acme_svc_certificate_issue_failures_total{${roles},profile="default",reason="badCSR"}`
    assert.strictEqual(await value(failures), 1)
  })

  it("creates no series from a path, name or profile that a client sends", async () => {
    await http.send(`${ground.server.baseUrl}/health`, { method: "GET" })
    await http.send(`${ground.server.baseUrl}/nothing`, { method: "GET" })
    await http.send(`${ground.server.baseUrl}/profile/default/nothing`, { method: "GET" })
    const series = async () => steady(await scrape()).map(([name]) => name)
    const before = await series()
    for (let index = 0; index < 300; index++) {
      const paths = [`/x${index}`, `/profile/p${index}/directory`, `/profile/default/order${index}/a`]
      await http.send(`${ground.server.baseUrl}${paths[index % 3] ?? ""}`, { method: "GET" })
    }
    assert.deepStrictEqual(await series(), before)
    assert.include(before, `acme_svc_requests_total{${roles},profile="none",route="/health",status="200"}`)
    assert.include(before, `acme_svc_requests_total{${roles},profile="none",route="<unmatched>",status="404"}`)
  })

  it("does not count its own scrapes", async () => {
    const [one, two] = [await scrape(), await scrape()]
    assert.deepStrictEqual(steady(two), steady(one))
  })

  it("reports database connections, the job queue, certificates that expire soon, and revocation lists", async () => {
    const isWhole = (samples: ReadonlyMap<string, number>) =>
      ["jobs{", "job_oldest", "certificates_expiring{", "crl_next"].every((series) =>
        [...samples.keys()].some((name) => name.startsWith(`acme_svc_${series}`))
      )
    const samples = await session.poll(() => scrape(), isWhole)
    const connections = ["idle", "busy"].map((state) =>
      samples.get(`acme_svc_database_pool_connections{${roles},state="${state}"}`) ?? 0
    )
    assert.isAbove(connections[0] ?? 0, 0)
    assert.strictEqual(samples.get(`acme_svc_jobs{kind="audit_sweep",status="failed"}`), 0)
    assert.isAtLeast(samples.get(`acme_svc_jobs{kind="nonce_sweep",status="ready"}`) ?? -1, 0)
    assert.isAtLeast(samples.get(`acme_svc_job_oldest_ready_seconds{kind="signer_issue"}`) ?? -1, 0)
    for (const window of ["1d", "7d", "30d"]) {
      assert.strictEqual(samples.get(`acme_svc_certificates_expiring{profile="default",window="${window}"}`), 0)
    }
    const lists = [...samples].filter(([name]) => name.startsWith("acme_svc_crl_next_update_seconds{issuer="))
    assert.strictEqual(lists.length, 1)
    assert.isAbove(lists[0]?.[1] ?? 0, 6 * 86_400)
  })

  it("keeps counters across a reload that moves the listener", async () => {
    const issued = `acme_svc_certificates_issued_total{${roles},profile="default"}`
    const before = await value(issued)
    const moved = await freePort()
    const reload = async (config: string, event: string) => {
      writeFileSync(join(ground.server.directory, "config.toml"), config)
      ground.server.signal("SIGHUP")
      await ground.server.waitForEvent(event)
    }
    // The log record may come before the end of a connection that was kept open.
    const closed = (at: number) =>
      vi.waitFor(async () => assert.match(await ask("/metrics", "GET", at).then(String, String), /ECONNREFUSED/), {
        timeout: patienceMs,
        interval: 50
      })
    await reload(sections(moved), "server_config_reloaded")
    assert.strictEqual((await scrape(moved)).get(issued), before)
    await closed(port)
    await reload("[profiles.default]\nenabled = true\n", "server_listener_stopped")
    await closed(moved)
  })
})

describe("the validity of a certificate", () => {
  beforeAll(builtServer)

  it.each([{ tls: true }, { tls: false }])(
    "is reported for the CA, and also for the listener if that has TLS ($tls)",
    async ({ tls }) => {
      const http = makeHttpClient()
      const port = await freePort()
      const server = await startServer({ config: sections(port), tls })
      try {
        const { text } = await http.send(`http://127.0.0.1:${port}/metrics`, { method: "GET" })
        const days = new Map(
          [...samplesOf(text)].flatMap(([name, seconds]) =>
            name.includes("_not_after_seconds{") ? [[name, seconds / 86_400] as const] : []
          )
        )
        const names = [...days.keys()].map((name) => name.replace(/[0-9a-f]{64}/, "ID"))
        const listener = `acme_svc_listener_not_after_seconds{listener="acme"}`
        assert.deepStrictEqual(names, [
          `acme_svc_authority_not_after_seconds{issuer="ID"}`,
          ...tls ? [listener] : []
        ])
        assert.closeTo([...days.values()][0] ?? 0, 3653, 1)
        if (tls) assert.isAbove(days.get(listener) ?? 0, 300)
      } finally {
        http.close()
        await server.dispose()
      }
    }
  )
})

describe("metrics.bind_address", () => {
  beforeAll(builtServer)

  it("prevents the startup if it is the address of another listener, in any notation", async () => {
    const port = await freePort()
    const server = `[server]\nbind_address = "localhost:${port}"\nbase_url = "http://127.0.0.1:${port}"`
    const { code, records, stderr } = await commandLine(["serve"], { config: sections(port, server) })
    assert.strictEqual(code, 3)
    assert.include(stderr, "metrics.bind_address")
    assert.include(stderr, "server.bind_address")
    const told = records.map(({ fields }) => fields["event"])
    assert.include(told, "metrics_config_invalid")
    assert.notInclude(told, "db_opened")
  })

  it("is named in the error if it is already in use", async () => {
    const squatter = createServer().listen(0, "127.0.0.1")
    await once(squatter, "listening")
    const { port } = squatter.address() as AddressInfo
    const env = {
      ACME_SVC_CONFIG: "none.toml",
      ACME_SVC_PROFILES__DEFAULT__ENABLED: "true",
      ACME_SVC_SERVER__BIND_ADDRESS: "127.0.0.1:0",
      ACME_SVC_METRICS__ENABLED: "true",
      ACME_SVC_METRICS__BIND_ADDRESS: `127.0.0.1:${port}`
    }
    const { code, records, stderr } = await commandLine(["serve"], { config: null, env })
    squatter.close()
    assert.strictEqual(code, 1, stderr)
    assert.match(
      stderr,
      /^metrics\.bind_address: Cannot listen on 127\..*: something listens there already.*\(EADDRINUSE\)\.$/m
    )
    const said = (event: string) => records.find(({ fields }) => fields["event"] === event)?.fields
    assert.strictEqual(said("metrics_socket_bind_failed")?.["address"], `127.0.0.1:${port}`)
    assert.match(String(said("server_config_file_absent")?.["path"]), /none\.toml$/)
  })
})
