import { it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import type { TsigAlgorithm } from "../../../src/engine/net/dns/Tsig.ts"
import type { TxtChange } from "../../../src/engine/net/dns/Update.ts"
import type { UpdateServer } from "../../../src/engine/net/DnsUpdate.ts"
import { DnsUpdate } from "../../../src/engine/net/DnsUpdate.ts"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import type { DnsUpdateServer, UpdateFault } from "../../support/DnsUpdateServer.ts"
import { startDnsUpdateServer } from "../../support/DnsUpdateServer.ts"

/*
 * Sends signed updates to a DNS server that was written separately from the client and checks them (RFC 2136, RFC
 * 8945).
 */

const secret = Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")
const algorithms = ["hmac-sha256", "hmac-sha384", "hmac-sha512"] as const

const zoneServer = Effect.acquireRelease(
  Effect.promise(() =>
    startDnsUpdateServer("example.org.", algorithms.map((algorithm) => ({ name: "acme-key.", algorithm, secret })))
  ),
  ({ stop }) => Effect.promise(stop)
)

const keyOf = (
  algorithm: TsigAlgorithm = "hmac-sha256",
  more: Partial<UpdateServer["key"]> = {}
): UpdateServer["key"] => ({
  name: "acme-key.",
  algorithm,
  secret: Buffer.from(secret, "base64"),
  ...more
})

const change = (more: Partial<TxtChange> = {}): TxtChange => ({
  action: "add",
  zone: "example.org.",
  name: "_acme-challenge.a.example.org",
  value: "a-value",
  ...more
})

const update = (server: Pick<UpdateServer, "port"> & Partial<UpdateServer>, of: TxtChange = change()) =>
  Effect.flatMap(DnsUpdate, (client) => client.update({ host: "127.0.0.1", key: keyOf(), ...server }, of)).pipe(
    Effect.provide(
      Layer.provide(
        DnsUpdate.layer,
        Layer.merge(
          Entropy.layer,
          Resolver.layerStatic({ "ns.example": ["127.0.0.1"], "two.example": ["127.0.0.2", "127.0.0.1"] })
        )
      )
    )
  )

const detailOf = (...parameters: Parameters<typeof update>) =>
  Effect.map(Effect.flip(update(...parameters)), ({ detail }) => detail)

describe("a signed update", () => {
  for (const algorithm of algorithms) {
    it.live(`is accepted by the server with ${algorithm}`, () =>
      Effect.gen(function*() {
        const server = yield* zoneServer
        yield* update({ port: server.port, key: keyOf(algorithm) })
        assert.deepStrictEqual(server.made, [
          { transport: "udp", action: "add", name: "_acme-challenge.a.example.org", value: "a-value" }
        ])
      }))
  }

  it.live("adds and deletes single values, and keeps all other records of the name", () =>
    Effect.gen(function*() {
      const server = yield* zoneServer
      const name = "_acme-challenge.a.example.org"
      server.texts.set(name, ["somebody's"])
      for (const value of ["one", "two"]) yield* update(server, change({ value }))
      assert.deepStrictEqual(server.texts.get(name), ["somebody's", "one", "two"])
      yield* update(server, change({ value: "one", action: "delete" }))
      assert.deepStrictEqual(server.texts.get(name), ["somebody's", "two"])
      yield* update(server, change({ value: "absent", action: "delete" }))
      assert.deepStrictEqual(server.texts.get(name), ["somebody's", "two"])
    }))

  it.live("may go to a server that is given by its name", () =>
    Effect.gen(function*() {
      const server = yield* zoneServer
      const value = "x".repeat(600)
      yield* update(
        { port: server.port, host: "ns.example", key: keyOf("hmac-sha256", { name: "ACME-Key" }) },
        change({ value })
      )
      assert.deepStrictEqual(server.made.map((one) => one.value), [value])
      assert.strictEqual(
        yield* detailOf({ port: server.port, host: "nowhere.example" }),
        "nowhere.example has no address"
      )
    }))

  it.live("is sent to the next address of the server if one address does not answer", () =>
    Effect.gen(function*() {
      const server = yield* zoneServer
      yield* update({ port: server.port, host: "two.example", key: keyOf() })
      assert.lengthOf(server.made, 1)
    }))

  it.live("is sent again over TCP if the answer is truncated", () =>
    Effect.gen(function*() {
      const server = yield* zoneServer
      server.truncate = true
      yield* update(server)
      assert.deepStrictEqual(server.made.map(({ transport }) => transport), ["tcp"])
    }))

  for (
    const [rcode, name] of [[1, "FORMERR"], [2, "SERVFAIL"], [5, "REFUSED"], [9, "NOTAUTH"], [10, "NOTZONE"], [
      15,
      "RCODE 15"
    ]] as const
  ) {
    it.live(`fails with the code ${name} if the server refuses the update with it`, () =>
      Effect.gen(function*() {
        const server = yield* zoneServer
        server.refuse = rcode
        const error = yield* Effect.flip(update(server))
        assert.match(error.detail, new RegExp(`^the server refused the update: ${name}(?:; the .*)?$`))
        assert.isTrue(error.isRefused)
        server.fault = "unsigned"
        const unsigned = yield* Effect.flip(update(server))
        assert.strictEqual(unsigned.detail, `the server refused the update: ${name}; its answer is not signed`)
        assert.isUndefined(unsigned.isRefused, "anybody may have sent that")
      }))
  }

  it.live("is not sent for a name that DNS cannot encode", () =>
    Effect.gen(function*() {
      const server = yield* zoneServer
      for (const name of ["a..example.org", `${"x".repeat(64)}.example.org`, `${"a.".repeat(130)}example.org`]) {
        assert.match(yield* detailOf(server, change({ name })), /label|255/)
      }
      assert.deepStrictEqual(server.made, [])
    }))
})

/** The messages about answers that cannot be trusted. */
const disbelieved: ReadonlyArray<readonly [fault: UpdateFault, says: RegExp]> = [
  ["unsigned", /^the answer is not signed$/],
  ["badkey", /^BADKEY: the server does not know the key acme-key\. with hmac-sha256$/],
  ["badsig", /^BADSIG: the server has another secret for the key acme-key\.$/],
  ["badtime", /^BADTIME: the server's clock differs by (?:899|900|901) seconds$/],
  ["skewed", /^the answer was signed at another time/],
  ["replayed", /^the signature of the answer does not verify$/],
  ["tampered", /^the signature of the answer does not verify$/],
  ["other-key", /^the answer is signed with another key or algorithm$/],
  ["other-algorithm", /^the answer is signed with another key or algorithm$/],
  ["short-mac", /^the signature of the answer does not verify$/],
  ["trailing", /^the message has octets after its end$/],
  ["garbage", /^the message /]
]

describe("an answer", () => {
  for (const transport of ["UDP", "TCP"]) {
    for (const [fault, says] of disbelieved) {
      it.live(`is rejected with a message that says why if it is ${fault} over ${transport}`, () =>
        Effect.gen(function*() {
          const server = yield* zoneServer
          server.truncate = transport === "TCP"
          if (fault === "replayed") yield* update(server, change({ value: "before" }))
          server.fault = fault
          assert.match(yield* detailOf(server), says)
        }))
    }
  }

  for (const fault of ["other-sender", "other-id", "silent"] as const) {
    it.live(`is ignored if it is ${fault}, until the time of the client is over`, () =>
      Effect.gen(function*() {
        const server = yield* zoneServer
        server.fault = fault
        assert.strictEqual(yield* detailOf(server), "no answer over UDP within 6000 ms")
        assert.isAtLeast(server.made.length, fault === "silent" ? 0 : 3, "sent again")
      }))
  }

  it.live("explains that the server does not know the key, or has another secret for it", () =>
    Effect.gen(function*() {
      const server = yield* zoneServer
      assert.match(yield* detailOf({ port: server.port, key: keyOf("hmac-sha256", { name: "other." }) }), /^BADKEY/)
      const wrong = keyOf("hmac-sha256", { secret: Buffer.from("swordfish") })
      assert.match(yield* detailOf({ port: server.port, key: wrong }), /^BADSIG/)
      assert.notInclude(yield* detailOf({ port: server.port, key: wrong }), "swordfish")
    }))

  it.live("explains by how much a clock is wrong", () =>
    Effect.gen(function*() {
      const server: DnsUpdateServer = yield* zoneServer
      const clock = yield* Clock.Clock
      const late: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - 3_600_000,
        currentTimeMillis: Effect.map(clock.currentTimeMillis, (millis) => millis - 3_600_000)
      })
      assert.match(
        yield* Effect.provideService(detailOf(server), Clock.Clock, late),
        /^BADTIME: the server's clock differs by \d+ seconds$/
      )
    }))

  it.live("is an error if it never comes because there is no server", () =>
    Effect.gen(function*() {
      const { port, stop } = yield* Effect.promise(() => startDnsUpdateServer("example.org.", []))
      yield* Effect.promise(stop)
      assert.match(yield* detailOf({ port }), /ECONNREFUSED/)
    }))
})
