import { Deferred, Effect, Exit, Fiber, Layer, Queue, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { createHook } from "node:async_hooks"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { Socket } from "node:net"
import { connect } from "node:net"
import { connect as connectTls } from "node:tls"
import { assert, describe } from "vitest"
import { serialFrom } from "../../../src/crypto/x509/Leaf.ts"
import { generateTlsPair } from "../../../src/crypto/x509/TlsPair.ts"
import { problemOf } from "../../../src/domain/Problem.ts"
import type { Serving, SocketOptions, Watch } from "../../../src/engine/http/Listener.ts"
import { bind } from "../../../src/engine/http/Listener.ts"
import type { Answer, App, Request, Routed } from "../../../src/engine/http/Message.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { EventLog } from "../../../src/engine/telemetry/EventLog.ts"
import { eventsOf } from "../../support/Graph.ts"
import { talk } from "../../support/Talk.ts"
import { onSystemClock, useTests } from "../../support/UseTests.ts"

/*
 * Tests the listener on real loopback sockets, with a separate app for each test. The tests control the clock, so ten
 * seconds pass only when a test says so.
 */

const options: SocketOptions = { name: "acme", host: "127.0.0.1", port: 0, sharing: "nobody", maxConnections: 10 }

type Settings = Omit<Serving<never>, "app">

const settings: Settings = {
  tls: undefined,
  watch: undefined,
  own: new Map(),
  isProxy: () => false,
  forwardedHeaders: ["x-forwarded-for"],
  requestTimeoutMillis: 60_000,
  maxBodyBytes: 1000,
  maxBodies: 10
}

const sweep = "250 millis"

type Handle = Routed<never>["handle"]

/** An app that handles all requests in the same way. `more` contains the other members of the routed request. */
const appOf = (
  handle: Handle,
  more: (received: Request) => Partial<Routed<never>> = () => ({})
): App<never> & { readonly handle: Handle } => ({
  handle,
  route: (received) => ({
    handle,
    late: () => Effect.succeed({ status: 503, headers: { "retry-after": "5" }, body: "late" }),
    facts: {},
    pattern: received.path,
    clientIp: received.clientIp,
    ...more(received)
  })
})
const says = (body: string) => appOf(() => Effect.succeed({ status: 200, headers: {}, body }))

/** Reads the body and answers with the result. */
const reads = appOf(({ body }) =>
  Effect.match(body, {
    onFailure: (error): Answer => ({ status: problemOf(error).status, headers: {}, body: error._tag }),
    onSuccess: (bytes): Answer => ({ status: 200, headers: {}, body: `${bytes.length}` })
  })
)

/** An app that reports when a request has begun and how it ended. */
const held = Effect.gen(function*() {
  const begun = yield* Deferred.make<void>()
  const answer = yield* Deferred.make<Answer>()
  const ended = yield* Deferred.make<"answered" | "interrupted">()
  const handle = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(answer)).pipe(
    Effect.onExit((exit) => Deferred.succeed(ended, Exit.isSuccess(exit) ? "answered" : "interrupted"))
  )
  return { app: appOf(() => handle), begun: Deferred.await(begun), answer, ended: Deferred.await(ended) }
})

const get = (path: string, headers = ""): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
const post = (headers: string, body = ""): string => `POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`
const once = "Connection: close\r\n"

/** The status and the headers of the last answer received, by lower-case header name. */
const headOf = (said: string): { readonly status: number; readonly headers: ReadonlyMap<string, string> } => {
  const [line = "", ...fields] = said.slice(said.lastIndexOf("HTTP/1.1 ")).split("\r\n\r\n")[0]?.split("\r\n") ?? []
  const headers = fields.map((field) =>
    [field.split(":")[0]?.toLowerCase() ?? "", field.replace(/^[^:]*: ?/, "")] as const
  )
  return { status: Number(line.split(" ")[1]), headers: new Map(headers) }
}

/** Collects log records, with those of spans only if a test wants them, and lets a test wait for a record. */
const makeRecords = () => {
  const wanted = { spans: false }
  const records: Array<Record> = []
  const waiting = new Set<() => void>()
  const layer = Layer.succeed(EventLog, {
    enabled: (event) => wanted.spans || !event.startsWith("span_"),
    write: (record) => {
      records.push(record)
      waiting.forEach((look) => look())
    }
  })
  /** Returns the records of an event as soon as there are `count` of them. */
  const of = (event: Record["event"], count = 1): Effect.Effect<ReadonlyArray<Record>> =>
    Effect.callback((resume) => {
      const look = () => {
        const found = records.filter((record) => record.event === event)
        if (found.length < count) return
        waiting.delete(look)
        resume(Effect.succeed(found))
      }
      waiting.add(look)
      look()
    })
  return { records, layer, of, wanted }
}

const log = makeRecords()

const { test } = useTests({
  layer: () => log.layer,
  first: () =>
    Effect.sync(() => {
      log.records.length = 0
      log.wanted.spans = false
    })
})

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(":") + 1))

/** A listener that serves an app. */
const serving = (
  app: App<never>,
  { maxConnections = 10, name = "acme", sharing = "nobody", ...more }: Partial<Settings & SocketOptions> = {}
) =>
  Effect.gen(function*() {
    const listener = yield* bind({ ...options, name, maxConnections, sharing })
    yield* listener.serve({ app, ...settings, ...more })
    return { ...listener, port: portOf(listener.address) }
  })

/** Returns everything that a peer receives until the server closes the connection. The peer never closes its side. */
const heardUntilCutOff = (port: number, request: string) =>
  Effect.callback<string>((resume) => {
    // The function waits for the end of the connection at the server, because a peer that has sent nothing does not
    // notice that it was cut off.
    const accepted = (message: unknown) =>
      (message as { readonly socket: Socket }).socket.once("close", () => {
        unsubscribe("net.server.socket", accepted)
        client.destroy()
        resume(Effect.succeed(said))
      })
    subscribe("net.server.socket", accepted)
    const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    let said = ""
    client.on("data", (chunk: Buffer) => said += chunk.toString("latin1")).on("error", () => {})
    client.write(request)
  })

/** Sends one request on a separate connection, and returns everything that is received. */
const exchange = (port: number, request: string) =>
  Effect.gen(function*() {
    const client = yield* talk(port)
    yield* client.send(request)
    return yield* client.ended
  })

const tlsPair = Effect.map(
  generateTlsPair({ host: "localhost", now: 1_700_000_000, serial: serialFrom(new Uint8Array(16)) }),
  (pair) => ({ cert: pair.certificatePem, key: pair.privateKeyPem, handshakeTimeoutMillis: 10_000 })
)

const isHardened = (said: string) => {
  const { headers } = headOf(said)
  assert.isFalse(headers.has("strict-transport-security"), said)
  assert.strictEqual(headers.get("x-content-type-options"), "nosniff", said)
  assert.strictEqual(headers.get("x-frame-options"), "DENY", said)
  assert.isTrue(headers.has("x-request-id"), said)
  assert.isFalse(headers.has("server"), said)
}

describe("the access record", () => {
  test("is written once for each request, with the facts of its span", () =>
    Effect.gen(function*() {
      const app = appOf(() => Effect.succeed({ status: 404, headers: {} }), () => ({ facts: { profile: "default" } }))
      const { port } = yield* serving(app)
      const client = yield* talk(port)
      yield* client.send(get("/a?b=c", "X-Request-Id: one\r\n"))
      yield* client.heard(/HTTP\/1\.1 404 /)
      yield* client.send(get(`/${"x".repeat(600)}`, `X-Request-Id: two\r\n${once}`))
      yield* client.ended
      const [first, second] = yield* log.of("request_completed", 2)
      assert.deepStrictEqual(first, {
        at: 0,
        event: "request_completed",
        level: "info",
        outcome: "success",
        fields: { status: 404, latency_ms: 0 },
        span: {
          request_id: "one",
          client_ip: "127.0.0.1",
          method: "GET",
          uri: "/a?b=***",
          version: "HTTP/1.1",
          profile: "default"
        }
      })
      assert.deepInclude(second?.span, { request_id: "two", uri: `/${"x".repeat(511)}` })
      assert.deepStrictEqual(eventsOf(log.records), ["request_completed", "request_completed"])
    }))

  test("comes with one count of the answer, even if the request cannot be read", () =>
    Effect.gen(function*() {
      const counted: Array<Parameters<Watch["answered"]>[1]> = []
      const app = appOf(() => Effect.succeed({ status: 404, headers: {} }), () => ({ facts: { room: "hall" } }))
      const { port } = yield* serving(app, {
        watch: { begun: () => {}, answered: (_, answered) => void counted.push(answered) }
      })
      const client = yield* talk(port)
      yield* client.send(get("/a"))
      yield* client.heard(/HTTP\/1\.1 404 /)
      yield* client.send("nonsense\r\n\r\n")
      yield* client.ended
      yield* log.of("request_completed", 2)
      assert.deepStrictEqual(counted, [
        { facts: { room: "hall" }, pattern: "/a", status: 404 },
        { facts: {}, pattern: "<unmatched>", status: 400 }
      ])
    }))

  test("contains only the names of query parameters", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(says("x"))
      const cases = [
        [
          "/ui/login?username=jane&password=hunter2&&next=%2Fui%3Fhunter2",
          "/ui/login?username=***&password=***&***&next=***"
        ],
        ["/a?hunter2", "/a?***"],
        ["/a?=hunter2?b=hunter2&c", "/a?=***&***"],
        ["/a?", "/a?***"],
        [`/a?b=${"hunter2".repeat(100)}`, "/a?b=***"],
        [`/a?${"hunter2".repeat(100)}=`, "/a?***"],
        [`/${"x".repeat(600)}?b=c`, `/${"x".repeat(511)}`]
      ] as const
      for (const [index, [target, logged]] of cases.entries()) {
        yield* exchange(port, get(target, once))
        assert.strictEqual((yield* log.of("request_completed", index + 1)).at(-1)?.span["uri"], logged, target)
      }
      assert.notInclude(JSON.stringify(log.records), "hunter2")
    }))

  test("is written before the end of its span", () =>
    Effect.gen(function*() {
      log.wanted.spans = true
      const { port } = yield* serving(appOf(() => Effect.succeed({ status: 200, headers: {} })))
      yield* exchange(port, get("/", `X-Request-Id: one\r\n${once}`))
      yield* log.of("span_closed")
      assert.deepStrictEqual(log.records.map(({ event, span }) => [event, span["request_id"]]), [
        ["span_opened", "one"],
        ["request_completed", "one"],
        ["span_closed", "one"]
      ])
    }))

  test("names the client that the app determines and the handler gets", () =>
    Effect.gen(function*() {
      let asked = 0
      const app = appOf(
        ({ clientIp }) => Effect.succeed({ status: 200, headers: {}, body: clientIp }),
        ({ clientIp, headers }) => {
          asked++
          return { clientIp: `${String(headers["x-forwarded-for"])} by ${clientIp}` }
        }
      )
      const { port } = yield* serving(app)
      const client = yield* talk(port)
      yield* client.send(get("/", `X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: 203.0.113.8\r\n${once}`))
      assert.include(yield* client.ended, "\r\n\r\n203.0.113.7, 203.0.113.8 by 127.0.0.1")
      const [record] = yield* log.of("request_completed")
      assert.strictEqual(record?.span["client_ip"], "203.0.113.7, 203.0.113.8 by 127.0.0.1")
      assert.strictEqual(asked, 1)
    }))

  test("has a level that depends on the outcome and on whether the request is a probe", () =>
    Effect.gen(function*() {
      const status = (path: string) => path.startsWith("/5") ? 503 : 200
      const { port } = yield* serving(appOf(({ path }) => Effect.succeed({ status: status(path), headers: {} })))
      const asked = ["GET /500", "GET /health", "HEAD /health", "POST /health", "GET /healthy"]
      for (const request of [...asked, "GET /debug", "HEAD /debug/vars", "PUT /debug", "GET /debugger"]) {
        yield* exchange(port, `${request} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n${once}\r\n`)
      }
      const records = yield* log.of("request_completed", 9)
      assert.deepStrictEqual(records.map(({ level, outcome }) => `${level} ${outcome}`), [
        "warn failure",
        "debug success",
        "debug success",
        "info success",
        "info success",
        "debug success",
        "debug success",
        "info success",
        "info success"
      ])
    }))

  test("says how long the request took", () =>
    Effect.gen(function*() {
      const { answer, app, begun } = yield* held
      const { port } = yield* serving(app)
      const client = yield* talk(port)
      yield* client.send(get("/", once))
      yield* begun
      yield* TestClock.adjust("70 millis")
      yield* Deferred.succeed(answer, { status: 200, headers: {} })
      yield* client.ended
      assert.deepStrictEqual((yield* log.of("request_completed"))[0]?.fields, { status: 200, latency_ms: 70 })
    }))

  test("has status 499 if the client disconnected", () =>
    Effect.gen(function*() {
      const { app, begun, ended } = yield* held
      const { port } = yield* serving(app)
      const client = yield* talk(port)
      yield* client.send(get("/", "X-Request-Id: gone\r\n"))
      yield* begun
      yield* client.leave
      assert.strictEqual(yield* ended, "interrupted")
      const [record] = yield* log.of("request_completed")
      assert.strictEqual(record?.fields["status"], 499)
      assert.strictEqual(record?.span["request_id"], "gone")
      assert.deepStrictEqual(eventsOf(log.records), ["request_completed"])
    }))

  test("has status 499 if the client closes its half, which looks as if the client had disconnected", () =>
    Effect.gen(function*() {
      const { app, begun, ended } = yield* held
      const { port } = yield* serving(app)
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
      const client = yield* talk(port, () => socket)
      yield* client.send(get("/"))
      yield* begun
      socket.end()
      assert.strictEqual(yield* ended, "interrupted")
      assert.strictEqual((yield* log.of("request_completed"))[0]?.fields["status"], 499)
    }))

  test("is written for a download when the client disconnects", () =>
    Effect.gen(function*() {
      const ended = yield* Deferred.make<void>()
      const chunk = Buffer.alloc(1000, "x")
      const stream = Stream.ensuring(
        Stream.concat(Stream.make(chunk), Stream.never),
        Deferred.succeed(ended, undefined)
      )
      const { port } = yield* serving(appOf(() => Effect.succeed({ status: 200, headers: {}, stream })))
      const client = yield* talk(port)
      yield* client.send(get("/"))
      yield* client.heard(/xxx/)
      yield* client.leave
      yield* Deferred.await(ended)
      yield* log.of("request_completed")
    }))

  test("has status 499 if the client disconnected before its whole body had arrived", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const app = appOf((request) => Effect.andThen(Deferred.succeed(begun, undefined), reads.handle(request)))
      const { port } = yield* serving(app)
      const client = yield* talk(port)
      yield* client.send(post("Content-Length: 10\r\n", "12"))
      yield* Deferred.await(begun)
      yield* client.leave
      assert.strictEqual((yield* log.of("request_completed"))[0]?.fields["status"], 499)
    }))

  test("is written only after uninterruptible work has ended, even if the client disconnected earlier", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const seen = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<Answer>()
      const { port } = yield* serving(
        appOf(() =>
          Effect.uninterruptibleMask((restore) =>
            Deferred.succeed(begun, undefined).pipe(
              Effect.andThen(Effect.exit(restore(Effect.never))),
              Effect.andThen(Deferred.succeed(seen, undefined)),
              Effect.andThen(Deferred.await(answer))
            )
          )
        )
      )
      const client = yield* talk(port)
      yield* client.send(get("/"))
      yield* Deferred.await(begun)
      yield* client.leave
      yield* Deferred.await(seen)
      assert.isEmpty(log.records, "it goes on")
      yield* Deferred.succeed(answer, { status: 201, headers: {} })
      assert.strictEqual((yield* log.of("request_completed"))[0]?.fields["status"], 499)
    }))
})

describe("the answer", () => {
  test("is 500 if a handler panics", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(appOf(() => Effect.die(new Error("planted"))))
      const said = yield* exchange(port, get("/", `X-Request-Id: one\r\n${once}`))
      assert.strictEqual(headOf(said).status, 500)
      assert.notInclude(said, "planted")
      isHardened(said)
      const [panicked, completed] = log.records
      assert.deepInclude(panicked, { event: "request_handler_panicked", fields: { error: "Error: planted" } })
      assert.deepInclude(completed, { event: "request_completed", fields: { status: 500, latency_ms: 0 } })
      assert.deepStrictEqual([panicked?.span["request_id"], log.records.length], ["one", 2])
    }))

  test("always has the security headers in addition to the headers of the app", () =>
    Effect.gen(function*() {
      const given: Answer = { status: 201, headers: { link: ["<a>", "<b>"], location: "/x" }, body: "é" }
      const { port } = yield* serving(appOf(({ path }) => path === "/" ? Effect.succeed(given) : Effect.die("no")))
      for (const path of ["/", "/panics"]) isHardened(yield* exchange(port, get(path, once)))
      const admin = yield* serving(appOf(() => Effect.succeed(given)), { name: "admin" })
      for (const asked of [get("/", once), "nonsense\r\n\r\n"]) {
        const said = yield* exchange(admin.port, asked)
        assert.include(said, "strict-transport-security: max-age=31536000; includeSubDomains\r\n")
      }
      const said = yield* exchange(port, get("/", once))
      assert.match(said, /\r\nlink: <a>\r\nlink: <b>\r\n/)
      assert.strictEqual(headOf(said).headers.get("content-length"), "2")
      assert.strictEqual(headOf(said).headers.get("location"), "/x")
    }))

  test("has no body for the statuses 204 and 304 and for the method HEAD", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(appOf(({ method, path }) =>
        Effect.succeed(
          method === "HEAD"
            ? { status: 200, headers: {}, body: "four" }
            : { status: path === "/same" ? 304 : 204, headers: {} }
        )
      ))
      for (const path of ["/", "/same"]) {
        const nothing = yield* exchange(port, get(path, once))
        assert.isFalse(headOf(nothing).headers.has("content-length"))
        assert.match(nothing, /\r\n\r\n$/)
      }
      const head = yield* exchange(port, `HEAD / HTTP/1.1\r\nHost: x\r\n${once}\r\n`)
      assert.strictEqual(headOf(head).headers.get("content-length"), "4")
      assert.match(head, /\r\n\r\n$/)
    }))

  test("repeats the client's request id if it is usable", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(appOf(({ id }) => Effect.succeed({ status: 200, headers: {}, body: id })))
      const idOf = (line: string) =>
        Effect.map(exchange(port, get("/", `${line}${once}`)), (said) => {
          const id = headOf(said).headers.get("x-request-id") ?? ""
          assert.isTrue(said.endsWith(`\r\n\r\n${id}`), "the app is told the same")
          return id
        })
      for (const id of ["a", "Trace-7.b_c:d", "1".repeat(128)]) {
        assert.strictEqual(yield* idOf(`X-Request-Id: ${id}\r\n`), id)
      }
      assert.notInclude(eventsOf(log.records), "request_id_header_invalid")
      const ids = (yield* log.of("request_completed")).map(({ span }) => span["request_id"])
      assert.deepStrictEqual(ids, ["a", "Trace-7.b_c:d", "1".repeat(128)])
      const ours = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
      const unusable = [
        "X-Request-Id: \r\n",
        `X-Request-Id: ${"x".repeat(129)}\r\n`,
        "X-Request-Id: \xe9\r\n",
        "X-Request-Id: a\tb\r\n",
        "X-Request-Id: a b\r\n",
        "X-Request-Id: a\"b\r\n",
        "X-Request-Id: a\r\nX-Request-Id: b\r\n"
      ]
      const made = yield* Effect.forEach(["", ...unusable], idOf)
      for (const id of made) assert.match(id, ours)
      assert.strictEqual(new Set(made).size, made.length)
      const refused = eventsOf(log.records).filter((event) => event === "request_id_header_invalid")
      assert.strictEqual(refused.length, unusable.length, "one that is absent is not invalid")
    }))

  test("never contains an x-request-id with CRLF or of 10 KB", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(says("x"))
      const idOf = (said: string) => headOf(said).headers.get("x-request-id") ?? ""
      const long = yield* exchange(port, get("/", `X-Request-Id: ${"x".repeat(10_240)}\r\n${once}`))
      assert.match(idOf(long), /^[0-9a-f-]{36}$/)
      const two = yield* exchange(port, get("/", `X-Request-Id: a\r\nX-Planted: b\r\n${once}`))
      assert.strictEqual(idOf(two), "a")
      for (const odd of ["a\rX-Planted: b", "a\nX-Planted: b", "a\r\n X-Planted: b", "a\0b"]) {
        const said = yield* exchange(port, get("/", `X-Request-Id: ${odd}\r\n${once}`))
        assert.strictEqual(headOf(said).status, 400, JSON.stringify(odd))
        assert.notMatch(said, /planted/i)
      }
      for (const encoded of ["a%0d%0aX-Planted:b", "a\u00e5\u008d\u008ab"]) {
        const said = yield* exchange(port, get("/", `X-Request-Id: ${encoded}\r\n${once}`))
        assert.isFalse(headOf(said).headers.has("x-planted"))
      }
      assert.isFalse(headOf(two).headers.has("x-planted"))
    }))

  test("is made by an app that receives the target unchanged", () =>
    Effect.gen(function*() {
      const seen: Array<Request> = []
      const { port } = yield* serving(appOf((request) => {
        seen.push(request)
        return Effect.succeed({ status: 200, headers: {} })
      }))
      const target = "//a/../%2e%2E//b;c?d=%zz?e#f"
      yield* exchange(port, get(target, `User-Agent: ${"u".repeat(300)}\r\nX-Forwarded-For: 192.0.2.7\r\n${once}`))
      const [request] = seen
      assert.deepInclude(request, { method: "GET", target, path: "//a/../%2e%2E//b;c", clientIp: "127.0.0.1" })
      assert.strictEqual(request?.userAgent, "u".repeat(256))
    }))

  test("is made by an app that receives the User-Agent decoded as UTF-8", () =>
    Effect.gen(function*() {
      const seen: Array<string | undefined> = []
      const { port } = yield* serving(appOf(({ userAgent }) => {
        seen.push(userAgent)
        return Effect.succeed({ status: 200, headers: {} })
      }))
      for (const line of ["User-Agent: caf\u00c3\u00a9/1\r\n", "User-Agent: caf\u00e9/2\r\n", "User-Agent: \r\n", ""]) {
        yield* exchange(port, get("/", `${line}${once}`))
      }
      assert.deepStrictEqual(seen, ["caf\u00e9/1", "caf\u00e9/2", undefined, undefined])
    }))

  test("is the same for an absolute target as for its host, path and query", () =>
    Effect.gen(function*() {
      const seen: Array<Request> = []
      const { port } = yield* serving(appOf((request) => {
        seen.push(request)
        return Effect.succeed({ status: 200, headers: {} })
      }))
      const cases = [
        ["http://a.example/b/../c?d=e", "/b/../c?d=e", "/b/../c", "a.example"],
        ["HTTPS://A.example:8443//b", "//b", "//b", "A.example:8443"],
        ["http://[2001:db8::1]:80/b?http://c/d", "/b?http://c/d", "/b", "[2001:db8::1]:80"],
        ["http://a.example", "/", "/", "a.example"],
        ["http://a.example?b", "/?b", "/", "a.example"],
        ["/http://a.example/b", "/http://a.example/b", "/http://a.example/b", "x"]
      ] as const
      for (const [sent, target, path, host] of cases) {
        assert.strictEqual(headOf(yield* exchange(port, get(sent, once))).status, 200, sent)
        const request = seen.at(-1)
        assert.deepStrictEqual([request?.target, request?.path, request?.headers["host"]], [target, path, host], sent)
        // The log contains only the names of the query's parameters.
        assert.isTrue((yield* log.of("request_completed", seen.length)).at(-1)?.span["uri"]?.startsWith(path))
      }
    }))

  test("is made by an app that receives every line of a header that should be sent only once", () =>
    Effect.gen(function*() {
      const seen: Array<Request["headers"]> = []
      const { port } = yield* serving(appOf(({ headers }) => {
        seen.push(headers)
        return Effect.succeed({ status: 200, headers: {} })
      }))
      const names = ["authorization", "content-type", "origin", "sec-fetch-site", "x-csrf-token"]
      const lines = (value: string) => names.map((name) => `${name.toUpperCase()}: ${value}\r\n`).join("")
      const list = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-For: 192.0.2.8\r\n"
      yield* exchange(port, get("/", `${lines("one")}${lines("two")}${list}${once}`))
      yield* exchange(port, get("/", `${lines("one")}${once}`))
      const [twice, single] = seen
      for (const name of names) {
        assert.deepStrictEqual(twice?.[name], ["one", "two"], name)
        assert.strictEqual(single?.[name], "one", name)
      }
      assert.strictEqual(twice?.["x-forwarded-for"], "192.0.2.7, 192.0.2.8")
    }))

  test("is the one for a timeout when the deadline has passed", () =>
    Effect.gen(function*() {
      const { app, begun, ended } = yield* held
      const { port } = yield* serving(app, { requestTimeoutMillis: 1000 })
      const client = yield* talk(port)
      yield* client.send(get("/", once))
      yield* begun
      yield* TestClock.adjust("999 millis")
      assert.notInclude(eventsOf(log.records), "request_deadline_exceeded")
      yield* TestClock.adjust(sweep)
      assert.strictEqual(yield* ended, "interrupted")
      const said = yield* client.ended
      assert.strictEqual(headOf(said).status, 503)
      assert.match(said, /late$/)
      isHardened(said)
      assert.deepStrictEqual(eventsOf(log.records), ["request_deadline_exceeded", "request_completed"])
    }))
})

describe("the body of a request", () => {
  test("is read up to its limit, whether its length is announced or not", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(reads)
      const chunked = (size: number) =>
        post(`Transfer-Encoding: chunked\r\n${once}`, `${size.toString(16)}\r\n${"x".repeat(size)}\r\n0\r\n\r\n`)
      const announced = (size: number) => post(`Content-Length: ${size}\r\n${once}`, "x".repeat(size))
      for (const request of [announced, chunked]) {
        assert.match(yield* exchange(port, request(1000)), /^HTTP\/1\.1 200 .*\r\n\r\n1000$/s)
        const said = yield* exchange(port, request(1001))
        assert.match(said, /^HTTP\/1\.1 413 .*\r\n\r\nBodyTooLarge$/s)
        assert.strictEqual(headOf(said).headers.get("connection"), "close")
        isHardened(said)
      }
    }))

  test("is refused before it is sent if its announced length is too large, and otherwise at the limit", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(reads)
      const announced = yield* talk(port)
      yield* announced.send(post("Content-Length: 1001\r\nExpect: 100-continue\r\n"))
      assert.match(yield* announced.heard(/BodyTooLarge$/), /^HTTP\/1\.1 413 /, "and no 100 first")
      const endless = yield* talk(port)
      yield* endless.send(post("Transfer-Encoding: chunked\r\n"))
      const sending = yield* Effect.forkChild(Effect.forever(
        Effect.andThen(endless.send(`64\r\n${"x".repeat(100)}\r\n`), Effect.yieldNow)
      ))
      assert.strictEqual(headOf(yield* endless.heard(/BodyTooLarge$/)).status, 413, "heard although still sending")
      yield* Fiber.interrupt(sending)
    }))

  test("is requested with 100 Continue when the handler wants it", () =>
    Effect.gen(function*() {
      const wanted = yield* Deferred.make<void>()
      const { port } = yield* serving(
        appOf((request) => Effect.andThen(Deferred.await(wanted), reads.handle(request)))
      )
      const client = yield* talk(port)
      yield* client.send(post(`Content-Length: 2\r\nExpect: 100-continue\r\n${once}`))
      yield* Deferred.succeed(wanted, undefined)
      yield* client.heard(/^HTTP\/1\.1 100 /)
      yield* client.send("ab")
      assert.match(yield* client.ended, /HTTP\/1\.1 200 .*\r\n\r\n2$/s)
    }))

  test("causes a 408 and the end of the connection if it does not arrive in time", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const { port } = yield* serving(
        appOf((request) => Effect.andThen(Deferred.succeed(begun, undefined), reads.handle(request)))
      )
      const client = yield* talk(port)
      yield* client.send(post("Content-Length: 10\r\n", "1"))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("9 seconds")
      yield* client.send("2")
      assert.isEmpty(log.records)
      yield* TestClock.adjust("1 second")
      const said = yield* client.ended
      assert.match(said, /^HTTP\/1\.1 408 .*\r\n\r\nBodyTooSlow$/s)
      assert.strictEqual(headOf(said).headers.get("connection"), "close")
      isHardened(said)
      assert.strictEqual((yield* log.of("request_completed"))[0]?.fields["status"], 408)
    }))

  test("is refused while as many bodies as permitted are being read", () =>
    Effect.gen(function*() {
      const begun = yield* Queue.unbounded<void>()
      const { port } = yield* serving(
        appOf((request) => Effect.andThen(Queue.offer(begun, undefined), reads.handle(request))),
        { maxBodies: 1 }
      )
      const quick = Effect.tap(exchange(port, post(`Content-Length: 2\r\n${once}`, "12")), Queue.take(begun))
      const slow = yield* talk(port)
      yield* slow.send(post(`Content-Length: 2\r\n${once}`, "1"))
      yield* Queue.take(begun)
      assert.match(yield* quick, /^HTTP\/1\.1 503 .*Shed$/s)
      yield* slow.send("2")
      assert.match(yield* slow.ended, /^HTTP\/1\.1 200 /)
      assert.match(yield* quick, /^HTTP\/1\.1 200 /)
      const leaving = yield* talk(port)
      yield* leaving.send(post("Content-Length: 2\r\n", "1"))
      yield* Queue.take(begun)
      yield* leaving.leave
      yield* log.of("request_completed", 4)
      assert.match(yield* quick, /^HTTP\/1\.1 200 /)
    }))
})

describe("a peer that names many clients", () => {
  test("is reported once if it is not trusted, with the header that it uses", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(appOf(() => Effect.succeed({ status: 204, headers: {} })), {
        isProxy: ({ text }) => text === "127.0.0.9"
      })
      const ask = (from: string, client: number) =>
        Effect.gen(function*() {
          const one = yield* talk(port, () => connect({ port, host: "127.0.0.1", localAddress: from }))
          yield* one.send(get("/", `X-Forwarded-For: 192.0.2.${client}\r\n${once}`))
          yield* one.ended
        })
      for (let client = 0; client < 20; client++) {
        yield* ask("127.0.0.9", client)
        yield* ask("127.0.0.8", client)
      }
      yield* log.of("request_completed", 40)
      const told = log.records.filter(({ event }) => event === "server_proxy_untrusted").map(({ fields }) => fields)
      assert.deepStrictEqual(told, [{ listener: "acme", address: "127.0.0.8", header: "x-forwarded-for" }])
    }))
})

describe("the bodies of many requests", () => {
  const stuckBodies = (headers: string, openFrom: string) =>
    Effect.gen(function*() {
      const begun = yield* Queue.unbounded<void>()
      const forwarded = ({ clientIp, headers }: Pick<Request, "clientIp" | "headers">) =>
        String(headers["x-forwarded-for"] ?? clientIp)
      const { port } = yield* serving(
        appOf(
          (request) => Effect.andThen(Queue.offer(begun, undefined), reads.handle(request)),
          (received) => ({ clientIp: forwarded(received) })
        ),
        { maxBodies: 4, maxConnections: 20, isProxy: ({ text }) => text === "127.0.0.9" }
      )
      const open = () => talk(port, () => connect({ port, host: "127.0.0.1", localAddress: openFrom }))
      const stuck = yield* Effect.forEach([1, 2, 3, 4], () =>
        Effect.gen(function*() {
          const one = yield* open()
          yield* one.send(post(`Content-Length: 2\r\n${headers}`, "1"))
          yield* Queue.take(begun)
          return one
        }))
      return { port, stuck, open }
    })

  test("do not block the body of another client if they never end", () =>
    Effect.gen(function*() {
      const { port, stuck } = yield* stuckBodies("", "127.0.0.1")
      const newcomer = yield* talk(port, () => connect({ port, host: "127.0.0.1", localAddress: "127.0.1.1" }))
      yield* newcomer.send(post(`Content-Length: 2\r\n${once}`, "12"))
      assert.match(yield* newcomer.ended, /^HTTP\/1\.1 200 .*\r\n\r\n2$/s)
      assert.match(yield* stuck.at(-1)?.heard(/Shed$/) ?? Effect.succeed(""), /^HTTP\/1\.1 503 /)
      assert.strictEqual(eventsOf(log.records).filter((event) => event === "request_shed").length, 1)
      assert.match(yield* exchange(port, post(`Content-Length: 2\r\n${once}`, "12")), /^HTTP\/1\.1 200 /)
      for (const one of stuck.slice(0, 3)) {
        yield* one.send("2")
        assert.match(yield* one.heard(/\r\n\r\n2$/), /^HTTP\/1\.1 200 /)
      }
    }))

  test("are counted by the forwarded address if they arrive through one proxy", () =>
    Effect.gen(function*() {
      const { open, stuck } = yield* stuckBodies("X-Forwarded-For: 192.0.2.1\r\n", "127.0.0.9")
      const newcomer = yield* open()
      yield* newcomer.send(post(`Content-Length: 2\r\nX-Forwarded-For: 198.51.100.1\r\n${once}`, "12"))
      assert.match(yield* newcomer.ended, /^HTTP\/1\.1 200 /)
      assert.match(yield* stuck.at(-1)?.heard(/Shed$/) ?? Effect.succeed(""), /^HTTP\/1\.1 503 /)
      for (const one of stuck.slice(0, 3)) yield* Effect.andThen(one.send("2"), one.heard(/\r\n\r\n2$/))
    }))
})

describe("the connections of a listener", () => {
  test("get a 400 and are closed without reaching the app if they do not speak HTTP/1.1", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(appOf(() => Effect.die("reached")))
      const odd = [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nAccept: a\r\nhOST: x\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
        get("/", "X-Long: one\r\n two\r\n"),
        get("/", "X-Odd : 1\r\n"),
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
        get("http:///health"),
        get("http://user@a.example/health"),
        get("http://a.example:99x/health"),
        get("http://a.example\\b/health"),
        "EHLO mail.example\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: x\r\n\r\nmore"
      ]
      for (const request of odd) {
        const said = yield* exchange(port, request)
        assert.match(said, /^HTTP\/1\.1 400 .*\r\nconnection: close\r\n/is, request)
        assert.strictEqual(headOf(said).headers.get("x-content-type-options"), "nosniff")
      }
      const told = yield* log.of("request_completed", odd.length)
      assert.deepStrictEqual(
        told.map(({ fields, span }) => [fields["status"], span["client_ip"]]),
        odd.map(() => [400, "127.0.0.1"])
      )
      assert.match(yield* exchange(port, get("/", `X-Large: ${"x".repeat(17_000)}\r\n`)), /^HTTP\/1\.1 4(?:00|31) /)
    }))

  test("are reset if they were refused and the peer never closes its side", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(appOf(() => Effect.die("reached")))
      for (const request of ["GET / HTTP/1.1\r\n\r\n", get("/", "X-Many: 1\r\n".repeat(100))]) {
        assert.match(yield* heardUntilCutOff(port, request), /^HTTP\/1\.1 4(?:00|31) /)
      }
    }))

  test("get a 431 and are closed if a request has more than a hundred header fields", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(says("taken"))
      const fields = (count: number) => "X-Many: 1\r\n".repeat(count)
      assert.match(yield* exchange(port, get("/", `${fields(98)}${once}`)), /taken$/)
      const said = yield* exchange(port, get("/", fields(100)))
      assert.strictEqual(headOf(said).status, 431)
      assert.strictEqual(headOf(said).headers.get("connection"), "close")
      assert.strictEqual((yield* log.of("request_completed", 2))[1]?.fields["status"], 431)
    }))

  test("are closed if a request's header fields are not complete in time", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(says("here"))
      const silent = yield* talk(port)
      const dripping = yield* talk(port)
      yield* dripping.send("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
      const idle = yield* talk(port)
      yield* idle.send(get("/"))
      yield* idle.heard(/here$/)
      yield* TestClock.adjust(sweep)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* silent.ended, "")
      assert.strictEqual(yield* dripping.ended, "")
      yield* idle.send(get("/", once))
      assert.match(yield* idle.ended, /here$/)
    }))

  test("are closed at once beyond the maximum number", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(5000)
      const { port } = yield* serving(says("here"), { maxConnections: 2 })
      const first = yield* talk(port)
      yield* first.send(get("/"))
      yield* first.heard(/here$/)
      const second = yield* talk(port)
      yield* second.send("G")
      for (const _ of [1, 2, 3]) assert.strictEqual(yield* Effect.flatMap(talk(port), ({ ended }) => ended), "")
      const refused = yield* log.of("server_connection_refused")
      assert.deepStrictEqual(refused.map(({ fields }) => fields), [
        { listener: "acme", address: "127.0.0.1", open: 2, pending: 1 }
      ])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Effect.flatMap(talk(port), ({ ended }) => ended), "")
      assert.strictEqual((yield* log.of("server_connection_refused", 2)).length, 2)
      yield* first.send(get("/", once))
      yield* first.ended
      // The server may notice the end of that connection later than the client.
      yield* Effect.repeat(exchange(port, get("/", once)), { until: (said) => said.endsWith("here") })
    }))

  const from = (localAddress: string) => (port: number) =>
    talk(port, () => connect({ port, host: "127.0.0.1", localAddress }))
  /** Opens this many connections, each of which sends `said`, or one octet if that is empty. */
  const crowd = (count: number, port: number, said = "", open = from("127.0.0.1")) =>
    Effect.forEach(
      Array.from({ length: count }),
      () => Effect.tap(open(port), ({ send }) => send(said === "" ? "G" : said))
    )

  test("do not keep other hosts out if one host opens 256 connections without a request", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(5000)
      const { port } = yield* serving(says("here"), { maxConnections: 1000 })
      const crowded = yield* crowd(256, port)
      const newcomer = yield* from("127.0.1.1")(port)
      yield* newcomer.send(get("/", once))
      assert.match(yield* newcomer.ended, /here$/)
      assert.strictEqual(yield* crowded.at(-1)?.ended ?? Effect.succeed("none"), "")
      const neighbour = yield* from("127.0.0.2")(port)
      yield* neighbour.send(get("/"))
      yield* neighbour.heard(/here$/)
      const refused = yield* log.of("server_connection_refused")
      assert.deepStrictEqual(refused.map(({ fields }) => fields), [
        { listener: "acme", address: "127.0.0.1", open: 256, pending: 256 }
      ])
    }))

  test("do not keep other hosts out if one host holds the maximum", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(says("here"), { maxConnections: 20 })
      for (const one of yield* crowd(20, port, get("/"))) yield* one.heard(/here$/)
      const newcomer = yield* from("127.0.1.1")(port)
      yield* newcomer.send(get("/"))
      yield* newcomer.heard(/here$/)
      assert.strictEqual(yield* Effect.flatMap(talk(port), ({ ended }) => ended), "", "whoever has most is refused")
      yield* newcomer.send(get("/", once))
      assert.match(yield* newcomer.ended, /here$/)
    }))

  test("are not limited by shares if they come from a proxy", () =>
    Effect.gen(function*() {
      const { port } = yield* serving(says("here"), {
        maxConnections: 3,
        isProxy: ({ text }) => text === "127.0.0.9"
      })
      const proxied = yield* crowd(2, port, get("/"), from("127.0.0.9"))
      for (const one of proxied) yield* one.heard(/here$/)
      const [plain] = yield* crowd(1, port, get("/"))
      yield* plain?.heard(/here$/) ?? Effect.void
      const more = yield* from("127.0.0.9")(port)
      yield* more.send(get("/"))
      yield* more.heard(/here$/)
      assert.match(yield* plain?.ended ?? Effect.succeed(""), /here$/, "closed for it")
      for (const one of proxied) {
        yield* one.send(get("/", once))
        assert.match(yield* one.ended, /here$/)
      }
    }))

  test("are served over TLS", () =>
    Effect.gen(function*() {
      const tls = yield* tlsPair
      const { port } = yield* serving(says("here"), { tls })
      const client = yield* talk(port, () =>
        connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] }))
      yield* client.send(get("/", once))
      const said = yield* client.ended
      assert.match(said, /here$/)
      isHardened(said)
      const plain = yield* talk(port)
      yield* plain.send(get("/"))
      yield* plain.ended
      const [failed] = yield* log.of("tls_handshake_failed")
      assert.deepInclude(failed?.fields, { listener: "acme", client_ip: "127.0.0.1" })
      assert.strictEqual((yield* log.of("request_completed")).length, 1)
    }))

  /**
   * Moves the clock to the next sweep. The answer to a new connection shows that the server has accepted the earlier
   * connections, so the sweep examines them.
   */
  const lookedAt = (port: number) =>
    Effect.gen(function*() {
      const client = yield* talk(port, () => connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }))
      yield* client.send(get("/", once))
      yield* client.ended
      yield* TestClock.adjust(sweep)
    })

  /**
   * Begins the handshake on a connection that has waited. `met` shows whether the server still accepts the connection.
   */
  const handshakes = (socket: Socket) => {
    const secure = connectTls({ socket, rejectUnauthorized: false })
    const met = Effect.callback<"secure" | "closed">((resume) => {
      const closed = () => resume(Effect.succeed("closed"))
      secure.once("secureConnect", () => resume(Effect.succeed("secure")))
      for (const one of [socket, secure]) one.once("close", closed)
      if (socket.destroyed) closed()
    })
    return { secure, met }
  }

  test("are closed at once and logged if the TLS handshake does not finish in time", () =>
    Effect.gen(function*() {
      const tls = { ...yield* tlsPair, handshakeTimeoutMillis: 1500 }
      const { port } = yield* serving(says("here"), { tls })
      const silent = yield* talk(port)
      yield* lookedAt(port)
      yield* TestClock.adjust("1 second")
      assert.notInclude(eventsOf(log.records), "tls_handshake_timeout")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* silent.ended, "")
      const [late] = yield* log.of("tls_handshake_timeout")
      assert.deepStrictEqual(late?.fields, {
        listener: "acme",
        client_ip: "127.0.0.1",
        error: "TLS handshake timeout"
      })
      assert.deepStrictEqual(eventsOf(log.records), ["request_completed", "tls_handshake_timeout"])
    }))

  test("are not ended by a timer of Node.js before the configured time of the TLS handshake", () =>
    Effect.gen(function*() {
      const tls = { ...yield* tlsPair, handshakeTimeoutMillis: 3_600_000 }
      const { port } = yield* serving(says("served"), { tls })
      const timers: Array<number> = []
      const hook = createHook({
        init: (_id, type, _trigger, timer) => {
          if (type === "Timeout") timers.push((timer as { readonly _idleTimeout: number })._idleTimeout)
        }
      })
      yield* Effect.acquireRelease(Effect.sync(() => hook.enable()), () => Effect.sync(() => hook.disable()))
      const secure = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false })
      yield* talk(port, () => secure)
      yield* Effect.callback<void>((resume) => void secure.once("secureConnect", () => resume(Effect.void)))
      assert.isNotEmpty(timers)
      assert.deepStrictEqual(timers.filter((millis) => millis < tls.handshakeTimeoutMillis), [])
    }))

  test("have the configured time for the TLS handshake, and then ten seconds for the header fields", () =>
    Effect.gen(function*() {
      const tls = { ...yield* tlsPair, handshakeTimeoutMillis: 3_600_000 }
      const { port } = yield* serving(says("here"), { tls })
      const slow = yield* talk(port)
      yield* lookedAt(port)
      yield* TestClock.adjust("59 minutes")
      const { met, secure } = handshakes(slow.socket)
      const client = yield* talk(port, () => secure)
      assert.strictEqual(yield* met, "secure")
      yield* lookedAt(port)
      yield* TestClock.adjust("9 seconds")
      yield* client.send("GET / HTTP/1.1\r\n")
      yield* lookedAt(port)
      assert.isFalse(secure.destroyed)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* client.ended, "")
      assert.notInclude(eventsOf(log.records), "tls_handshake_timeout")
    }))

  test("have the new time for the TLS handshake if they were opened after that time was changed", () =>
    Effect.gen(function*() {
      const tls = { ...yield* tlsPair, handshakeTimeoutMillis: 1500 }
      const { port, serve } = yield* serving(says("before"), { tls })
      const before = yield* talk(port)
      yield* lookedAt(port)
      yield* serve({ app: says("now"), ...settings, tls: { ...tls, handshakeTimeoutMillis: 3_600_000 } })
      const later = yield* talk(port)
      yield* lookedAt(port)
      yield* TestClock.adjust("2 seconds")
      yield* before.ended
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual(yield* handshakes(later.socket).met, "secure")
    }))
})

describe("a listener that serves an app", () => {
  test("answers its own paths, and no others, before it asks the app", () =>
    Effect.gen(function*() {
      const answer = Effect.succeed({ status: 200, headers: {}, body: "own" })
      const own = new Map([["/own", { handle: () => answer, late: () => answer }]])
      const app = appOf(
        () => Effect.succeed({ status: 200, headers: {}, body: "app" }),
        () => ({ pattern: "of the app" })
      )
      const patterns: Array<string> = []
      const watch = {
        begun: () => {},
        answered: (_: unknown, { pattern }: { readonly pattern: string }) => patterns.push(pattern)
      }
      const { port } = yield* serving(app, { own, watch })
      assert.match(yield* exchange(port, get("/own?a=b", once)), /own$/)
      for (const path of ["/own/", "/OWN", "/owned", "/"]) {
        assert.match(yield* exchange(port, get(path, once)), /app$/, path)
      }
      assert.deepStrictEqual(patterns, ["/own", ...Array.from({ length: 4 }, () => "of the app")])
    }))

  test("gives a request that had to wait to the app that is served when the wait ends", () =>
    Effect.gen(function*() {
      const { answer, app, begun } = yield* held
      const uses: Array<string> = []
      const watch = (name: string) => ({ begun: () => uses.push(name), answered: () => {} })
      const listener = yield* serving(app, { watch: watch("old") })
      const client = yield* talk(listener.port)
      yield* client.send(get("/first") + get("/second", once))
      yield* begun
      yield* listener.serve({ app: says("new"), ...settings, watch: watch("new") })
      yield* Deferred.succeed(answer, { status: 200, headers: {}, body: "old" })
      assert.match(yield* client.ended, /\r\n\r\nold[^]*\r\n\r\nnew$/)
      assert.deepStrictEqual(uses, ["old", "new"])
    }))

  test("shows each request and its answer to an observer while the fiber of the request runs", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const { answer, app, begun, ended } = yield* held
      const { port } = yield* serving(app, {
        watch: {
          begun: (fiber) => {
            told.push("begun")
            fiber.addObserver(() => told.push("over"))
          },
          answered: (_, { pattern, status }) => told.push(`${status} ${pattern}`)
        }
      })
      const client = yield* talk(port)
      yield* client.send(get("/a", once))
      yield* begun
      assert.deepStrictEqual(told, ["begun"])
      yield* Deferred.succeed(answer, { status: 200, headers: {} })
      yield* ended
      yield* client.ended
      assert.deepStrictEqual(told, ["begun", "200 /a", "over"])
      assert.match(yield* exchange(port, "no request\r\n\r\n"), /^HTTP\/1\.1 400 /)
      assert.deepStrictEqual(told.slice(3), ["400 <unmatched>"])
    }))

  test("lets a request in progress finish on its app and gives the next one to the new app", () =>
    Effect.gen(function*() {
      const { answer, app, begun } = yield* held
      const listener = yield* serving(app)
      const client = yield* talk(listener.port)
      yield* client.send(get("/"))
      yield* begun
      yield* listener.serve({ app: says("new"), ...settings })
      yield* Deferred.succeed(answer, { status: 200, headers: {}, body: "old" })
      yield* client.heard(/old$/)
      yield* client.send(get("/"))
      yield* client.heard(/new$/)
    }))
})

describe("a listener with another TLS certificate", () => {
  /** The certificate that a new connection is shown. */
  const shown = (port: number) =>
    Effect.callback<string | undefined>((resume) => {
      const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
        resume(Effect.succeed(socket.getPeerX509Certificate()?.toString()))
        socket.destroy()
      })
    })

  test("shows a new pair to new connections if the pair that it replaces is in use", () =>
    Effect.gen(function*() {
      const [first, second, third] = [yield* tlsPair, yield* tlsPair, yield* tlsPair]
      const listener = yield* serving(says("here"), { tls: first })
      const open = yield* talk(
        listener.port,
        () => connectTls({ port: listener.port, host: "127.0.0.1", rejectUnauthorized: false })
      )
      yield* open.send(get("/"))
      yield* open.heard(/here$/)
      yield* listener.renew(second, third)
      assert.strictEqual(yield* shown(listener.port), first.cert)
      yield* listener.renew(first, second)
      assert.strictEqual(yield* shown(listener.port), second.cert)
      yield* open.send(get("/"))
      assert.match(yield* open.ended, /here[^]*here$/)
      yield* listener.serve({ app: says("plain"), ...settings })
      yield* listener.renew(second, third)
      assert.match(yield* exchange(listener.port, get("/", once)), /plain$/)
    }))

  test("gives an open connection one more answer in its old protocol when TLS is turned on or off", () =>
    Effect.gen(function*() {
      const tls = yield* tlsPair
      const listener = yield* serving(says("plain"))
      const client = yield* talk(listener.port)
      yield* client.send(get("/"))
      yield* client.heard(/plain$/)
      yield* listener.serve({ app: says("secret"), ...settings, tls })
      yield* client.send(get("/"))
      const said = yield* client.ended
      assert.match(said, /secret$/)
      assert.strictEqual(headOf(said).headers.get("connection"), "close")
      const secure = yield* talk(
        listener.port,
        () => connectTls({ port: listener.port, host: "127.0.0.1", rejectUnauthorized: false })
      )
      yield* secure.send(get("/"))
      yield* secure.heard(/secret$/)
      yield* listener.serve({ app: says("plain again"), ...settings })
      yield* secure.send(get("/"))
      assert.match(yield* secure.ended, /plain again$/)
      assert.match(yield* exchange(listener.port, get("/", once)), /plain again$/)
      assert.strictEqual(yield* listener.drain, 0)
    }))

  test("lets a connection that comes before the first app wait for that app", () =>
    Effect.gen(function*() {
      const listener = yield* bind(options)
      const client = yield* talk(portOf(listener.address))
      yield* client.send(get("/", once))
      const gone = yield* talk(portOf(listener.address))
      yield* gone.send(get("/"))
      gone.socket.resetAndDestroy()
      yield* gone.ended
      yield* listener.serve({ app: says("at last"), ...settings })
      assert.match(yield* client.ended, /at last$/)
    }))
})

describe("bind", () => {
  test("returns the address that the socket has", () =>
    Effect.gen(function*() {
      assert.match((yield* bind(options)).address, /^127\.0\.0\.1:[1-9]\d*$/)
    }))

  test("names an address that is not available", () =>
    Effect.gen(function*() {
      const { address } = yield* bind(options)
      const taken = yield* Effect.flip(bind({ ...options, port: portOf(address) }))
      assert.deepInclude(taken, { _tag: "BindFailed", address })
      assert.include(taken.message, address)
      const foreign = yield* Effect.flip(bind({ ...options, host: "192.0.2.1", port: 1 }))
      assert.strictEqual(foreign.address, "192.0.2.1:1")
    }))

  test("shares an address only among sockets that all ask to share it", () =>
    Effect.gen(function*() {
      const shared: SocketOptions = { ...options, sharing: "port" }
      const { address } = yield* bind(shared)
      const port = portOf(address)
      assert.strictEqual((yield* bind({ ...shared, port })).address, address)
      assert.strictEqual((yield* Effect.flip(bind({ ...options, port }))).address, address)
      const alone = portOf((yield* bind(options)).address)
      assert.include((yield* Effect.flip(bind({ ...shared, port: alone }))).message, "EADDRINUSE")
    }))

  test("closes its socket with the scope, which frees the address", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const listener = yield* Scope.provide(serving(says("here")), scope)
      const open = yield* talk(listener.port)
      yield* open.send(get("/"))
      yield* open.heard(/here$/)
      yield* Scope.close(scope, Exit.void)
      yield* open.ended
      yield* bind({ ...options, port: listener.port })
    }))
})

/**
 * A client that has not yet begun to read its answer. The answer is far larger than a socket's buffer in the kernel.
 */
const slowTaker = (port: number, open?: () => Socket, requests = get("/large")) =>
  Effect.gen(function*() {
    const client = yield* talk(port, open)
    if (open !== undefined) {
      yield* Effect.callback<void>((resume) => void client.socket.once("secureConnect", () => resume(Effect.void)))
    }
    client.socket.pause()
    yield* client.send(requests)
    yield* log.of("request_completed")
    return { ...client, take: Effect.sync(() => void client.socket.resume()) }
  })

const large = "x".repeat(12 * 1024 * 1024)

/** Answers with a large text, or with a small one, as requested. */
const gives = appOf(({ path }) =>
  Effect.succeed({ status: 200, headers: {}, body: path === "/large" ? large : "small" })
)

describe("an answer that was passed on but not yet read", () => {
  const bySocket = (port: number) => [
    undefined,
    () => connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false })
  ]

  test("is sent whole while the listener drains, plain or over TLS", () =>
    Effect.gen(function*() {
      const pair = yield* tlsPair
      for (const tls of [undefined, pair]) {
        log.records.length = 0
        const listener = yield* serving(gives, { tls })
        const open = bySocket(listener.port)[tls === undefined ? 0 : 1]
        const client = yield* slowTaker(listener.port, open)
        const idle = yield* talk(listener.port, open)
        yield* idle.send(get("/"))
        yield* idle.heard(/small$/)
        const draining = yield* Effect.forkChild(listener.drain)
        yield* Effect.yieldNow
        assert.isUndefined(draining.pollUnsafe())
        yield* client.take
        yield* client.heard(/x{1000}$/)
        assert.strictEqual((yield* client.ended).split("\r\n\r\n")[1]?.length, large.length)
        yield* idle.ended
        assert.strictEqual(yield* Fiber.join(draining), 0)
      }
    }))

  test("is cut off at the deadline of a drain", () =>
    Effect.gen(function*() {
      const listener = yield* serving(gives, { requestTimeoutMillis: 1000 })
      const client = yield* slowTaker(listener.port)
      const draining = yield* Effect.forkChild(listener.drain)
      yield* Effect.yieldNow
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(yield* Fiber.join(draining), 1)
      yield* client.take
      assert.isBelow((yield* client.ended).length, large.length)
    }))

  test("may take longer than a request may", () =>
    Effect.gen(function*() {
      const listener = yield* serving(gives, { requestTimeoutMillis: 1000 })
      const client = yield* slowTaker(listener.port, undefined, get("/large", once))
      yield* TestClock.adjust("10 seconds")
      yield* client.take
      assert.strictEqual((yield* client.ended).split("\r\n\r\n")[1]?.length, large.length)
    }))

  test("does not keep an idle connection open during a drain", () =>
    Effect.gen(function*() {
      const listener = yield* serving(gives)
      const client = yield* slowTaker(listener.port)
      const idle = yield* talk(listener.port)
      yield* idle.send(get("/"))
      yield* idle.heard(/small$/)
      const draining = yield* Effect.forkChild(listener.drain)
      // Node.js itself would end an idle connection after 65 s.
      yield* Effect.timeout(idle.ended, "40 seconds").pipe(onSystemClock)
      assert.isUndefined(draining.pollUnsafe())
      yield* client.take
      assert.strictEqual(yield* Fiber.join(draining), 0)
    }))

  test("is forgotten with its connection, together with the answers that wait behind it", () =>
    Effect.gen(function*() {
      const listener = yield* serving(gives)
      const client = yield* slowTaker(listener.port, undefined, get("/large") + get("/large"))
      yield* log.of("request_completed")
      client.socket.resetAndDestroy()
      const draining = yield* Effect.forkChild(listener.drain)
      yield* Effect.yieldNow
      yield* TestClock.adjust(sweep)
      assert.strictEqual(yield* Fiber.join(draining), 0)
    }))
})

describe("new connections", () => {
  test("are accepted before requests begin in the same turn of the event loop", () =>
    Effect.gen(function*() {
      let turn = 0
      let acceptedIn = 0
      const apart: Array<number> = []
      const handle = Effect.sync((): Answer => {
        apart.push(turn - acceptedIn)
        return { status: 200, headers: {}, body: "begun" }
      })
      const { port } = yield* serving(appOf(() => handle), { maxConnections: 100 })
      const busy = yield* Effect.replicateEffect(talk(port), 10)
      const ask = Effect.forEach(busy, ({ send }) => send(get("/")), { concurrency: "unbounded" })
      yield* ask
      for (const { heard } of busy) yield* heard(/begun$/)
      const accepted = () => void (acceptedIn = turn)
      let isOver = false
      // This callback was registered first, so it runs before the listener's own callback in each turn.
      const count = () => {
        turn++
        if (!isOver) setImmediate(count)
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          subscribe("net.server.socket", accepted)
          setImmediate(count)
        }),
        () =>
          Effect.sync(() => {
            isOver = true
            unsubscribe("net.server.socket", accepted)
          })
      )
      apart.length = 0
      const newcomers = yield* Effect.replicateEffect(talk(port), 20)
      yield* ask
      for (const { heard } of busy) yield* heard(/begun[^]*begun$/)
      for (const { heard, send } of newcomers) {
        yield* send(get("/"))
        yield* heard(/begun$/)
      }
      assert.strictEqual(apart.length, 30)
      assert.isAtLeast(Math.min(...apart), 2)
    }))
})

describe("the requests of many connections", () => {
  /** Lets 130 connections of one client ask at once, and then a newcomer. Returns when the newcomer's request began. */
  const placeOfNewcomer = (busyFrom: string, busyHeaders: string, newcomerFrom: string, newcomerHeaders: string) =>
    Effect.gen(function*() {
      const begun: Array<string> = []
      const app = appOf(
        ({ path }) =>
          Effect.sync((): Answer => {
            begun.push(path)
            return { status: 200, headers: {}, body: "begun" }
          }),
        ({ clientIp, headers }) => ({ clientIp: String(headers["x-forwarded-for"] ?? clientIp) })
      )
      const { port } = yield* serving(app, { maxConnections: 200, isProxy: ({ text }) => text === "127.0.0.9" })
      const from = (localAddress: string) => talk(port, () => connect({ port, host: "127.0.0.1", localAddress }))
      const busy = yield* Effect.replicateEffect(from(busyFrom), 130)
      const newcomer = yield* from(newcomerFrom)
      // Each connection has been used before, so that none of them is accepted while the requests wait.
      for (const one of [...busy, newcomer]) yield* Effect.andThen(one.send(get("/before")), one.heard(/begun$/))
      begun.length = 0
      for (const { socket } of busy) socket.write(get("/busy", busyHeaders))
      newcomer.socket.write(get("/newcomer", newcomerHeaders))
      for (const one of [...busy, newcomer]) yield* one.heard(/begun[^]*begun$/)
      assert.lengthOf(begun, 131)
      return begun.indexOf("/newcomer")
    })

  test("do not delay the request of another client", () =>
    Effect.map(placeOfNewcomer("127.0.0.1", "", "127.0.1.1", ""), (place) => assert.isBelow(place, 64)))

  test("do not delay the request of another client of the same proxy", () =>
    Effect.gen(function*() {
      const [busy, newcomer] = ["X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 198.51.100.1\r\n"]
      assert.isBelow(yield* placeOfNewcomer("127.0.0.9", busy, "127.0.0.9", newcomer), 64)
    }))
})

describe("requests that are sent before the answer to an earlier one", () => {
  /** Answers `/held` when the test says so, and everything else at once. */
  const behindHeld = (handle: Handle) =>
    Effect.gen(function*() {
      const { answer, app, begun } = yield* held
      const { port } = yield* serving(
        appOf((request) => request.path === "/held" ? app.handle(request) : handle(request))
      )
      const client = yield* talk(port)
      return {
        port,
        client,
        begun,
        answerHeld: Deferred.succeed(answer, { status: 200, headers: {}, body: "held" })
      }
    })

  const unread = "POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"

  test("do not cut off the earlier answer by data that the listener leaves unread", () =>
    Effect.gen(function*() {
      const { answerHeld, begun, client, port } = yield* behindHeld(() =>
        Effect.succeed({ status: 404, headers: {}, body: "none" })
      )
      yield* client.send(get("/held") + unread)
      yield* begun
      // This other connection also leaves data unread. Its end shows that the time for unread data has passed.
      yield* heardUntilCutOff(port, unread)
      yield* answerHeld
      assert.match(yield* client.ended, /held[^]* 404 [^]*none$/)
    }))

  test("end the connection after the earlier answer if one of their streams fails", () =>
    Effect.gen(function*() {
      const { answerHeld, client } = yield* behindHeld(() =>
        Effect.succeed({
          status: 200,
          headers: {},
          stream: Stream.concat(Stream.make(Buffer.from("part")), Stream.die("broken"))
        })
      )
      yield* client.send(get("/held") + get("/stream"))
      yield* answerHeld
      const said = yield* Effect.timeout(client.ended, "40 seconds").pipe(onSystemClock)
      assert.match(said, /\r\n\r\nheld/)
      assert.notMatch(said, /0\r\n\r\n$/, "the end of the stream")
    }))

  test("get their 100 Continue after the answer to the earlier request", () =>
    Effect.gen(function*() {
      const { answerHeld, begun, client } = yield* behindHeld(({ body }) =>
        Effect.map(
          Effect.orDie(body),
          (octets) => ({ status: 200, headers: {}, body: Buffer.from(`got ${octets.length}`) })
        )
      )
      yield* client.send(get("/held") + post(`Expect: 100-continue\r\nContent-Length: 3\r\n${once}`))
      yield* begun
      yield* answerHeld
      yield* client.heard(/held[^]*100 Continue\r\n\r\n$/)
      yield* client.send("abc")
      assert.match(yield* client.ended, /got 3$/)
    }))

  test("are handled in order, each when the earlier answer has been read", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const { answerHeld, begun, client, port } = yield* behindHeld(({ path }) => {
        asked.push(path)
        return Effect.succeed({ status: 200, headers: {}, body: path })
      })
      yield* client.send(get("/held") + get("/one") + get("/two"))
      yield* begun
      assert.match(yield* exchange(port, get("/other", once)), /\/other$/)
      assert.deepStrictEqual(asked, ["/other"])
      yield* answerHeld
      yield* client.heard(/held[^]*\r\n\r\n\/one[^]*\r\n\r\n\/two$/)
      assert.deepStrictEqual(asked, ["/other", "/one", "/two"])
    }))

  test("are not handled after the client has disconnected", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const { begun, client } = yield* behindHeld(({ path }) => {
        asked.push(path)
        return Effect.succeed({ status: 200, headers: {}, body: path })
      })
      yield* client.send(get("/held") + get("/one") + get("/two"))
      yield* begun
      yield* client.leave
      const told = yield* log.of("request_completed", 3)
      assert.sameMembers(told.map(({ fields, span }) => `${span["uri"]} ${fields["status"]}`), [
        "/held 499",
        "/one 499",
        "/two 499"
      ])
      assert.deepStrictEqual(asked, [])
    }))

  test("end the connection if there are more than sixteen", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const { answerHeld, begun, client, port } = yield* behindHeld(({ path }) => {
        asked.push(path)
        return Effect.succeed({ status: 200, headers: {}, body: path })
      })
      const some = (count: number) => Array.from({ length: count }, (_, at) => get(`/${at}`)).join("")
      yield* client.send(get("/held") + some(15))
      yield* begun
      const greedy = yield* talk(port)
      yield* greedy.send(get("/held") + some(1000))
      assert.strictEqual(yield* Effect.timeout(greedy.ended, "40 seconds").pipe(onSystemClock), "")
      yield* log.of("request_completed", 16)
      const cut = log.records.filter(({ event }) => event === "request_pipeline_cut")
      assert.deepStrictEqual(cut.map(({ fields }) => fields), [{ listener: "acme", address: "127.0.0.1" }])
      assert.deepStrictEqual(asked, [], "nothing behind the one that is held")
      yield* answerHeld
      yield* client.heard(/\/14$/)
    }))

  test("are answered before malformed data that follows them", () =>
    Effect.gen(function*() {
      for (const bad of ["no request\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", get("/", "x: y\r\n".repeat(100))]) {
        const { answerHeld, begun, client } = yield* behindHeld(() =>
          Effect.succeed({ status: 200, headers: {}, body: "one" })
        )
        yield* client.send(get("/held") + get("/one") + bad + get("/never"))
        yield* begun
        yield* answerHeld
        const said = yield* client.ended
        assert.match(said, /^HTTP\/1\.1 200 [^]*held[^]*\r\n\r\noneHTTP\/1\.1 4(?:00|31) [^]*\r\n\r\n$/)
      }
    }))

  test("are answered in order even if the body of one of them is malformed", () =>
    Effect.gen(function*() {
      const { answerHeld, begun, client } = yield* behindHeld(reads.handle)
      yield* client.send(get("/held") + "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
      yield* begun
      yield* answerHeld
      const said = yield* Effect.timeout(client.ended, "40 seconds").pipe(onSystemClock)
      assert.match(said, /^HTTP\/1\.1 200 [^]*heldHTTP\/1\.1 400 [^]*\r\n\r\n$/)
    }))
})

describe("draining a listener", () => {
  test("lets a request in progress finish and accepts no further connection", () =>
    Effect.gen(function*() {
      const { answer, app, begun } = yield* held
      const listener = yield* serving(
        appOf((request) =>
          request.path === "/held" ? app.handle(request) : Effect.succeed({ status: 200, headers: {}, body: "here" })
        )
      )
      const idle = yield* talk(listener.port)
      yield* idle.send(get("/"))
      yield* idle.heard(/here$/)
      const busy = yield* talk(listener.port)
      yield* busy.send(get("/held"))
      yield* begun
      const draining = yield* Effect.forkChild(listener.drain)
      yield* idle.ended
      assert.strictEqual(
        yield* Effect.flatMap(talk(listener.port), ({ ended }) => ended),
        "",
        "none is taken any more"
      )
      yield* Deferred.succeed(answer, { status: 200, headers: {}, body: "finished" })
      const said = yield* busy.ended
      assert.match(said, /finished$/)
      assert.strictEqual(headOf(said).headers.get("connection"), "close")
      assert.strictEqual(yield* Fiber.join(draining), 0)
    }))

  test("answers one more request on each open connection, if other processes accept connections too", () =>
    Effect.gen(function*() {
      const listener = yield* serving(says("here"), { sharing: "socket" })
      const [known, fresh, silent] = [
        yield* talk(listener.port),
        yield* talk(listener.port),
        yield* talk(listener.port)
      ]
      for (const client of [known, silent]) {
        yield* client.send(get("/"))
        yield* client.heard(/here$/)
      }
      const draining = yield* Effect.forkChild(listener.drain)
      yield* Effect.yieldNow
      for (const client of [known, fresh]) {
        yield* client.send(get("/"))
        const said = yield* client.ended
        assert.match(said, /here$/)
        assert.strictEqual(headOf(said).headers.get("connection"), "close")
      }
      assert.isUndefined(draining.pollUnsafe())
      yield* TestClock.adjust("1 second")
      yield* silent.ended
      assert.strictEqual(yield* Fiber.join(draining), 0)
    }))

  test("ends at once if no request is in progress", () =>
    Effect.gen(function*() {
      const listener = yield* serving(says("here"))
      assert.strictEqual(yield* listener.drain, 0)
    }))

  test("ends the remaining requests at the deadline, and waits for their handlers", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const clearing = yield* Deferred.make<void>()
      const cleared = yield* Deferred.make<void>()
      const listener = yield* serving(
        appOf(() =>
          Effect.onInterrupt(
            Effect.andThen(Deferred.succeed(begun, undefined), Effect.never),
            () => Effect.andThen(Deferred.succeed(clearing, undefined), Deferred.await(cleared))
          )
        ),
        { requestTimeoutMillis: 1000 }
      )
      const client = yield* talk(listener.port)
      yield* client.send(get("/", "X-Request-Id: cut\r\n"))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("500 millis")
      const draining = yield* Effect.forkChild(listener.drain)
      yield* Effect.yieldNow
      yield* TestClock.adjust("500 millis")
      yield* Deferred.await(clearing) // This is at the request's own deadline.
      yield* TestClock.adjust("500 millis")
      yield* client.ended
      assert.isUndefined(draining.pollUnsafe(), "the handler is still clearing up")
      yield* Deferred.succeed(cleared, undefined)
      assert.strictEqual(yield* Fiber.join(draining), 1)
      const [record] = yield* log.of("request_completed")
      assert.deepStrictEqual([record?.span["request_id"], record?.fields["status"]], ["cut", 499])
    }))
})
