import { it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import type { Resolver } from "node:dns"
import { assert, describe } from "vitest"
import type { Question } from "../../../src/engine/net/Lookup.ts"
import { makeLookups } from "../../../src/engine/net/Lookup.ts"

/** Makes look-ups without a server: each notes the object that would send its query, and ends with the given error. */
const noting = (version: () => string) => {
  const lookups = makeLookups(Option.none(), version)
  const used: Array<Resolver> = []
  const question = (error: string | undefined): Question<string> => (resolver, reply) => {
    used.push(resolver)
    reply(error === undefined ? null : Object.assign(new Error(error), { code: error }), undefined)
  }
  const look = (error?: string) => {
    const lookup = lookups([question(error)])
    return Effect.as(Effect.ensuring(lookup.until(() => false), Effect.sync(lookup.end)), lookup)
  }
  return { look, lookups, used }
}

describe("the object that sends the queries of a look-up", () => {
  it.effect("also sends the queries of the next look-up, unless the system's list of servers has changed", () =>
    Effect.gen(function*() {
      let version = "first"
      const { look, used } = noting(() => version)
      yield* look()
      yield* look("ENOTFOUND")
      yield* look()
      assert.strictEqual(new Set(used).size, 1)
      version = "second"
      yield* look()
      assert.strictEqual(new Set(used).size, 2)
      assert.notStrictEqual(used[0], used[3])
    }))

  it.effect("that was lent before a change is not lent after it", () =>
    Effect.gen(function*() {
      let version = "first"
      const { look, lookups, used } = noting(() => version)
      let end = () => {}
      const early = lookups([(resolver, reply) => {
        used.push(resolver)
        end = () => reply(null, [])
      }])
      const fiber = yield* Effect.forkChild(early.until(() => false), { startImmediately: true })
      version = "second"
      yield* look()
      end()
      yield* Fiber.join(fiber)
      early.end()
      yield* look()
      assert.notStrictEqual(used[0], used[1])
      assert.strictEqual(used[1], used[2])
    }))

  it.effect("is not used again after a failure", () =>
    Effect.gen(function*() {
      const { look, used } = noting(() => "")
      yield* look("ETIMEOUT")
      yield* look("ESERVFAIL")
      yield* look()
      assert.strictEqual(new Set(used).size, 3)
    }))

  it.effect("is replaced if the query is repeated after a refused connection", () =>
    Effect.gen(function*() {
      const { look, used } = noting(() => "")
      const { replies } = yield* look("ECONNREFUSED")
      assert.deepStrictEqual([replies[0]?.code, used.length, new Set(used).size], ["ECONNREFUSED", 2, 2])
    }))

  it.effect("sends nothing after the end of its look-up", () =>
    Effect.gen(function*() {
      const { lookups, used } = noting(() => "")
      let refuse = () => {}
      const lookup = lookups([(resolver, reply) => {
        used.push(resolver)
        refuse = () => reply(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }), undefined)
      }])
      const fiber = yield* Effect.forkChild(lookup.until(() => false), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      lookup.end()
      refuse()
      assert.lengthOf(used, 1)
    }))
})
