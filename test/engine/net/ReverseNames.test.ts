import { it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { ResolveFailed, Resolver } from "../../../src/engine/net/Resolver.ts"
import { ReverseNames } from "../../../src/engine/net/ReverseNames.ts"

const failed = new ResolveFailed({ name: "9.2.0.192.in-addr.arpa", code: "ESERVFAIL" })

/** The reverse names that a resolver finds. `unanswered` collects the look-ups that it did not answer. */
const namesOf = (resolver: Layer.Layer<Resolver>, unanswered: Array<string> = []) =>
  Layer.provide(
    ReverseNames.layer({
      timeoutMillis: 2000,
      unanswered: (address, isLate) =>
        Effect.sync(() => void unanswered.push(`${address} ${isLate ? "late" : "failed"}`))
    }),
    resolver
  )

const of = (ip: string | undefined) => Effect.flatMap(ReverseNames, (names) => names.of(ip))
const look = (ip: string) => Effect.flatMap(ReverseNames, (names) => names.look(ip))
const found = (ip: string) => Effect.andThen(look(ip), of(ip))

/** A resolver whose server never answers, and the number of queries. */
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
  it.effect("is the first of its names, and is absent if it has none or if the look-up fails", () => {
    const unanswered: Array<string> = []
    const zone = { "192.0.2.7": ["web.example", "other.example"], "2001:db8::7": ["six.example"], "192.0.2.9": failed }
    return Effect.gen(function*() {
      assert.isUndefined(yield* of("192.0.2.7"), "not looked for yet")
      assert.strictEqual(yield* found("192.0.2.7"), "web.example")
      assert.strictEqual(yield* of("::ffff:192.0.2.7"), "web.example")
      assert.strictEqual(yield* found("2001:db8::7"), "six.example")
      assert.isUndefined(yield* found("192.0.2.8"))
      assert.isUndefined(yield* found("no address"))
      assert.isUndefined(yield* of(undefined))
      assert.deepStrictEqual(unanswered, [])
      assert.isUndefined(yield* found("192.0.2.9"))
      assert.deepStrictEqual(unanswered, ["192.0.2.9 failed"])
    }).pipe(Effect.provide(namesOf(Resolver.layerStatic({}, {}, zone), unanswered)))
  })

  it.effect("is cut to the length of the database column", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* found("192.0.2.7"))?.length, 253)
    }).pipe(Effect.provide(namesOf(Resolver.layerStatic({}, {}, { "192.0.2.7": ["a".repeat(400)] })))))

  it.effect("is not looked up for this machine itself or if look-ups are turned off", () => {
    const { asked, layer } = silent()
    return Effect.gen(function*() {
      assert.isUndefined(yield* found("127.0.0.1"))
      assert.isUndefined(yield* found("127.9.9.9"))
      assert.isUndefined(yield* found("::1"))
      assert.isUndefined(yield* Effect.provide(found("192.0.2.7"), ReverseNames.layerNone))
      assert.strictEqual(asked.times, 0)
    }).pipe(Effect.provide(namesOf(layer)))
  })

  it.effect("is awaited no longer than the timeout, and is then not looked up again for a minute", () => {
    const { asked, layer } = silent()
    const unanswered: Array<string> = []
    return Effect.gen(function*() {
      const first = yield* Effect.forkChild(found("192.0.2.7"))
      yield* TestClock.adjust("1999 millis")
      assert.isTrue(Option.isNone(yield* Effect.sync(() => Option.fromUndefinedOr(first.pollUnsafe()))))
      yield* TestClock.adjust("1 millis")
      assert.isUndefined(yield* Fiber.join(first))
      assert.deepStrictEqual(unanswered, ["192.0.2.7 late"])
      assert.isUndefined(yield* found("192.0.2.7"))
      assert.strictEqual(asked.times, 1)
      yield* Effect.forkChild(look("192.0.2.8"))
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(asked.times, 2, "another address is asked for")
      yield* TestClock.adjust("60 seconds")
      yield* Effect.forkChild(look("192.0.2.7"))
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(asked.times, 3)
    }).pipe(Effect.provide(namesOf(layer, unanswered)))
  })

  it.effect("is looked up once for all requests of some minutes", () => {
    let asked = 0
    const pointers = () => Effect.as(Effect.delay(Effect.sync(() => asked++), "1 second"), ["web.example"])
    const { layer } = silent()
    const slow = Layer.effect(
      Resolver,
      Effect.map(Layer.build(layer), (context) => ({ ...Context.get(context, Resolver), pointers }))
    )
    return Effect.gen(function*() {
      const [leaving, ...staying] = yield* Effect.all([1, 2, 3].map(() => Effect.forkChild(found("192.0.2.7"))))
      yield* TestClock.adjust("500 millis")
      if (leaving !== undefined) yield* Fiber.interrupt(leaving)
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(yield* Fiber.joinAll(staying), ["web.example", "web.example"])
      yield* TestClock.adjust("4 minutes")
      assert.strictEqual(yield* found("192.0.2.7"), "web.example")
      assert.strictEqual(asked, 1)
      yield* TestClock.adjust("61 seconds")
      const again = yield* Effect.forkChild(found("192.0.2.7"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(again), "web.example")
      assert.strictEqual(asked, 2)
    }).pipe(Effect.provide(namesOf(slow)))
  })

  it.effect("is not awaited while as many look-ups as permitted are in progress", () => {
    const { asked, layer } = silent()
    return Effect.gen(function*() {
      yield* Effect.forEach(Array.from({ length: 64 }), (_, at) => Effect.forkChild(look(`192.0.2.${at}`)))
      yield* TestClock.adjust("1 millis")
      yield* look("198.51.100.1")
      assert.strictEqual(asked.times, 64)
    }).pipe(Effect.provide(namesOf(layer)))
  })
})
