import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { accessWeight } from "../../../src/engine/http/Message.ts"
import { advisory, error, info, progress } from "../../../src/engine/telemetry/Declaration.ts"
import { emit, withinSpan } from "../../../src/engine/telemetry/EngineLog.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { EventLog, makeLog } from "../../../src/engine/telemetry/EventLog.ts"
import { eventsOf } from "../../support/Graph.ts"
import { useTests } from "../../support/UseTests.ts"

const { records, test } = useTests()

const fields = { oven: "text", loaves: "int", grains: "names" } as const

const events = {
  bread_baked: info("oven", "loaves"),
  oven_old: advisory("oven"),
  baking_started: progress("oven", "grains"),
  baking_failed: error("oven")
} as const

/** A log whose events differ from those of the engine. */
const bakery = makeLog<typeof fields, typeof events>(events)

describe("a record", () => {
  test("has the declared level and outcome of its event, and the time of its fiber", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_234)
      yield* bakery.emit("bread_baked", { oven: "a", loaves: 3 })
      yield* TestClock.adjust("5 millis")
      yield* bakery.emit("oven_old", { oven: "b" })
      yield* bakery.emit("baking_started", { oven: "b", grains: ["rye"] })
      yield* emit("db_statement_failed", { statement: "s", error: "e" })
      assert.deepStrictEqual(records.map(({ at, level, outcome }) => ({ at, level, outcome })), [
        { at: 1_234, level: "info", outcome: "success" },
        { at: 1_239, level: "warn", outcome: "advisory" },
        { at: 1_239, level: "info", outcome: "progress" },
        { at: 1_239, level: "error", outcome: "failure" }
      ])
      assert.deepStrictEqual(records[3]?.fields, { statement: "s", error: "e" })
    }))

  test("has the level of the outcome that it reports if it is about a request", () =>
    Effect.gen(function*() {
      const [probe, other] = [{ method: "GET", path: "/ready" }, { method: "POST", path: "/ready" }]
      for (
        const [status, request] of [[200, other], [404, undefined], [499, probe], [500, other], [503, probe]] as const
      ) {
        yield* emit("request_completed", { status, latency_ms: 1 }, accessWeight(status, request))
      }
      assert.deepStrictEqual(records.map(({ level, outcome }) => `${level} ${outcome}`), [
        "info success",
        "info success",
        "debug success",
        "warn failure",
        "warn failure"
      ])
    }))

  it.effect("is not built if the filter refuses its event or its level", () =>
    Effect.gen(function*() {
      const written: Array<string> = []
      const asked: Array<string> = []
      const picky = Layer.succeed(EventLog, {
        enabled: (event, level) => {
          asked.push(`${event} ${level}`)
          return level !== "debug" && event !== "request_shed"
        },
        write: ({ event }) => written.push(event)
      })
      yield* Effect.provide(
        Effect.all([
          emit("request_shed", {}),
          emit("request_completed", { status: 200, latency_ms: 1 }, { level: "debug", outcome: "success" }),
          emit("request_completed", { status: 200, latency_ms: 1 })
        ]),
        picky
      )
      assert.deepStrictEqual(written, ["request_completed"])
      assert.deepStrictEqual(asked, ["request_shed warn", "request_completed debug", "request_completed info"])
    }))

  it.effect("is dropped without an error if there is no log", () => emit("request_shed", {}))

  it("must be one of the declared events, with all of its fields and no others", () => {
    // @ts-expect-error no such event
    void bakery.emit("bread_eaten", {})
    // @ts-expect-error an event of another vocabulary
    void bakery.emit("request_shed", {})
    // @ts-expect-error a field is missing
    void bakery.emit("bread_baked", { oven: "a" })
    // @ts-expect-error a field of another type
    void bakery.emit("bread_baked", { oven: "a", loaves: "3" })
    // @ts-expect-error a field that the event does not have
    void bakery.emit("baking_failed", { oven: "a", loaves: 3 })
    // @ts-expect-error an event with a field that the dictionary does not have
    makeLog<{ readonly oven: "text" }, typeof events>(events)
  })
})

describe("the facts of a request", () => {
  test("are in every record of its fiber and of the fibers that this fiber starts", () =>
    Effect.gen(function*() {
      yield* emit("request_shed", {})
      const served = Effect.gen(function*() {
        yield* emit("request_deadline_exceeded", {})
        yield* Effect.forkChild(emit("request_id_header_invalid", {})).pipe(Effect.flatMap(Fiber.await))
      })
      yield* Effect.forkChild(withinSpan({ request_id: "one" }, 0, served)).pipe(Effect.flatMap(Fiber.await))
      yield* emit("request_shed", {})
      assert.deepStrictEqual(records.map(({ span }) => span["request_id"]), [undefined, "one", "one", undefined])
    }))

  test("are never mixed with those of another request that is served at the same time", () =>
    Effect.gen(function*() {
      const go = yield* Deferred.make<void>()
      const serve = (request_id: string) =>
        withinSpan(
          { request_id },
          0,
          Effect.gen(function*() {
            yield* Effect.yieldNow
            yield* bakery.emit("oven_old", { oven: request_id })
            yield* Deferred.await(go)
            yield* bakery.emit("oven_old", { oven: request_id })
          })
        )
      const served = yield* Effect.forEach(["a", "b", "c"], (id) => Effect.forkChild(serve(id)))
      yield* Effect.yieldNow
      yield* Deferred.succeed(go, undefined)
      yield* Effect.forEach(served, Fiber.await)
      assert.strictEqual(records.length, 6)
      for (const { fields, span } of records) assert.strictEqual(span["request_id"], fields["oven"] as string)
    }))

  test("apply to fibers that are raced or forked inside of the span, and end with the span", () =>
    Effect.gen(function*() {
      const told = emit("request_shed", {})
      const raced = Effect.raceFirst(told, Effect.never)
      const forked = Effect.flatMap(Effect.forkChild(told), Fiber.join)
      const within = Effect.andThen(Effect.timeoutOption(raced, 1000), Effect.andThen(forked, told))
      yield* Effect.andThen(withinSpan({ request_id: "one" }, 0, within), told)
      assert.deepStrictEqual(records.map(({ span }) => span.request_id), ["one", "one", "one", undefined])
    }))

  test("are replaced completely by the facts of an inner span", () =>
    Effect.gen(function*() {
      const next = withinSpan({ request_id: "two" }, 0, emit("request_shed", {}))
      yield* withinSpan({ request_id: "one", profile: "p" }, 0, Effect.andThen(emit("request_shed", {}), next))
      assert.deepStrictEqual(records.map(({ span }) => span), [{ request_id: "one", profile: "p" }, {
        request_id: "two"
      }])
      assert.deepStrictEqual(eventsOf(records), ["request_shed", "request_shed"])
    }))
})

describe("a span", () => {
  it.effect("is logged when it begins and when it ends, with its duration", () =>
    Effect.gen(function*() {
      const records: Array<Record> = []
      yield* Effect.gen(function*() {
        yield* TestClock.setTime(1000)
        yield* withinSpan({ request_id: "one" }, 1000, TestClock.adjust("7 millis"))
      }).pipe(Effect.provideService(EventLog, { enabled: () => true, write: (record) => records.push(record) }))
      assert.deepStrictEqual(
        records.map(({ event, fields, level, span }) => ({ event, fields, level, span })),
        [
          { event: "span_opened", fields: {}, level: "debug", span: { request_id: "one" } },
          { event: "span_closed", fields: { elapsed_ms: 7 }, level: "debug", span: { request_id: "one" } }
        ]
      )
    }))
})
