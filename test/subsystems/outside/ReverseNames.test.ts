import { it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, TestClock } from "effect"
import { assert, describe } from "vitest"
import { EventLog } from "../../../src/subsystems/log/EventLog.ts"
import type { Record } from "../../../src/subsystems/log/EventLog.ts"
import { ResolveFailed, Resolver } from "../../../src/subsystems/outside/Resolver.ts"
import { ReverseNames } from "../../../src/subsystems/outside/ReverseNames.ts"
import { eventsOf } from "../../support/Graph.ts"

const settings = { reverse_dns: true, reverse_dns_timeout_ms: 2000 }
const failed = new ResolveFailed({ name: "9.2.0.192.in-addr.arpa", code: "ESERVFAIL" })

const namesOf = (resolver: Layer.Layer<Resolver>, records: Array<Record>, more: Partial<typeof settings> = {}) =>
  Layer.merge(
    Layer.provide(ReverseNames.layer({ ...settings, ...more }), resolver),
    EventLog.layerMemory(records)
  )

const of = (ip: string | undefined) => Effect.flatMap(ReverseNames, (names) => names.of(ip))

/** A resolver whose server never answers, and how often it was asked. */
const silent = () => {
  const asked = { times: 0 }
  const layer = Layer.succeed(Resolver, {
    addresses: () => Effect.never,
    timedAddresses: () => Effect.never,
    pointers: () => {
      asked.times++
      return Effect.never
    },
    texts: () => Effect.never
  })
  return { asked, layer }
}

describe("the reverse name of a client", () => {
  it.effect("is the first of its names, none where it has none, and failure is no failure", () => {
    const records: Array<Record> = []
    const zone = { "192.0.2.7": ["web.example", "other.example"], "2001:db8::7": ["six.example"], "192.0.2.9": failed }
    return Effect.gen(function*() {
      assert.strictEqual(yield* of("192.0.2.7"), "web.example")
      assert.strictEqual(yield* of("::ffff:192.0.2.7"), "web.example")
      assert.strictEqual(yield* of("2001:db8::7"), "six.example")
      assert.isUndefined(yield* of("192.0.2.8"))
      assert.isUndefined(yield* of("no address"))
      assert.isUndefined(yield* of(undefined))
      assert.deepStrictEqual(eventsOf(records), [])
      assert.isUndefined(yield* of("192.0.2.9"))
      assert.deepStrictEqual(eventsOf(records), ["audit_reverse_dns_failed"])
    }).pipe(Effect.provide(namesOf(Resolver.layerStatic({}, {}, zone), records)))
  })

  it.effect("is cut at what the column holds", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* of("192.0.2.7"))?.length, 253)
    }).pipe(Effect.provide(namesOf(Resolver.layerStatic({}, {}, { "192.0.2.7": ["a".repeat(400)] }), []))))

  it.effect("is not asked for on the machine itself, nor where it is turned off", () => {
    const { asked, layer } = silent()
    return Effect.gen(function*() {
      assert.isUndefined(yield* of("127.0.0.1"))
      assert.isUndefined(yield* of("127.9.9.9"))
      assert.isUndefined(yield* of("::1"))
      assert.isUndefined(yield* Effect.provide(of("192.0.2.7"), namesOf(layer, [], { reverse_dns: false })))
      assert.strictEqual(asked.times, 0)
    }).pipe(Effect.provide(namesOf(layer, [])))
  })

  it.effect("is waited for no longer than the timeout, and then not asked for again for a minute", () => {
    const { asked, layer } = silent()
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const first = yield* Effect.fork(of("192.0.2.7"))
      yield* TestClock.adjust("1999 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(first)))
      yield* TestClock.adjust("1 millis")
      assert.isUndefined(yield* Fiber.join(first))
      assert.deepStrictEqual(eventsOf(records), ["audit_reverse_dns_timeout"])
      assert.isUndefined(yield* of("192.0.2.7"))
      assert.strictEqual(asked.times, 1)
      yield* Effect.fork(of("192.0.2.8"))
      yield* Effect.yieldNow()
      assert.strictEqual(asked.times, 2, "another address is asked for")
      yield* TestClock.adjust("60 seconds")
      yield* Effect.fork(of("192.0.2.7"))
      yield* Effect.yieldNow()
      assert.strictEqual(asked.times, 3)
    }).pipe(Effect.provide(namesOf(layer, records)))
  })
})
