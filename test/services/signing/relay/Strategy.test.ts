import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { keyAuthorizationDigest } from "../../../../src/crypto/jose/KeyAuthorization.ts"
import type { DnsUpdate } from "../../../../src/engine/net/DnsUpdate.ts"
import { DnsUpdateFailed } from "../../../../src/engine/net/DnsUpdate.ts"
import type { Record as LogRecord } from "../../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../../src/engine/telemetry/EventLog.ts"
import type { Dns01Settings, Strategy, UpstreamChallenge } from "../../../../src/services/signing/relay/Strategy.ts"
import { bypass, dns01, http01 } from "../../../../src/services/signing/relay/Strategy.ts"
import { UpstreamUnavailable } from "../../../../src/services/signing/relay/UpstreamFailed.ts"
import type { Json } from "../../../support/ScriptedUpstream.ts"
import { authorization, challenge, failureOf, order, play } from "../../../support/ScriptedUpstream.ts"

/* Tests how each strategy of the relay proves names (docs/configure/signers.md, "An upstream ACME CA"). */

const settings = (more: Partial<Dns01Settings> = {}): Dns01Settings => ({
  server: { host: "192.0.2.1", port: 53, key: { name: "k.", algorithm: "hmac-sha256", secret: Buffer.from("x") } },
  zone: "example.",
  alias: "",
  delaySeconds: 0,
  ...more
})

/** Makes the strategies, and records what they do outside of the service. */
const strategies = (more: Partial<Dns01Settings> = {}, isTakenOver = Effect.succeed(false)) => {
  const did: Array<string> = []
  const note = (what: string) => Effect.sync(() => void did.push(what))
  const updates: DnsUpdate["Service"] = { update: (_, { action, name, value }) => note(`${action} ${name} ${value}`) }
  return {
    did,
    updates,
    bypass,
    http01: http01({
      put: (token, keyAuthorization) => note(`put ${token} ${keyAuthorization.split(".")[0] ?? ""}`),
      remove: (token) => note(`remove ${token}`)
    }, isTakenOver),
    dns01: dns01(updates, settings(more), isTakenOver)
  }
}

const offers = (...types: ReadonlyArray<string>): Json =>
  authorization("pending", { challenges: types.map((type) => ({ ...challenge, type })) })
const offered = (...types: ReadonlyArray<string>): ReadonlyArray<UpstreamChallenge> =>
  types.map((type) => ({ type, url: "", token: "token", status: "pending" }))

const named = ["bypass", "http01", "dns01"] as const

describe("names that the upstream has already authorized", () => {
  for (const name of named) {
    it.effect(`cause no publication and no trigger, with ${name}`, () =>
      Effect.gen(function*() {
        for (
          const paths of [
            { "/authz": [{ json: authorization("valid") }] },
            {
              "/order": [{ status: 201, json: order("ready"), headers: { location: "https://ca.example/order/1" } }],
              "/order/1": [{
                json: order("valid", { certificate: "https://ca.example/cert" })
              }]
            }
          ]
        ) {
          const all = strategies()
          const { ended, posts } = yield* play(paths, { strategy: all[name] })
          assert.strictEqual(ended._tag, "Success")
          assert.deepStrictEqual(all.did, [])
          assert.notInclude(posts, "/chall")
        }
      }))
  }
})

describe("a strategy", () => {
  for (
    const [name, type, others] of [
      ["http01", "http-01", ["dns-01", "tls-alpn-01"]],
      ["dns01", "dns-01", ["http-01", "tls-alpn-01"]]
    ] as const
  ) {
    it.effect(`answers ${type} at any position and no other challenge if it is ${name}`, () =>
      Effect.gen(function*() {
        const choose = (...types: ReadonlyArray<string>) =>
          strategies()[name].choose("a.example", false, offered(...types))
        assert.strictEqual((yield* choose(...others, type)).type, type)
        for (const types of [[], others, [type.toUpperCase()]]) {
          assert.deepInclude(yield* Effect.flip(choose(...types)), {
            _tag: "UpstreamRefused",
            detail: `the upstream offers no ${type} for a.example, and challenge_strategy is ${name}`
          })
        }
        const { failure, posts } = yield* failureOf({ "/authz": [{ json: offers(...others) }] }, {
          strategy: strategies()[name]
        })
        assert.include(failure.detail, `offers no ${type}`)
        assert.notInclude(posts, "/chall")
      }))
  }

  it.effect("answers any challenge if it is bypass, and prefers the types that another strategy can prove", () =>
    Effect.gen(function*() {
      const choose = (...types: ReadonlyArray<string>) => bypass.choose("a.example", false, offered(...types))
      assert.strictEqual((yield* choose("future-01", "tls-alpn-01", "dns-01", "http-01")).type, "http-01")
      assert.strictEqual((yield* choose("future-01", "dns-01")).type, "dns-01")
      assert.strictEqual((yield* choose("future-01", "future-02")).type, "future-01")
      assert.strictEqual((yield* Effect.flip(choose())).detail, "the upstream offers no challenge for a.example")
      const all = strategies()
      const { ended, posts } = yield* play({}, { strategy: all.bypass })
      assert.deepStrictEqual([ended._tag, all.did], ["Success", []])
      assert.include(posts, "/chall")
    }))

  it.effect("names another strategy for a wildcard if it is http01, and proves the wildcard at its base name if it is dns01", () =>
    Effect.gen(function*() {
      const paths = {
        "/order": [{
          status: 201,
          json: order("pending", { identifiers: [{ type: "dns", value: "*.a.example" }] }),
          headers: { location: "https://ca.example/order/1" }
        }],
        "/authz": [{ json: { ...offers("http-01", "dns-01"), wildcard: true } }, { json: authorization("valid") }]
      }
      const wanted = { names: ["*.a.example"], deadline: 3_600_000 }
      const one = strategies()
      const { failure } = yield* failureOf(paths, { ...wanted, strategy: one.http01 })
      assert.strictEqual(failure.detail, "http01 cannot prove *.a.example; a wildcard needs challenge_strategy dns01")
      assert.deepStrictEqual(one.did, [])
      const two = strategies()
      assert.strictEqual((yield* play(paths, { ...wanted, strategy: two.dns01 })).ended._tag, "Success")
      assert.match(two.did[0] ?? "", /^add _acme-challenge\.a\.example /)
    }))
})

describe("a published proof", () => {
  for (
    const [name, put, remove] of [
      ["http01", /^put (token) token$/, /^remove (token)$/],
      ["dns01", /^add _acme-challenge\.a\.example ([\w-]{43})$/, /^delete _acme-challenge\.a\.example ([\w-]{43})$/]
    ] as const
  ) {
    it.effect(`exists before the upstream is triggered, and is removed when the upstream has checked, with ${name}`, () =>
      Effect.gen(function*() {
        const all = strategies()
        const strategy: Strategy = {
          ...all[name],
          prepare: (proof) =>
            Effect.tap(all[name].prepare(proof), () => Effect.sync(() => void all.did.push("told to look")))
        }
        const paths = { "/authz": [{ json: offers("http-01", "dns-01") }, { json: authorization("valid") }] }
        assert.strictEqual((yield* play(paths, { strategy })).ended._tag, "Success")
        const [first = "", second, third = "", ...more] = all.did
        assert.deepStrictEqual([second, more], ["told to look", []])
        assert.match(first, put)
        assert.strictEqual(remove.exec(third)?.[1], put.exec(first)?.[1])
      }))
  }

  for (const name of ["http01", "dns01"] as const) {
    it.effect(`is removed when the attempt is interrupted, with ${name}`, () =>
      Effect.gen(function*() {
        const all = strategies()
        const there = yield* Deferred.make<void>()
        const attempt = yield* Effect.forkChild(Effect.scoped(
          all[name].prepare({ name: "a.example", isWildcard: false, token: "token", keyAuthorization: "token.print" })
            .pipe(
              Effect.andThen(Deferred.succeed(there, undefined)),
              Effect.andThen(Effect.never)
            )
        ))
        yield* Deferred.await(there)
        assert.lengthOf(all.did, 1)
        yield* Fiber.interrupt(attempt)
        assert.lengthOf(all.did, 2)
        assert.match(all.did[1] ?? "", /^(?:remove|delete) /)
      }))

    it.effect(`stays when another attempt has taken over the order, with ${name}`, () =>
      Effect.gen(function*() {
        const all = strategies({}, Effect.succeed(true))
        yield* Effect.scoped(
          all[name].prepare({ name: "a.example", isWildcard: false, token: "token", keyAuthorization: "token.print" })
        )
        assert.lengthOf(all.did, 1)
        assert.match(all.did[0] ?? "", /^(?:put|add) /)
      }))
  }
})

describe("the record of dns01", () => {
  const proof = { name: "a.example", isWildcard: false, token: "token", keyAuthorization: "token.print" }
  const value = keyAuthorizationDigest("token.print").toString("base64url")

  it.effect("is made at the alias, if there is one, for every name", () =>
    Effect.gen(function*() {
      const all = strategies({ alias: "acme.Example" })
      for (const name of ["a.example", "b.test"]) yield* Effect.scoped(all.dns01.prepare({ ...proof, name }))
      assert.deepStrictEqual(
        all.did,
        ["add", "delete", "add", "delete"].map((action) => `${action} _acme-challenge.acme.Example ${value}`)
      )
    }))

  it.effect("is added and removed separately for two orders that share a name", () =>
    Effect.gen(function*() {
      const all = strategies({ alias: "acme.example" })
      const there = yield* Deferred.make<void>()
      const other = keyAuthorizationDigest("other.print").toString("base64url")
      const first = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(all.dns01.prepare(proof), Deferred.await(there)))
      )
      yield* Effect.yieldNow
      yield* Effect.scoped(all.dns01.prepare({ ...proof, keyAuthorization: "other.print" }))
      yield* Deferred.succeed(there, undefined)
      yield* Fiber.join(first)
      assert.deepStrictEqual(all.did.map((one) => one.replace("_acme-challenge.acme.example ", "")), [
        `add ${value}`,
        `add ${other}`,
        `delete ${other}`,
        `delete ${value}`
      ])
    }))

  it.effect("is refused before anything is sent if it is outside the zone", () =>
    Effect.gen(function*() {
      for (
        const [more, name] of [
          [{}, "a.test"],
          [{}, "a.notexample"],
          [{ alias: "acme.test" }, "a.example"]
        ] as const
      ) {
        const all = strategies(more)
        const refused = yield* Effect.flip(Effect.scoped(all.dns01.prepare({ ...proof, name })))
        assert.match(refused.detail, /^_acme-challenge\.\S+ is not in the zone example\.$/)
        assert.strictEqual(refused._tag, "UpstreamRefused")
        assert.deepStrictEqual(all.did, [])
      }
    }))

  it.effect("is followed by the configured wait", () =>
    Effect.gen(function*() {
      const all = strategies({ delaySeconds: 30 })
      const preparing = yield* Effect.forkChild(
        Effect.scoped(Effect.tap(all.dns01.prepare(proof), () => Effect.sync(() => void all.did.push("made"))))
      )
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(all.did, [`add _acme-challenge.a.example ${value}`])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(preparing)
      assert.strictEqual(all.did[1], "made")
    }))

  it.effect("is not removed if the server refused it with a signed answer, because it was never made", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const update: DnsUpdate["Service"]["update"] = (_, { action }) =>
        Effect.suspend(() => {
          asked.push(action)
          return new DnsUpdateFailed({ detail: "the server refused the update: REFUSED", isRefused: true })
        })
      const strategy = dns01({ update }, settings(), Effect.succeed(false))
      yield* Effect.flip(Effect.scoped(strategy.prepare(proof)))
      assert.deepStrictEqual(asked, ["add"])
    }))

  it.effect("is removed even if the answer to its update was not signed, and the attempt fails", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const strategy = dns01(
        {
          update: (_, { action }) =>
            Effect.suspend(() => {
              asked.push(action)
              return new DnsUpdateFailed({ detail: "BADSIG: the server has another secret for the key" })
            })
        },
        settings(),
        Effect.succeed(false)
      )
      const records: Array<LogRecord> = []
      const failed = yield* Effect.flip(Effect.scoped(strategy.prepare(proof))).pipe(
        Effect.provide(layerMemory(records))
      )
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
        ["upstream_record_left", {
          identifier: "_acme-challenge.a.example",
          error: "BADSIG: the server has another secret for the key"
        }]
      ])
      assert.instanceOf(failed, UpstreamUnavailable)
      assert.strictEqual(
        failed.detail,
        "the TXT record _acme-challenge.a.example was not made: BADSIG: the server has another secret for the key"
      )
      assert.deepStrictEqual(asked, ["add", "delete"])
    }))
})
