import { describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Result } from "effect"
import { gzipSync } from "node:zlib"
import { assert } from "vitest"
import { normalizeIdentifier } from "../../../src/domain/Identifier.ts"
import { AlpnPeer } from "../../../src/engine/net/AlpnPeer.ts"
import { HttpGet } from "../../../src/engine/net/HttpGet.ts"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import type { ChallengePolicy } from "../../../src/services/validation/Attempt.ts"
import { Validator } from "../../../src/services/validation/Validator.ts"
import { dnsAnswerer } from "../../support/DnsAnswerer.ts"
import { expired, rawServer } from "../../support/RawServer.ts"

const keyAuthorization = "token.thumbprint"
const ok = (content: string | Buffer, headers = "") =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n${headers}\r\n`),
    Buffer.from(content)
  ])

/** Validates a.example, whose only address is 127.0.0.1, against real servers on these ports. */
const validate = (port: number, overrides: Partial<ChallengePolicy & ChallengePolicy["http_01"]> = {}) =>
  Effect.gen(function*() {
    const answerer = yield* dnsAnswerer({ zone: { "a.example": { A: ["127.0.0.1"] } } })
    const identifier = yield* Result.getOrThrow(Result.map(
      normalizeIdentifier("a.example", { dns01Enabled: false }),
      Effect.succeed
    ))
    const layer = Validator.layer().pipe(
      Layer.provide(Layer.mergeAll(Resolver.layer(answerer.address), HttpGet.layer("0.0.0"), AlpnPeer.layer()))
    )
    return yield* Effect.flatMap(Validator, (validator) =>
      validator.validate({
        type: "http-01",
        identifier,
        keyAuthorization,
        challenge: {
          timeout_ms: overrides.timeout_ms ?? 20_000,
          allow_loopback: true,
          denied_addresses: overrides.denied_addresses ?? [],
          allowed_addresses: [],
          http_01: {
            port,
            https_port: overrides.https_port ?? 1,
            follow_redirects: true,
            max_redirects: 5,
            max_response_bytes: 64
          },
          tls_alpn_01: { port: 1 }
        }
      })).pipe(
        Effect.match({
          onFailure: (failure) =>
            failure._tag === "ChallengeRefused"
              ? `${failure.error} ${failure.reason}: ${failure.detail}`
              : failure._tag,
          onSuccess: () => "valid"
        }),
        Effect.provide(layer)
      )
  })

describe("a validation over the network", () => {
  it.live("succeeds with the correct body", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.end(ok(`${keyAuthorization}\n`)))
      assert.strictEqual(yield* validate(server.port), "valid")
      assert.match(
        server.received[0] ?? "",
        /^GET \/\.well-known\/acme-challenge\/token HTTP\/1\.1\r\nHost: a\.example\r\n/
      )
    }))

  it.live("follows a redirect to https with an expired certificate", () =>
    Effect.gen(function*() {
      const tls = yield* rawServer((socket) => socket.end(ok(keyAuthorization)), { tls: expired })
      const server = yield* rawServer((socket) =>
        socket.end("HTTP/1.1 301 Moved\r\nLocation: https://a.example/there\r\n\r\n")
      )
      assert.strictEqual(yield* validate(server.port, { https_port: tls.port }), "valid")
      assert.deepStrictEqual(tls.serverNames, ["a.example"])
    }))

  it.live("gives the error unauthorized for a compressed body", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) =>
        socket.end(ok(gzipSync(keyAuthorization), "Content-Encoding: gzip\r\n"))
      )
      assert.strictEqual(
        yield* validate(server.port),
        "unauthorized body_mismatch: 36 bytes, not the key authorization"
      )
    }))

  it.live("gives the error unauthorized for a body that exceeds the limit because of spaces or other text", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.end(ok(`${keyAuthorization.padEnd(64)}junk`)))
      assert.strictEqual(yield* validate(server.port), "unauthorized body_too_large: more than 64 bytes")
    }))

  it.live("opens no connection to a denied address", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.end(ok(keyAuthorization)))
      assert.strictEqual(
        yield* validate(server.port, { denied_addresses: ["127.0.0.0/8"] }),
        "connection address_denied: every address of a.example is denied: 127.0.0.1 (127.0.0.0/8)"
      )
      assert.deepStrictEqual(server.received, [])
    }))

  it.live("fails within challenge.timeout_ms if the server makes no progress, and closes the connection", () =>
    Effect.gen(function*() {
      const server = yield* rawServer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\ntoken"))
      assert.strictEqual(
        yield* validate(server.port, { timeout_ms: 500 }),
        `connection timeout: no verdict within 500 ms: 127.0.0.1 port ${server.port} did not answer`
      )
      yield* Effect.promise(() => server.closed)
    }))

  it.live("closes its connection if the job is interrupted", () =>
    Effect.gen(function*() {
      const server = yield* rawServer(() => {})
      const fiber = yield* Effect.forkChild(validate(server.port))
      yield* Effect.promise(() => server.asked)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => server.closed)
    }))
})

describe("a check without a verdict in time", () => {
  /** The system's clock, whose wall time and monotonic time can be moved. */
  const movable = Effect.map(Clock.Clock, (real) => {
    const moved = { lifeMillis: 0, clockMillis: 0 }
    const clock: Clock.Clock = {
      ...real,
      sleep: (duration) => real.sleep(duration),
      currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + moved.clockMillis,
      currentTimeNanosUnsafe: () => real.currentTimeNanosUnsafe() + BigInt(moved.clockMillis) * 1_000_000n,
      monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe() + BigInt(moved.lifeMillis) * 1_000_000n
    }
    return { clock, moved }
  })

  it.live("is refused even if the clock was changed, and is postponed only if the process was stopped", () =>
    Effect.gen(function*() {
      for (
        const [by, verdict] of [
          [{}, "connection timeout"],
          [{ clockMillis: 3_600_000 }, "connection timeout"],
          [{ lifeMillis: 5000 }, "ChallengePostponed"]
        ] as const
      ) {
        const { clock, moved } = yield* movable
        const server = yield* rawServer(() => void Object.assign(moved, by))
        const waited = `: no verdict within 300 ms: 127.0.0.1 port ${server.port} did not answer`
        const validating = Effect.provideService(validate(server.port, { timeout_ms: 300 }), Clock.Clock, clock)
        assert.strictEqual(yield* validating, verdict === "connection timeout" ? verdict + waited : verdict)
      }
    }))
})
