import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { makeHttpClient } from "../support/Http.ts"
import { verifyChain } from "../support/Openssl.ts"
import type { Raw } from "../support/RawClient.ts"
import { drip, open } from "../support/RawClient.ts"

/*
 * Tests slow heads, slow bodies, 5000 idle connections and similar attacks (docs/contribute/attacks.md, "HTTP
 * surface").
 */

/**
 * Whether the connections use TLS. Most of the time, this test waits for time limits, which are the same over TLS, so
 * only the full run uses TLS.
 */
const ways = isFull ? [{ tls: false }, { tls: true }] : [{ tls: false }]

describe.each(ways)("connections, TLS $tls", ({ tls }) => {
  let ground: Ground
  let session: AcmeSession

  const issues = async (name: string): Promise<void> => {
    const { chain } = await session.issue([name], ground.responder.tokens)
    await verifyChain(chain, ground.server.caFile, name)
  }

  beforeAll(async () => {
    await builtServer()
    // With this limit, 4 bodies for each request in progress are read at a time, fewer than the slow ones below.
    ground = await startGround({ tls, env: { ACME_SVC_SERVER__MAX_CONCURRENT_REQUESTS: "10" } })
    session = await AcmeSession.open(ground.server.directoryUrl)
    await session.register()
  })

  afterAll(async () => {
    session?.close()
    await ground?.dispose()
  })

  it("are closed if they send nothing, while others are served", async () => {
    const silent = Array.from({ length: 100 }, () => open(ground.server.port))
    await issues("beside-silence.example")
    await Promise.all(silent.map(({ ended }) => ended))
  })

  // Octets that are sent before TLS do not reach HTTP, so these tests are only for plain connections.
  const plainIt = tls ? () => undefined : it

  plainIt("closes connections that send the head or the body too slowly, while others are served", async () => {
    const { port } = ground.server
    const path = new URL(session.directory.newOrder).pathname
    const post = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/jose+json\r\n`
    const heads = Array.from({ length: 50 }, () => drip(open(port, `${post}X-Slow: `)))
    const bodies = Array.from({ length: 30 }, () => drip(open(port, `${post}Content-Length: 1000\r\n\r\n{`)))
    const chunked = Array.from({ length: 5 }, () => open(port, `${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`))
    await issues("beside-slowness.example")
    const answers = await Promise.all([...bodies, ...chunked].map(({ ended }) => ended))
    for (const answer of answers) {
      assert.match(answer, /^HTTP\/1\.1 408 /)
      assert.match(answer, /^connection: close\r$/im)
      assert.match(answer, /^replay-nonce: \S+\r$/im)
      assert.match(answer, /"urn:ietf:params:acme:error:malformed"/)
    }
    for (const answer of await Promise.all(heads.map(({ ended }) => ended))) {
      assert.match(answer, /^(?:HTTP\/1\.1 408 |$)/)
    }
  })

  it("do not block connected clients if 5000 of them are idle", async () => {
    const idle: Array<Raw> = []
    const flood = async () => {
      // Connections that overflow the kernel's queue would never be closed. So they come in waves, and each wave is
      // accepted before the next begins.
      for (let wave = 0; wave < 50; wave++) {
        const more = Array.from({ length: 100 }, () => open(ground.server.port))
        await Promise.all(more.map(({ socket }) => new Promise((done) => socket.once("connect", done))))
        idle.push(...more)
      }
    }
    await Promise.all([flood(), issues("beside-idleness.example")])
    assert.strictEqual(idle.length, 5000)
    await ground.server.waitForEvent("server_connection_refused")
    await Promise.all(idle.map(({ ended }) => ended))
    const fresh = await AcmeSession.open(ground.server.directoryUrl)
    await fresh.register()
    fresh.close()
    await issues("after-idleness.example")
  })

  plainIt("closes connections that do not speak HTTP/1.1, and does nothing that they ask for", async () => {
    const get = `GET ${new URL(session.directoryUrl).pathname} HTTP/1.1`
    const post = `POST ${new URL(session.directory.newOrder).pathname} HTTP/1.1\r\nHost: x\r\n`
    const type = "Content-Type: application/jose+json\r\n"
    const odd: ReadonlyArray<readonly [name: string, text: string]> = [
      ["an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
      ["both length headers", `${post}${type}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
      ["two different lengths", `${post}${type}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`],
      ["a bare LF", `${get}\nHost: x\n\n`],
      ["a folded header", `${get}\r\nHost: x\r\nX-Long: one\r\n two\r\n\r\n`],
      ["a space before the colon", `${get}\r\nHost: x\r\nX-Odd : 1\r\n\r\n`],
      ["no HTTP at all", "EHLO mail.example\r\n\r\n"],
      ["a TLS hello", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003\r\n\r\n"],
      ["a head of 20 KB", `${get}\r\nHost: x\r\nX-Large: ${"x".repeat(20_000)}\r\n\r\n`],
      ["101 header fields", `${get}\r\nHost: x\r\n${"X-Many: 1\r\n".repeat(100)}\r\n`]
    ]
    for (const [name, text] of odd) {
      const said = await open(ground.server.port, text).ended
      assert.match(said, /^HTTP\/1\.1 4(?:00|31) /, name)
      assert.match(said, /^connection: close\r$/im, name)
    }
    await issues("after-oddities.example")
  })

  it("do not prevent an issuance by a flood of HEAD newNonce", async () => {
    const http = makeHttpClient()
    try {
      const seen = new Set<string>()
      const flood = async () => {
        for (let round = 0; round < 300; round++) {
          const answer = await http.send(session.directory.newNonce, { method: "HEAD" })
          if (answer.status === 200) seen.add(String(answer.headers["replay-nonce"]))
          else assert.strictEqual(answer.status, 429)
        }
      }
      await Promise.all([...Array.from({ length: 8 }, flood), issues("beside-a-flood.example")])
      assert.isAbove(seen.size, 300)
      for (const nonce of seen) assert.match(nonce, /^[\w-]{43}$/)
    } finally {
      http.close()
    }
  })

  it("leave the process healthy and without an error in its log", async () => {
    const health = await session.get(`${ground.server.baseUrl}/health`)
    assert.deepEqual(health.json, { healthy: true })
    const errors = ground.server.records().filter(({ level }) => level === "error")
    assert.deepStrictEqual(errors, [])
    const silent = open(ground.server.port)
    await new Promise((connected) => silent.socket.once("connect", connected))
    await session.get(session.directoryUrl)
    assert.deepStrictEqual(await ground.server.stop(), { code: 0, signal: null })
    await silent.ended
  })
})
