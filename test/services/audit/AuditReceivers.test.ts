import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import { SyslogTls } from "../../../src/engine/net/SyslogTls.ts"
import { Web } from "../../../src/engine/net/Web.ts"
import type { AuditReceiver, PushedRow } from "../../../src/services/audit/AuditReceiver.ts"
import { AuditReceivers } from "../../../src/services/audit/AuditReceivers.ts"
import { frameOf, messageOf } from "../../../src/services/audit/SyslogMessage.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { configOf } from "../../support/Graph.ts"
import { listening } from "../../support/Listening.ts"
import { freePort } from "../../support/Ports.ts"
import { rawServer } from "../../support/RawServer.ts"
import { fine, receiver } from "../../support/Receiver.ts"
import { ofOwnCa, selfSigned } from "../../support/Shown.ts"
import type { Misbehaviour } from "../../support/SyslogReceiver.ts"
import { syslogServer, unframed } from "../../support/SyslogReceiver.ts"

/* Sends rows of the audit trail to real servers on loopback, which take them or have faults. */

const rowOf = (id: number, more: Partial<PushedRow> = {}): PushedRow => ({
  id,
  createdAt: "2027-01-15T08:00:00Z",
  event: "certificate_issued",
  outcome: "success",
  actorKind: "acme",
  identifiers: ["a.example", "b.example"],
  ...more
})

const rows = [rowOf(1), rowOf(2), rowOf(3)]

/** Makes the only receiver of a configuration. */
const receiverOf = (toml: string): Effect.Effect<AuditReceiver> =>
  Effect.gen(function*() {
    const { all: [only, ...others] } = yield* AuditReceivers
    assert.lengthOf(others, 0)
    return only ?? assert.fail("there is no receiver")
  }).pipe(
    Effect.provide(AuditReceivers.layer(configOf(toml).audit, "acme.example")),
    Effect.provide(Layer.merge(SyslogTls.layer, Web.layer("1"))),
    Effect.provide(Resolver.layerStatic({ "logs.example": ["127.0.0.1"] }))
  )

const fileOf = (name: string, content: string): string => {
  const path = join(freshDirectory(), name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

const { ca, cert, key } = ofOwnCa("logs.example")
const caPath = fileOf("ca.pem", ca)

const failureOf = (self: AuditReceiver, sent: ReadonlyArray<PushedRow> = rows) =>
  Effect.map(Effect.flip(self.send(sent)), ({ detail }) => detail)

describe("a receiver of syslog", () => {
  const tomlFor = (port: number, more = "") =>
    `[audit.syslog]\naddress = "logs.example:${port}"\nca_path = "${caPath}"\n${more}`

  it.live("gets each row as a message, in order, over TLS", () =>
    Effect.gen(function*() {
      const server = yield* syslogServer({ cert, key })
      const self = yield* receiverOf(tomlFor(server.port, "facility = \"local3\"\napp_name = \"ca\""))
      yield* self.send(rows)
      yield* self.send([rowOf(4)])
      assert.deepStrictEqual(
        server.messages,
        [1, 2, 3, 4].map((id) =>
          `<158>1 2027-01-15T08:00:00Z acme.example ca - certificate_issued [audit@32473 id="${id}" event="certificate_issued" outcome="success" actorKind="acme" identifier="a.example" identifier="b.example"] certificate_issued (success)`
        )
      )
      assert.strictEqual(server.connections(), 2, "each attempt has a connection of its own")
      yield* self.reach
      assert.lengthOf(server.messages, 4)
    }))

  it.live("gets thousands of rows on one connection", () =>
    Effect.gen(function*() {
      const server = yield* syslogServer({ cert, key })
      const many = Array.from({ length: 5000 }, (_, id) => rowOf(id, { userAgent: "x".repeat(256) }))
      yield* (yield* receiverOf(tomlFor(server.port))).send(many)
      assert.lengthOf(server.messages, 5000)
    }))

  const faults: ReadonlyArray<readonly [name: string, Misbehaviour, said: RegExp]> = [
    [
      "closes it at once",
      (socket) => void socket.destroy(),
      /ended the connection before everything was sent|reset|broke/
    ],
    ["answers, as a web server would", (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), /it answers/],
    ["never reads", (socket) => void socket.pause(), /did not read everything and end the connection within 900 ms/],
    [
      "reads, but never ends the connection",
      (socket) => void socket.resume(),
      /did not read everything and end the connection within 900 ms/
    ]
  ]
  for (const [name, misbehave, said] of faults) {
    it.live(`has not taken the rows if it ${name}`, () =>
      Effect.gen(function*() {
        const server = yield* syslogServer({ cert, key }, (connection) => connection === 0 ? misbehave : undefined)
        const self = yield* receiverOf(tomlFor(server.port, "timeout_ms = 900"))
        assert.match(yield* failureOf(self), said)
        const patient = yield* receiverOf(tomlFor(server.port))
        yield* patient.send(rows)
        assert.lengthOf(server.messages, 3, "the next attempt succeeds")
      }))
  }

  it.live("has not taken the rows if the connection is reset in the middle", () =>
    Effect.gen(function*() {
      const server = yield* syslogServer({ cert, key })
      const between = createServer((near) => {
        const far = connect(server.port, "127.0.0.1")
        let octets = 0
        near.on("error", () => {}).on("data", (chunk: Buffer) => {
          octets += chunk.length
          if (octets < 200_000) far.write(chunk)
          else near.resetAndDestroy()
        })
        near.once("close", () => far.destroy())
        far.on("error", () => {}).pipe(near)
      })
      const port = yield* listening(between)
      const many = Array.from({ length: 5000 }, (_, id) => rowOf(id, { userAgent: "x".repeat(256) }))
      assert.match(yield* failureOf(yield* receiverOf(tomlFor(port)), many), /ECONNRESET|EPIPE/)
      assert.deepStrictEqual(server.messages, [])
    }))

  it.live("has not taken the rows if it stops reading in the middle", () =>
    Effect.gen(function*() {
      const server = yield* syslogServer({ cert, key }, () => (socket) => {
        socket.once("data", () => socket.pause())
      })
      const many = Array.from({ length: 20_000 }, (_, id) => rowOf(id, { userAgent: "x".repeat(256) }))
      const self = yield* receiverOf(tomlFor(server.port, "timeout_ms = 500"))
      assert.match(yield* failureOf(self, many), /did not read everything/)
    }))

  it.live("is refused if no trusted CA has signed its certificate, if it has another name, or if it speaks no TLS", () =>
    Effect.gen(function*() {
      const own = yield* selfSigned("logs.example")
      const server = yield* syslogServer({ cert: own.cert, key: own.key })
      assert.match(
        yield* failureOf(yield* receiverOf(tomlFor(server.port))),
        /self-signed certificate; audit\.syslog\.ca_path does not have its CA/
      )
      const unset = yield* receiverOf(`[audit.syslog]\naddress = "logs.example:${server.port}"`)
      assert.match(yield* failureOf(unset), /audit\.syslog\.ca_path may name a file with its CA/)
      const right = yield* syslogServer({ cert, key })
      const byAddress = yield* receiverOf(`[audit.syslog]\naddress = "127.0.0.1:${right.port}"\nca_path = "${caPath}"`)
      assert.match(yield* failureOf(byAddress), /IP: 127\.0\.0\.1 is not in the cert's list/)
      const plain = createServer((socket) => void socket.on("error", () => {}).end("no TLS here, only text\n"))
      const port = yield* listening(plain)
      assert.match(yield* failureOf(yield* receiverOf(tomlFor(port))), /TLS handshake failed|wrong version/)
    }))

  it.live("is refused if its certificate has ended", () =>
    Effect.gen(function*() {
      const old = yield* selfSigned("logs.example", 1_600_000_000)
      const server = yield* syslogServer({ cert: old.cert, key: old.key })
      const self = yield* receiverOf(
        `[audit.syslog]\naddress = "logs.example:${server.port}"\nca_path = "${fileOf("old.pem", old.cert)}"`
      )
      assert.match(yield* failureOf(self), /certificate has expired/)
    }))

  it.live("gets the certificate of the service, which is read anew for each attempt and must not have ended", () =>
    Effect.gen(function*() {
      const client = ofOwnCa("acme.example")
      const server = yield* syslogServer({ cert, key, ca: [client.ca], requestCert: true, rejectUnauthorized: true })
      const [certPath, keyPath] = [fileOf("cert.pem", client.cert), fileOf("key.pem", client.key)]
      const toml = tomlFor(server.port, `cert_path = "${certPath}"\nkey_path = "${keyPath}"`)
      const self = yield* receiverOf(toml)
      yield* self.send(rows)
      assert.lengthOf(server.messages, 3)
      assert.match(yield* failureOf(yield* receiverOf(tomlFor(server.port))), /certificate required|alert|handshake/i)
      const other = yield* selfSigned("acme.example")
      writeFileSync(certPath, other.cert)
      assert.match(yield* failureOf(self), /cannot be used: .*key values mismatch/i)
      writeFileSync(keyPath, other.key)
      assert.match(yield* failureOf(self), /ended the connection before everything was sent/)
      const old = yield* selfSigned("acme.example", 1_600_000_000)
      writeFileSync(certPath, old.cert)
      assert.match(
        yield* failureOf(self),
        /^audit\.syslog\.cert_path: .*cert\.pem holds a certificate that ended at 20/
      )
      writeFileSync(certPath, client.cert)
      writeFileSync(keyPath, client.key)
      yield* self.send(rows)
      assert.lengthOf(server.messages, 6)
    }))

  it.live("is named with the file that cannot be used", () =>
    Effect.gen(function*() {
      const said = (more: string) =>
        Effect.flatMap(receiverOf(`[audit.syslog]\naddress = "logs.example:1"\n${more}`), (self) => failureOf(self))
      const [none, text] = ["/nowhere/file.pem", fileOf("text", "no PEM")]
      assert.match(
        yield* said(`ca_path = "${none}"`),
        /^audit\.syslog\.ca_path: \/nowhere\/file\.pem cannot be read: no such file/
      )
      assert.match(yield* said(`ca_path = "${text}"`), /^audit\.syslog\.ca_path: .* holds no certificate in PEM$/)
      assert.match(
        yield* said(`cert_path = "${none}"\nkey_path = "${none}"`),
        /^audit\.syslog\.cert_path: .* cannot be read/
      )
      assert.match(
        yield* said(`cert_path = "${text}"\nkey_path = "${none}"`),
        /^audit\.syslog\.cert_path: .* holds no certificate/
      )
      const own = yield* selfSigned("a.example")
      const certPath = fileOf("cert.pem", own.cert)
      assert.match(
        yield* said(`cert_path = "${certPath}"\nkey_path = "${none}"`),
        /^audit\.syslog\.key_path: .* cannot be read/
      )
      const wrong = yield* said(`cert_path = "${certPath}"\nkey_path = "${text}"`)
      assert.match(wrong, /the certificate, its key or the CAs cannot be used/)
      assert.notInclude(wrong, "no PEM")
    }))

  it.live("is refused if nobody listens, or if its name is not known", () =>
    Effect.gen(function*() {
      const port = yield* Effect.promise(freePort)
      assert.match(yield* failureOf(yield* receiverOf(tomlFor(port))), /ECONNREFUSED/)
      assert.match(
        yield* failureOf(yield* receiverOf(`[audit.syslog]\naddress = "nobody.example:${port}"`)),
        /its name has no address/
      )
    }))
})

describe("a message of syslog", () => {
  const settings = { facility: "audit", app_name: "acme-svc", enterprise_number: 5 } as const

  it("escapes what ends a value, and keeps control characters from a line", () => {
    const row = rowOf(7, {
      outcome: "failure",
      userAgent: "quote \" back\\slash ] \n é \u202e",
      detail: { error: "a \"b\"", count: 2 }
    })
    assert.strictEqual(
      messageOf(row, "acme.example", settings),
      "<108>1 2027-01-15T08:00:00Z acme.example acme-svc - certificate_issued [audit@5 id=\"7\" " +
        "event=\"certificate_issued\" outcome=\"failure\" actorKind=\"acme\" " +
        "userAgent=\"quote \\\" back\\\\slash \\] \\\\n é \\\\u202e\" " +
        "detail=\"{\\\"error\\\":\\\"a \\\\\\\"b\\\\\\\"\\\",\\\"count\\\":2}\" " +
        "identifier=\"a.example\" identifier=\"b.example\"] certificate_issued (failure)"
    )
  })

  it("is never longer than 8000 octets, and names what it leaves out", () => {
    const long = Array.from({ length: 100 }, (_, at) => `${"é".repeat(100)}${at}.example`)
    for (const more of [{ identifiers: long }, { identifiers: long, detail: { text: "\"".repeat(8000) } }]) {
      const message = messageOf(rowOf(8, more), "acme.example", settings)
      assert.isAtMost(Buffer.byteLength(message), 8000)
      assert.match(message, /^<110>1 .* \[audit@5 id="8" /)
      assert.match(message, "detail" in more ? /omitted="detail identifier"\]/ : /omitted="identifier"\]/)
      assert.isAbove(message.split("identifier=").length, 10)
    }
  })

  it("has visible ASCII in its header, whatever the event is called", () => {
    const event = "ein längerer Name eines Ereignisses\n<1>"
    const message = messageOf(rowOf(9, { event }), "", settings)
    assert.match(message, /^<110>1 \S+ - acme-svc - ein\?l\?ngerer\?Name\?eines\?Ereignis \[audit@5 id="9" /)
    assert.notInclude(message, "\n")
  })

  it("has its length in octets before it", () => {
    assert.deepStrictEqual(unframed(Buffer.from(["é", "abc"].map(frameOf).join(""))), ["é", "abc"])
  })
})

describe("a receiver of HTTP", () => {
  const tokenPath = fileOf("token", "s3cret.t0ken-of~mine+/==\n")
  const tomlFor = (port: number, more = "") =>
    `[audit.http]\nurl = "https://logs.example:${port}/in?source=ca"\nca_path = "${caPath}"\ntoken_path = "${tokenPath}"\n${more}`

  it.live("gets the rows as lines of JSON, with the token of the moment", () =>
    Effect.gen(function*() {
      const server = yield* receiver(fine, { cert, key })
      const self = yield* receiverOf(tomlFor(server.port))
      yield* self.send(rows)
      writeFileSync(tokenPath, "renewed")
      yield* self.send([rowOf(4, { detail: { a: ["\n"] } })])
      const [first, second] = server.asked
      assert.deepStrictEqual([first?.head.method, first?.head.url], ["POST", "/in?source=ca"])
      assert.strictEqual(first?.head.headers["content-type"], "application/x-ndjson")
      assert.strictEqual(first?.head.headers.authorization, "Bearer s3cret.t0ken-of~mine+/==")
      assert.strictEqual(second?.head.headers.authorization, "Bearer renewed")
      const lines = (body = "") => body.trimEnd().split("\n").map((line): unknown => JSON.parse(line))
      assert.deepStrictEqual(lines(first?.body), rows)
      assert.deepStrictEqual(lines(second?.body), [rowOf(4, { detail: { a: ["\n"] } })])
    }))

  it.live("has not taken the rows if it answers with another status, and may ask for a wait", () =>
    Effect.gen(function*() {
      writeFileSync(tokenPath, "s3cret")
      const answers: ReadonlyArray<readonly [status: number, headers: Record<string, string>, body: string]> = [
        [500, {}, "broken: Bearer s3cret was refused"],
        [413, {}, ""],
        [429, { "retry-after": "120" }, "slow down"],
        [503, { "retry-after": "Wed, 01 Jan 2020 00:00:00 GMT" }, ""],
        [302, { location: "/elsewhere" }, ""],
        [401, {}, "x".repeat(1000)]
      ]
      let at = 0
      const server = yield* receiver((response) => {
        const [status = 200, headers = {}, body = ""] = answers[at++] ?? []
        response.writeHead(status, headers).end(body)
      }, { cert, key })
      const self = yield* receiverOf(tomlFor(server.port))
      const failures = yield* Effect.forEach(answers, () => Effect.flip(self.send(rows)))
      assert.deepStrictEqual(
        failures.map(({ afterSeconds, detail, isTooLarge }) => [detail, isTooLarge, afterSeconds]),
        [
          ["answered 500: broken: Bearer *** was refused", false, undefined],
          ["answered 413", true, undefined],
          ["answered 429: slow down", false, 120],
          ["answered 503", false, 0],
          ["answered 302", false, undefined],
          [`answered 401: ${"x".repeat(200)}`, false, undefined]
        ]
      )
    }))

  it.live("has taken the rows if it says so in the head of an answer whose body is broken", () =>
    Effect.gen(function*() {
      const answer = "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"
      const server = yield* rawServer((socket) => void socket.end(answer), { tls: { cert, key } })
      const self = yield* receiverOf(tomlFor(server.port))
      yield* self.send(rows)
    }))

  it.live("has not taken the rows if it never answers or breaks off", () =>
    Effect.gen(function*() {
      let at = 0
      const server = yield* receiver((response) => void (at++ === 0 ? undefined : response.destroy()), { cert, key })
      const self = yield* receiverOf(tomlFor(server.port, "timeout_ms = 900"))
      assert.strictEqual(yield* failureOf(self), "no answer within 900 ms")
      assert.match(yield* failureOf(yield* receiverOf(tomlFor(server.port))), /hang up|reset|closed/i)
    }))

  it.live("is named with the file that cannot be used", () =>
    Effect.gen(function*() {
      const said = (path: string) =>
        Effect.flatMap(
          receiverOf(`[audit.http]\nurl = "https://logs.example/"\ntoken_path = "${path}"`),
          (self) => failureOf(self)
        )
      assert.match(
        yield* said("/nowhere/token"),
        /^audit\.http\.token_path: \/nowhere\/token cannot be read: no such file/
      )
      const odd = fileOf("odd", "two lines\nof s3cret")
      assert.match(yield* said(odd), /^audit\.http\.token_path: .* holds no bearer token/)
      assert.notInclude(yield* said(odd), readFileSync(odd, "utf8").slice(0, 8))
      assert.match(yield* said(fileOf("blank", " \n")), /cannot be read: empty/)
    }))
})
