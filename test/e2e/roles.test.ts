import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { DnsAnswerer } from "../support/DnsAnswerer.ts"
import { startDnsAnswerer } from "../support/DnsAnswerer.ts"
import type { Http01Responder } from "../support/Http01Responder.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { leafOf, verifyChain } from "../support/Openssl.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"

const eventsOf = (server: Server): ReadonlyArray<unknown> => server.records().map(({ fields }) => fields["event"])

const refusesConnections = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("error", () => resolve(true))
    socket.once("connect", () => {
      socket.destroy()
      resolve(false)
    })
  })

describe.each(databases)("an acme and a worker process on $name", ({ dialect, freshUrl }) => {
  const directories: Array<string> = []
  const directory = (): string => {
    const made = mkdtempSync(join(tmpdir(), "acme-roles-"))
    directories.push(made)
    return made
  }
  let dns: DnsAnswerer
  let responder: Http01Responder
  let worker: Server
  let acme: Server
  let databaseUrl: string

  beforeAll(async () => {
    await builtServer()
    databaseUrl = await freshUrl()
    dns = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] } })
    responder = await startHttp01Responder()
    const env = { ACME_SVC_DNS__RESOLVER: dns.address, ACME_SVC_CHALLENGE__HTTP_01__PORT: `${responder.port}` }
    worker = await startServer({
      databaseUrl,
      directory: directory(),
      env,
      flags: ["--role", "worker"],
      startedBy: "job_runner_started"
    })
    const here = directory()
    // Only the certificate of the CA, and no key.
    copyFileSync(worker.caFile, join(here, "ca.pem"))
    acme = await startServer({ databaseUrl, directory: here, env, flags: ["--role", "acme"] })
  })

  afterAll(async () => {
    await acme?.dispose()
    await worker?.dispose()
    await responder?.stop()
    await dns?.stop()
    for (const made of directories) rmSync(made, { recursive: true, force: true })
  })

  it("issue and revoke together, although only the worker has the key", async () => {
    const session = await AcmeSession.open(acme.directoryUrl)
    await session.register()
    const { chain } = await session.issue(["roles.example"], responder.tokens)
    await verifyChain(chain, worker.caFile, "roles.example")
    assert.isFalse(existsSync(join(acme.directory, "ca.key")))
    const certificate = leafOf(chain).raw.toString("base64url")
    assert.strictEqual((await session.post(session.directory.revokeCert ?? "", { certificate })).status, 200)
    await worker.waitForEvent("local_ca_crl_republished", { where: ({ fields }) => fields["entries"] === 1 })
    assert.notInclude(eventsOf(acme), "order_finalized")
    assert.notInclude(eventsOf(worker), "request_completed")
  })

  it("log their roles", () => {
    assert.include(eventsOf(acme), "server_role_no_worker")
    assert.notInclude(eventsOf(acme), "job_runner_started")
    assert.notInclude(eventsOf(worker), "server_role_no_worker")
    assert.notInclude(eventsOf(worker), "profile_mounted")
    const rolesOf = (server: Server) =>
      server.records().find(({ fields }) => fields["event"] === "worker_registered")?.fields["roles"]
    assert.deepStrictEqual([rolesOf(acme), rolesOf(worker)], ["acme", "worker"])
  })

  it("work although the worker opens no socket", async () => {
    assert.isTrue(await refusesConnections(worker.port))
    const env = { ACME_SVC_DATABASE__URL: databaseUrl }
    assert.strictEqual(
      (await commandLine(["health", "--role", "worker"], { directory: worker.directory, env })).code,
      0
    )
  })

  it("stop one by one without an error", async () => {
    assert.deepStrictEqual(await acme.stop(), { code: 0, signal: null })
    assert.deepStrictEqual(await worker.stop(), { code: 0, signal: null })
  })

  it("depend on the worker, because the acme process creates neither the schema nor the CA", async () => {
    const empty = directory()
    const options = { directory: empty, env: { ACME_SVC_DATABASE__URL: await freshUrl() }, flags: ["--role", "acme"] }
    const behind = await commandLine(["serve"], options)
    assert.strictEqual(behind.code, 1)
    assert.include(behind.records.map(({ fields }) => fields["event"]), "server_schema_behind")
    assert.strictEqual((await commandLine(["migrate"], { ...options, flags: [] })).code, 0)
    const without = await commandLine(["serve"], options)
    assert.strictEqual(without.code, 3)
    assert.include(without.stderr, "ca.pem cannot be used")
    assert.deepStrictEqual([existsSync(join(empty, "ca.pem")), existsSync(join(empty, "ca.key"))], [false, false])
    if (dialect === "sqlite") assert.isFalse(existsSync(join(empty, "sqlite.db")), "the database was named elsewhere")
  })
})

describe("serve --role", () => {
  beforeAll(builtServer)

  it("prevents the startup before the configuration is read if the role is unknown", async () => {
    const { code, stderr } = await commandLine(["serve", "--role", "acme,janitor"], { config: "nonsense" })
    assert.strictEqual(code, 2)
    assert.include(stderr, `--role takes acme, admin, worker, and not "janitor"`)
  })

  it("refuses an empty value", async () => {
    for (const flags of [["--role", ""], ["--role="]]) {
      const { code, stderr, stdout } = await commandLine(["serve", ...flags], { config: "nonsense" })
      assert.strictEqual(code, 2, flags.join(" "))
      assert.deepStrictEqual([stdout, stderr], ["", "--role needs a value: acme,admin,worker.\n"])
    }
  })

  it("accepts several roles, as repeated flags or in a list", async () => {
    for (const flags of [["--role", "worker,acme"], ["--role", "worker", "--role", "acme", "--role", "acme"]]) {
      const server = await startServer({ config: minimalConfig, flags })
      const { fields } = await server.waitForEvent("worker_registered")
      assert.strictEqual(fields["roles"], "acme,worker")
      await server.dispose()
    }
  })
})
