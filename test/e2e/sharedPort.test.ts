import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { DnsAnswerer } from "../support/DnsAnswerer.ts"
import { startDnsAnswerer } from "../support/DnsAnswerer.ts"
import { makeHttpClient } from "../support/Http.ts"
import type { Http01Responder } from "../support/Http01Responder.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { verifyChain } from "../support/Openssl.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"

const sharing = { ACME_SVC_SERVER__REUSE_PORT: "true" }

/** Sends one request over a separate connection, and tries again while no process accepts the connection. */
const ask = async (url: string): Promise<number> => {
  for (let attempt = 1;; attempt++) {
    const http = makeHttpClient()
    try {
      return (await http.send(url)).status
    } catch (error) {
      if (attempt === 20) throw error
    } finally {
      http.close()
    }
  }
}

describe.each(databases)("acme processes that share a port, on $name", ({ freshUrl }) => {
  const directories: Array<string> = []
  const directory = (): string => {
    const made = mkdtempSync(join(tmpdir(), "acme-shared-"))
    directories.push(made)
    return made
  }
  let dns: DnsAnswerer
  let responder: Http01Responder
  let worker: Server
  let first: Server
  let second: Server
  let databaseUrl: string
  let env: Readonly<Record<string, string>>

  /** Makes a directory with only the certificate of the CA. */
  const withAnchor = (): string => {
    const here = directory()
    copyFileSync(worker.caFile, join(here, "ca.pem"))
    return here
  }

  const startAcme = (port?: number) =>
    startServer({
      databaseUrl,
      directory: withAnchor(),
      env: { ...env, ...sharing },
      flags: ["--role", "acme"],
      ...port === undefined ? {} : { port }
    })

  const completed = (server: Server): number =>
    server.records().filter(({ fields }) => fields["event"] === "request_completed").length

  beforeAll(async () => {
    await builtServer()
    databaseUrl = await freshUrl()
    dns = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] } })
    responder = await startHttp01Responder()
    env = { ACME_SVC_DNS__RESOLVER: dns.address, ACME_SVC_CHALLENGE__HTTP_01__PORT: `${responder.port}` }
    worker = await startServer({
      databaseUrl,
      directory: directory(),
      env,
      flags: ["--role", "worker"],
      startedBy: "job_runner_started"
    })
    first = await startAcme()
    second = await startAcme(first.port)
  })

  afterAll(async () => {
    for (const server of [first, second, worker]) await server?.dispose()
    await responder?.stop()
    await dns?.stop()
    for (const made of directories) rmSync(made, { recursive: true, force: true })
  })

  it("share the connections of clients", async () => {
    for (let number = 0; number < 40; number++) assert.strictEqual(await ask(first.directoryUrl), 200)
    assert.isAbove(completed(first), 0)
    assert.isAbove(completed(second), 0)
    for (const name of ["one.example", "two.example", "three.example"]) {
      const session = await AcmeSession.open(first.directoryUrl)
      await session.register()
      const { chain } = await session.issue([name], responder.tokens)
      await verifyChain(chain, worker.caFile, name)
    }
  })

  it("prevent the startup of a process that does not share its port", async () => {
    const alone = await commandLine(["serve"], {
      directory: withAnchor(),
      env: {
        ...env,
        ACME_SVC_DATABASE__URL: databaseUrl,
        ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${first.port}`
      },
      flags: ["--role", "acme"]
    })
    assert.strictEqual(alone.code, 1)
    assert.include(alone.stderr, "EADDRINUSE")
  })

  it("still share the port after each of them has reloaded its configuration", async () => {
    first.signal("SIGHUP")
    const { fields } = await first.waitForEvent("server_config_reloaded")
    assert.strictEqual(fields["listeners_rebound"], 0)
    const before = completed(first)
    for (let number = 0; number < 40; number++) assert.strictEqual(await ask(first.directoryUrl), 200)
    assert.isAbove(completed(first), before)
  })

  it("still serve clients when one process is killed or drained", async () => {
    await first.kill9()
    for (let number = 0; number < 20; number++) assert.strictEqual(await ask(first.directoryUrl), 200)
    await first.restart()
    const stopped = second.stop()
    for (let number = 0; number < 20; number++) assert.strictEqual(await ask(first.directoryUrl), 200)
    assert.deepStrictEqual(await stopped, { code: 0, signal: null })
    const session = await AcmeSession.open(first.directoryUrl)
    await session.register()
    const { chain } = await session.issue(["four.example"], responder.tokens)
    await verifyChain(chain, worker.caFile, "four.example")
  })
})
