import { describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import type { Socket } from "node:net"
import { connect } from "node:net"
import { setImmediate as turn } from "node:timers/promises"
import { TLSSocket } from "node:tls"
import { Worker } from "node:worker_threads"
import { assert } from "vitest"
import { parseAddress } from "../../../src/engine/net/Address.ts"
import type { HttpGetRequest } from "../../../src/engine/net/HttpGet.ts"
import { HttpGet } from "../../../src/engine/net/HttpGet.ts"
import { expired, rawServer } from "../../support/RawServer.ts"

const loopback = Option.getOrThrow(parseAddress("127.0.0.1"))

const get = (port: number, request: Partial<HttpGetRequest> = {}) =>
  Effect.flatMap(HttpGet, (http) =>
    http.get({
      address: loopback,
      port,
      connectMillis: undefined,
      secure: false,
      host: "a.example",
      path: "/.well-known/acme-challenge/token",
      maxBytes: 64,
      ...request
    })).pipe(Effect.provide(HttpGet.layer("1.2.3")))

const answering = (text: string | Buffer) => rawServer((socket) => socket.end(text))
/** The tag of the failure of a GET whose answer is this text. */
const failureOf = (text: string) =>
  Effect.gen(function*() {
    const server = yield* answering(text)
    return (yield* Effect.flip(get(server.port)))._tag
  })
const ok = (body: string, headers = "") => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`

describe("the request", () => {
  it.live("is one plain GET", () =>
    Effect.gen(function*() {
      const server = yield* answering(ok("hello", "Set-Cookie: a=b\r\n"))
      const answer = yield* get(server.port)
      assert.deepStrictEqual({ ...answer, body: answer.body.toString() }, {
        status: 200,
        location: undefined,
        body: "hello",
        truncated: false
      })
      yield* get(server.port)
      const head = [
        "GET /.well-known/acme-challenge/token HTTP/1.1",
        "Host: a.example",
        "User-Agent: acme-svc/1.2.3",
        "Accept: */*",
        "Accept-Encoding: identity",
        "Connection: close",
        "",
        ""
      ].join("\r\n")
      assert.deepStrictEqual(server.received, [head, head])
    }))

  it.live("keeps the brackets of an IPv6 literal in the Host field", () =>
    Effect.gen(function*() {
      const server = yield* answering(ok(""))
      yield* get(server.port, { host: "[::1]:5002" })
      assert.include(server.received[0], "\r\nHost: [::1]:5002\r\n")
    }))

  it.live("ignores HTTP_PROXY and http_proxy in the environment", () =>
    Effect.gen(function*() {
      const proxy = yield* answering(ok("from the proxy"))
      const server = yield* answering(ok("direct"))
      const names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"]
      yield* Effect.acquireRelease(
        Effect.sync(() => names.map((name) => [name, process.env[name]] as const)),
        (before) =>
          Effect.sync(() => {
            for (const [name, value] of before) {
              if (value === undefined) delete process.env[name]
              else process.env[name] = value
            }
          })
      )
      for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`
      process.env["NODE_USE_ENV_PROXY"] = "1"
      assert.strictEqual((yield* get(server.port)).body.toString(), "direct")
      assert.deepStrictEqual(proxy.received, [])
    }))
})

describe("the answer", () => {
  it.live("has its whole body up to the limit, and is marked as truncated beyond it", () =>
    Effect.gen(function*() {
      const server = yield* answering(ok("a".repeat(64)))
      const whole = yield* get(server.port)
      assert.deepStrictEqual([whole.body.length, whole.truncated], [64, false])
      const cut = yield* get(server.port, { maxBytes: 63 })
      assert.deepStrictEqual([cut.body.length, cut.truncated], [63, true])
    }))

  it.live("is read only up to the limit if its chunks never end", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => {
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        const more = () => {
          while (socket.writable && socket.write("10\r\n0123456789abcdef\r\n"));
        }
        socket.on("drain", more)
        more()
      })
      const answer = yield* get(server.port)
      assert.deepStrictEqual([answer.body.length, answer.truncated], [64, true])
      yield* Effect.promise(() => server.closed)
    }))

  it.live("keeps a compressed body as it is", () =>
    Effect.gen(function*() {
      const server = yield* answering(Buffer.concat([
        Buffer.from("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
        Buffer.from([0x1f, 0x8b, 0x08])
      ]))
      assert.deepStrictEqual(Array.from((yield* get(server.port)).body), [0x1f, 0x8b, 0x08])
    }))

  it.live("is complete before the body arrives if it is a redirect", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) =>
        socket.write("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 10\r\n\r\n")
      )
      const answer = yield* get(server.port)
      assert.deepStrictEqual([answer.status, answer.location, answer.body.length], [302, "/next", 0])
      assert.lengthOf(server.received, 1)
    }))

  it.live("ends with the connection if it is an answer of HTTP/1.0 without a length", () =>
    Effect.gen(function*() {
      const server = yield* answering("HTTP/1.0 200 OK\r\n\r\nhello")
      assert.strictEqual((yield* get(server.port)).body.toString(), "hello")
    }))

  const broken: Record<string, string> = {
    "1 MB of headers": `HTTP/1.1 200 OK\r\n${"X-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(22_000)}\r\n`,
    "1xx flood": `${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000)}${ok("hello")}`,
    "both length headers":
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "two different lengths": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "HTTP/0.9": "hello",
    "101 Switching Protocols": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello",
    "a body shorter than its length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
    "a head cut short": "HTTP/1.1 200 OK\r\nContent-",
    "nothing": "",
    "a preface of HTTP/2": "\0\0\u0012\u0004\0\0\0\0\0"
  }
  for (const [row, text] of Object.entries(broken)) {
    it.live(`is a failure if it has ${row}`, () =>
      Effect.map(failureOf(text), (tag) => assert.strictEqual(tag, "ExchangeFailed")))
  }

  it.live("is a failure if it ends with a reset", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.resetAndDestroy())
      assert.strictEqual((yield* Effect.flip(get(server.port)))._tag, "ExchangeFailed")
    }))

  it.live("may follow a few interim answers", () =>
    Effect.gen(function*() {
      const server = yield* answering(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${ok("hello")}`)
      assert.strictEqual((yield* get(server.port)).body.toString(), "hello")
    }))
})

describe("the connection", () => {
  it.live("fails with ConnectFailed at a closed port", () =>
    Effect.gen(function*() {
      const { port } = yield* Effect.scoped(answering(""))
      assert.strictEqual((yield* Effect.flip(get(port)))._tag, "ConnectFailed")
    }))

  it.live("fails after connectMillis if the host accepts no connection", () =>
    Effect.gen(function*() {
      const port = yield* deafPort
      const before = sockets()
      const failure = yield* Effect.flip(get(port, { connectMillis: 20 }))
      assert.deepStrictEqual([failure._tag, failure.detail], ["ConnectFailed", "no connection within 20 ms"])
      // Closed handles disappear after the close phase of the next turn of the event loop.
      yield* Effect.promise(() => turn().then(() => turn()))
      assert.isAtMost(sockets(), before)
    }))

  it.live("is destroyed by an interruption even if it receives an octet each second", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\na"))
      const fiber = yield* Effect.forkChild(get(server.port))
      yield* Effect.promise(() => server.asked)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => server.closed)
    }))
})

describe("a GET over TLS", () => {
  it.live("accepts an expired certificate for another name", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.end(ok("hello")), { tls: expired })
      const bodyFor = (host: string) =>
        Effect.map(get(server.port, { secure: true, host }), ({ body }) => body.toString())
      for (const host of ["a.example", "b.example.:5001", "127.0.0.1", "[::1]:5001"]) {
        assert.strictEqual(yield* bodyFor(host), "hello")
      }
      assert.deepStrictEqual(server.serverNames, ["a.example", "b.example", false, false])
    }))

  it.live("fails at a second handshake on the same connection", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => {
        if (!(socket instanceof TLSSocket)) return
        socket.renegotiate({}, (error) => void (error === null && socket.end(ok("hello"))))
      }, { tls: { ...expired, maxVersion: "TLSv1.2" } })
      assert.match((yield* Effect.flip(get(server.port, { secure: true }))).detail, /SSL/)
    }))

  it.live("fails with a server that only speaks TLS 1.0", () =>
    Effect.gen(function*() {
      const old = { minVersion: "TLSv1", maxVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" } as const
      const server = yield* rawServer(() => {}, { tls: { ...expired, ...old } })
      assert.strictEqual((yield* Effect.flip(get(server.port, { secure: true })))._tag, "TlsFailed")
    }))

  it.live("fails with a server that does not speak TLS", () =>
    Effect.gen(function*() {
      const server = yield* rawServer(() => {}, { greeting: ok("hello") })
      assert.strictEqual((yield* Effect.flip(get(server.port, { secure: true })))._tag, "TlsFailed")
    }))
})

/** The number of sockets that this process has, connected or not. */
const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length

/** A port whose backlog is full and whose owner never accepts, so that another SYN gets no reply. */
const deafPort = Effect.gen(function*() {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() =>
      new Worker(
        `const { parentPort, workerData } = require("node:worker_threads")
         const server = require("node:net").createServer()
         server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => {
           parentPort.postMessage(server.address().port)
           setImmediate(() => Atomics.wait(workerData, 0, 0))
         })`,
        { eval: true, workerData: gate }
      )
    ),
    (worker) =>
      Effect.promise(() => {
        Atomics.store(gate, 0, 1)
        Atomics.notify(gate, 0)
        return worker.terminate()
      })
  )
  const port = yield* Effect.callback<number>((resume) => {
    worker.once("message", (port: number) => resume(Effect.succeed(port)))
  })
  const fillers = yield* Effect.acquireRelease(
    Effect.sync(() => Array.from({ length: 4 }, () => connect(port, "127.0.0.1").on("error", () => {}))),
    (sockets) => Effect.sync(() => sockets.forEach((socket) => socket.destroy()))
  )
  const connected = (socket: Socket | undefined) =>
    Effect.callback<void>((resume) => {
      socket?.once("connect", () => resume(Effect.void))
    })
  yield* Effect.all([connected(fillers[0]), connected(fillers[1])])
  return port
})
