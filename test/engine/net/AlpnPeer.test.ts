import { describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import * as Tls from "node:tls"
import { assert } from "vitest"
import { parseAddress } from "../../../src/engine/net/Address.ts"
import type { AlpnPeerRequest } from "../../../src/engine/net/AlpnPeer.ts"
import { AlpnPeer } from "../../../src/engine/net/AlpnPeer.ts"
import { ConnectFailed } from "../../../src/engine/net/Connect.ts"
import { ecKey, ext, rsaKey } from "../../crypto/Pki.ts"
import type { Shown } from "../../support/AlpnResponder.ts"
import { alpnResponder, validationCertificate } from "../../support/AlpnResponder.ts"
import { rawServer } from "../../support/RawServer.ts"

const loopback = Option.getOrThrow(parseAddress("127.0.0.1"))
/** The TLS 1.3 extension with which a client resumes a session (RFC 8446 section 4.2). */
const preSharedKey = 41
const keyAuthorization = "token.thumbprint"

const shownFor = (name: string): Shown => ({ key: ecKey, der: validationCertificate({ name, keyAuthorization }) })

const meet = (port: number, request: Partial<AlpnPeerRequest> = {}) =>
  Effect.flatMap(AlpnPeer, (peer) =>
    peer.meet({
      address: loopback,
      port,
      connectMillis: undefined,
      name: "a.example",
      protocol: "acme-tls/1",
      ...request
    })).pipe(Effect.provide(AlpnPeer.layer()))

describe("the handshake", () => {
  it.live("fails with a group that the server generated, because computing in it may take a second", () =>
    Effect.gen(function*() {
      const der = validationCertificate({ name: "a.example", keyAuthorization, key: rsaKey })
      const responder = yield* alpnResponder({ "a.example": { key: rsaKey, der } }, {
        maxVersion: "TLSv1.2",
        ciphers: "DHE-RSA-AES128-GCM-SHA256",
        dhparam: "auto"
      })
      assert.strictEqual((yield* Effect.flip(meet(responder.port)))._tag, "TlsFailed")
    }))

  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    it.live(`sends the server name and one protocol, and returns the certificate (${version})`, () =>
      Effect.gen(function*() {
        const shown = shownFor("a.example")
        const responder = yield* alpnResponder({ "a.example": shown }, { minVersion: version, maxVersion: version })
        const answer = yield* meet(responder.port)
        assert.strictEqual(answer.protocol, "acme-tls/1")
        assert.deepStrictEqual(Buffer.from(answer.certificate ?? []), Buffer.from(shown.der))
      }))

    it.live(`ends the connection without sending any data (${version})`, () =>
      Effect.gen(function*() {
        const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, {
          minVersion: version,
          maxVersion: version
        })
        yield* meet(responder.port)
        yield* Effect.promise(() => responder.closed)
        assert.deepStrictEqual(responder.failures, [])
        assert.deepStrictEqual(responder.handshakes, [
          { serverName: "a.example", protocol: "acme-tls/1", version, resumed: false }
        ])
        assert.deepStrictEqual(responder.received, [0])
      }))

    it.live(`never resumes a session that the server offers (${version})`, () =>
      Effect.gen(function*() {
        const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, {
          minVersion: version,
          maxVersion: version
        })
        for (let time = 0; time < 3; time++) yield* meet(responder.port)
        assert.lengthOf(responder.offers, 3)
        for (const offered of responder.offers) assert.notInclude(offered, preSharedKey)
        assert.notInclude(responder.handshakes.map(({ resumed }) => resumed), true)
      }))
  }

  it.live("of the test server resumes a session if a client offers one", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, { maxVersion: "TLSv1.2" })
      const shake = (session?: Buffer) =>
        Effect.callback<Tls.TLSSocket>((resume) => {
          const socket: Tls.TLSSocket = Tls.connect({
            host: "127.0.0.1",
            port: responder.port,
            servername: "a.example",
            ALPNProtocols: ["acme-tls/1"],
            rejectUnauthorized: false,
            ...session === undefined ? {} : { session }
          }, () => resume(Effect.succeed(socket)))
        })
      const first = yield* shake()
      const second = yield* shake(first.getSession())
      assert.isTrue(second.isSessionReused())
      first.destroy()
      second.destroy()
    }))

  it.live("returns the certificate for the requested name", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({
        "a.example": shownFor("a.example"),
        "b.example": shownFor("b.example")
      })
      for (const name of ["a.example", "b.example"]) {
        const { certificate } = yield* meet(responder.port, { name })
        assert.deepStrictEqual(Buffer.from(certificate ?? []), Buffer.from(responder.shown.get(name)?.der ?? []))
      }
    }))

  it.live("returns no protocol if the server does not use ALPN", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, { protocols: [] })
      assert.isUndefined((yield* meet(responder.port)).protocol)
    }))

  it.live("fails if the server offers only http/1.1", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, { protocols: ["http/1.1"] })
      const failure = yield* Effect.flip(meet(responder.port))
      assert.strictEqual(failure._tag, "TlsFailed")
      assert.match(failure.detail, /no application protocol/)
    }))

  it.live("fails if the server offers only TLS 1.1", () =>
    Effect.gen(function*() {
      const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const
      const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, old)
      const failure = yield* Effect.flip(meet(responder.port))
      assert.strictEqual(failure._tag, "TlsFailed")
      assert.match(failure.detail, /alert protocol version/)
      // The test server does speak TLS 1.1 with clients that want it.
      const spoken = yield* Effect.callback<string | null>((resume) => {
        const socket = Tls.connect({
          ...old,
          host: "127.0.0.1",
          port: responder.port,
          servername: "a.example",
          ALPNProtocols: ["acme-tls/1"],
          rejectUnauthorized: false
        }, () => {
          resume(Effect.succeed(socket.getProtocol()))
          socket.destroy()
        })
      })
      assert.strictEqual(spoken, "TLSv1.1")
    }))

  it.live("fails if the server has no certificate for the name", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({})
      assert.strictEqual((yield* Effect.flip(meet(responder.port)))._tag, "TlsFailed")
    }))

  /** Returns a validation certificate with an extension of `octets` octets. */
  const large = (octets: number): Shown => {
    const extensions = [ext("1.3.6.1.4.1.99999.1", Buffer.alloc(octets))]
    return { key: ecKey, der: validationCertificate({ name: "a.example", keyAuthorization, extensions }) }
  }

  it.live("fails before it has read a certificate of more than 16 KB", () =>
    Effect.gen(function*() {
      const small = yield* alpnResponder({ "a.example": large(12_000) })
      assert.isAbove((yield* meet(small.port)).certificate?.length ?? 0, 12_000)
      for (const octets of [17_000, 1_000_000]) {
        const responder = yield* alpnResponder({ "a.example": large(octets) })
        const failure = yield* Effect.flip(meet(responder.port))
        assert.strictEqual(failure._tag, "TlsFailed")
        assert.strictEqual(failure.detail, "more than 16384 octets before the end of the handshake")
        yield* Effect.promise(() => responder.closed)
      }
    }))

  it.live("fails if the server does not speak TLS", () =>
    Effect.gen(function*() {
      const server = yield* rawServer(() => {}, { greeting: "220 mail.example ESMTP\r\n" })
      assert.strictEqual((yield* Effect.flip(meet(server.port)))._tag, "TlsFailed")
    }))

  for (const way of ["end", "resetAndDestroy"] as const) {
    it.live(`fails if the connection is ended by ${way} before any answer`, () =>
      Effect.gen(function*() {
        const port = yield* droppingPort(way)
        assert.strictEqual((yield* Effect.flip(meet(port)))._tag, "TlsFailed")
      }))
  }

  it.live("is ended by an interruption, which destroys its socket", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({}, { hold: new Promise(() => {}) })
      const fiber = yield* Effect.forkChild(meet(responder.port))
      yield* Effect.promise(() => responder.asked)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => responder.closed)
    }))
})

describe("the connection", () => {
  it.live("fails with ConnectFailed at a closed port", () =>
    Effect.gen(function*() {
      const { port } = yield* Effect.scoped(alpnResponder({}))
      assert.strictEqual((yield* Effect.flip(meet(port)))._tag, "ConnectFailed")
    }))

  it.effect("has a time limit that does not apply to the handshake", () =>
    Effect.gen(function*() {
      let release = () => {}
      const hold = new Promise<void>((resolve) => {
        release = resolve
      })
      const responder = yield* alpnResponder({ "a.example": shownFor("a.example") }, { hold })
      const fiber = yield* Effect.forkChild(meet(responder.port, { connectMillis: 20 }))
      yield* Effect.promise(() => responder.asked)
      yield* TestClock.adjust(1000)
      release()
      assert.strictEqual((yield* Fiber.join(fiber)).protocol, "acme-tls/1")
    }))
})

it.effect("a scripted AlpnPeer answers from its script", () =>
  Effect.gen(function*() {
    const peer = yield* AlpnPeer
    const request = { address: loopback, connectMillis: undefined, name: "a.example", protocol: "acme-tls/1" }
    assert.strictEqual((yield* peer.meet({ ...request, port: 1 })).protocol, "acme-tls/1")
    assert.strictEqual((yield* Effect.flip(peer.meet({ ...request, port: 2 })))._tag, "ConnectFailed")
  }).pipe(Effect.provide(AlpnPeer.layerScripted(({ port, protocol }) =>
    port === 1
      ? Effect.succeed({ protocol, certificate: undefined })
      : new ConnectFailed({ detail: "refused" })
  ))))

/** A port whose connections end before anything is sent. */
const droppingPort = (way: "end" | "resetAndDestroy") =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer((socket) => socket.on("error", () => {}).once("data", () => socket[way]()))
        server.listen(0, "127.0.0.1")
        await once(server, "listening")
        return server
      }),
      (server) => Effect.promise(() => new Promise((done) => server.close(done)))
    ),
    (server) => (server.address() as AddressInfo).port
  )
