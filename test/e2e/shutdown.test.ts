import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { Socket } from "node:net"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases, sqlite } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { verifyChain } from "../support/Openssl.ts"
import { startServer } from "../support/Server.ts"

/** A request whose head has arrived and for whose body the server waits. */
interface Begun {
  /** Sends the body and returns everything that is received until the connection ends. */
  readonly finish: () => Promise<string>
  readonly socket: Socket
}

/** Sends the head of a POST. The interim answer shows that the server waits for the body. */
const begin = (port: number, url: string, body: string): Promise<Begun> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    let said = ""
    let begun = false
    const ended = new Promise<string>((done) => socket.once("close", () => done(said)))
    socket.once("error", reject)
    socket.on("data", (chunk: Buffer) => {
      said += chunk.toString("latin1")
      if (begun || !said.startsWith("HTTP/1.1 100 ")) return
      begun = true
      said = ""
      resolve({
        socket,
        finish: () => {
          socket.write(body)
          return ended
        }
      })
    })
    socket.write([
      `POST ${new URL(url).pathname} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      "Content-Type: application/jose+json",
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Expect: 100-continue",
      "\r\n"
    ].join("\r\n"))
  })

/** Makes a web server that answers only once the test allows it. */
const held = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, before: () => opened }
}

/** Makes an order whose validation has reached the web server, which delays the answer. */
const validating = async (ground: Ground, session: AcmeSession, name: string) => {
  const order = await session.newOrder([name])
  const [url = ""] = order.body.authorizations
  const { challenges: [challenge] } = await session.authorization(url)
  assert.isDefined(challenge)
  const { token = "", url: challengeUrl = "" } = challenge ?? {}
  ground.responder.tokens.set(token, session.keyAuthorization(token))
  await session.trigger(challengeUrl)
  await session.poll(
    () => Promise.resolve(ground.responder.requests),
    (requests) => requests.some(({ path }) => path.endsWith(token))
  )
  return order
}

const opened = async (ground: Ground, patienceMs = 0): Promise<AcmeSession> => {
  const session = await AcmeSession.open(ground.server.directoryUrl, { patienceMs })
  await session.register()
  return session
}

describe.each(databases)("SIGTERM, $name", ({ freshUrl }) => {
  beforeAll(builtServer)

  it("ends a process in order that is still starting", async () => {
    const server = await startServer({ databaseUrl: await freshUrl(), startedBy: "job_runner_started" })
    const exit = await server.stop()
    assert.deepInclude(exit, { code: 0, signal: null }, server.stdout())
    await server.dispose()
  })

  it("ends the process with 0 after the requests in progress and a running job", async () => {
    const web = held()
    const ground = await startGround({ databaseUrl: await freshUrl() }, web)
    try {
      const { server } = ground
      const session = await opened(ground)
      const order = await validating(ground, session, "held.example")
      const begun: Array<Begun> = []
      for (let index = 0; index < 10; index++) {
        const identifiers = [{ type: "dns", value: `n${index}.example` }]
        const url = session.directory.newOrder
        begun.push(await begin(server.port, url, await session.sign(url, { identifiers })))
      }

      server.signal("SIGTERM")
      await server.waitForEvent("server_shutdown_started")
      const late = await session.get(session.directoryUrl).then(() => "answered", (error: unknown) => String(error))
      assert.match(late, /ECONNREFUSED|ECONNRESET|socket hang up/)
      server.signal("SIGHUP")
      await server.waitForEvent("server_reload_supervisor_gone")
      web.open()
      const answers = await Promise.all(begun.map(({ finish }) => finish()))
      for (const answer of answers) {
        assert.match(answer, /^HTTP\/1\.1 201 /)
        assert.match(answer, /^connection: close\r$/im)
        assert.match(answer, /^replay-nonce: \S+\r$/im)
      }
      assert.deepStrictEqual(await server.exited(), { code: 0, signal: null })
      const completed = await server.waitForEvent("server_shutdown_completed")
      assert.deepInclude(completed.fields, { requests_cut: 0, jobs_released: 0 })

      await server.restart()
      assert.strictEqual((await session.awaitOrder(order.url, ["ready", "invalid"])).status, "ready")
      assert.strictEqual(ground.responder.requests.length, 1, "validated once, before the end")
      for (const answer of answers) {
        const location = /^location: (\S+)\r$/im.exec(answer)?.[1] ?? ""
        assert.strictEqual((await session.order(location)).status, "pending")
      }
      session.close()
    } finally {
      web.open()
      await ground.dispose()
    }
  })

  it("gives a job that does not finish to the next process at once", async () => {
    const web = held()
    const ground = await startGround(
      // This is longer than the five seconds that a job gets.
      { databaseUrl: await freshUrl(), env: { ACME_SVC_CHALLENGE__TIMEOUT_MS: "30000" } },
      web
    )
    try {
      const { server } = ground
      const session = await opened(ground)
      const order = await validating(ground, session, "stuck.example")
      assert.deepStrictEqual(await server.stop(), { code: 0, signal: null })
      assert.deepInclude((await server.waitForEvent("server_shutdown_completed")).fields, { jobs_released: 1 })
      web.open()
      await server.restart()
      // The order continues at once, because the new process need not wait until a lease has expired.
      assert.strictEqual((await session.awaitOrder(order.url, ["ready", "invalid"], 10_000)).status, "ready")
      session.close()
    } finally {
      web.open()
      await ground.dispose()
    }
  })

  it("loses nothing for clients that try again, even under load", async () => {
    const ground = await startGround({ databaseUrl: await freshUrl() })
    const first = await opened(ground, 60_000)
    try {
      const { server } = ground
      const chains = new Map<string, string>()
      const load = { stopping: false }
      const issue = async (session: AcmeSession, name: string): Promise<void> => {
        const placed = await session.newOrder([name])
        await session.authorize(placed.body, ground.responder.tokens, 60_000)
        // If the answer to finalize is lost, finalize is sent again. Then the state of the order counts.
        await session.finalize(placed.body, makeCsr({ names: [name] }).csr)
        const order = await session.awaitOrder(placed.url, ["valid", "invalid"], 60_000)
        assert.strictEqual(order.status, "valid", JSON.stringify(order))
        chains.set(name, await session.download(order.certificate ?? ""))
      }
      const work = async (client: number): Promise<void> => {
        const session = await first.another()
        await session.register()
        // Each client issues at least once, however long its registration took.
        for (let round = 0; round === 0 || !load.stopping; round++) await issue(session, `r${round}.c${client}.example`)
      }
      const working = Promise.all(Array.from({ length: 20 }, (_, client) => work(client)))
      const restarts = async () => {
        for (let round = 0; round < (isFull ? 3 : 1); round++) {
          await server.waitForEvent("order_finalized")
          assert.deepStrictEqual(await server.stop(), { code: 0, signal: null })
          assert.deepInclude((await server.waitForEvent("server_shutdown_completed")).fields, { requests_cut: 0 })
          await server.restart()
        }
        load.stopping = true
      }
      await Promise.all([restarts(), working])
      assert.isAtLeast(chains.size, 20)
      for (const [name, chain] of chains) await verifyChain(chain, server.caFile, name)
      assert.deepStrictEqual(server.records().filter(({ level }) => level === "error"), [])
    } finally {
      first.close()
      await ground.dispose()
    }
  })
})

describe("an exception that no code catches", () => {
  beforeAll(builtServer)

  it("ends the process only after work in progress was completed or handed back", async () => {
    const folder = mkdtempSync(join(tmpdir(), "acme-thrown-"))
    const thrower = join(folder, "thrower.cjs")
    writeFileSync(thrower, `process.on("SIGUSR2", () => setImmediate(() => { throw new Error("planted") }))`)
    const web = held()
    const ground = await startGround(
      { databaseUrl: await sqlite.freshUrl(), env: { NODE_OPTIONS: `--require ${thrower}` } },
      web
    )
    try {
      const { server } = ground
      const session = await opened(ground)
      const order = await validating(ground, session, "thrown.example")
      server.signal("SIGUSR2")
      await server.waitForEvent("server_shutdown_started", {
        where: ({ fields }) => fields["signal"] === "uncaughtException"
      })
      web.open()
      await server.waitForEvent("server_shutdown_completed")
      assert.deepInclude((await server.waitForEvent("server_fatal_error")).fields, { error: "planted" })
      assert.deepStrictEqual(await server.stop(), { code: 1, signal: null })
      await server.restart()
      assert.strictEqual((await session.awaitOrder(order.url, ["ready", "invalid"])).status, "ready")
      assert.strictEqual(ground.responder.requests.length, 1, "validated once, before the end")
      session.close()
    } finally {
      web.open()
      await ground.dispose()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe("a second signal", () => {
  beforeAll(builtServer)

  it.each([["SIGTERM", 143], ["SIGINT", 130]] as const)(
    "ends the process at once after %s, with %i",
    async (signal, code) => {
      const ground = await startGround()
      try {
        const { server } = ground
        const session = await opened(ground)
        const url = session.directory.newOrder
        const { socket } = await begin(server.port, url, await session.sign(url, {}))
        server.signal(signal)
        await server.waitForEvent("server_shutdown_started")
        server.signal(signal)
        assert.deepStrictEqual(await server.exited(), { code, signal: null })
        socket.destroy()
        session.close()
      } finally {
        await ground.dispose()
      }
    }
  )
})
