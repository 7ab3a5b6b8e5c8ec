import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { engineSeries, failureCauses } from "../../../src/engine/telemetry/EngineSeries.ts"
import { counter, gauge, histogram, makeCounting, Metrics } from "../../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../../src/engine/telemetry/Registry.ts"

const series = {
  ...engineSeries,
  loaves_total: counter("Loaves baked.", { oven: "text", grain: ["rye", "wheat"], size: ["small", "large"] }),
  baking_seconds: histogram("From the dough to the loaf.", { oven: "text" }, [1, 10]),
  flour_kilograms: gauge("Flour that is left.", { grain: "text" })
} as const

const { begin, count } = makeCounting<typeof series>()

const layer = Registry.layer("baker", series)

const linesOf = (name: string) =>
  Effect.map(
    Metrics.use(({ render }) => render(new Map([["flour_kilograms", [{ labels: { grain: "rye" }, value: 3 }]]]))),
    (text) => text.split("\n").filter((line) => line.startsWith(name) || line.startsWith(`# TYPE ${name}`))
  )

describe("a series of metrics", () => {
  it.effect("grows by the given amount", () =>
    Effect.gen(function*() {
      yield* count("loaves_total", { oven: "left", grain: "rye", size: "large" })
      yield* count("loaves_total", { oven: "left", grain: "rye", size: "large" }, 2)
      assert.deepStrictEqual(yield* linesOf("loaves"), [
        "# TYPE loaves counter",
        "loaves_total{role=\"baker\",oven=\"left\",grain=\"rye\",size=\"large\"} 3"
      ])
      yield* count("baking_seconds", { oven: "left" }, 4)
      const buckets = (yield* linesOf("baking_seconds_bucket")).map((line) => line.slice(line.indexOf("{")))
      assert.deepStrictEqual(buckets, [
        "{le=\"1\",role=\"baker\",oven=\"left\"} 0",
        "{le=\"10\",role=\"baker\",oven=\"left\"} 1",
        "{le=\"+Inf\",role=\"baker\",oven=\"left\"} 1"
      ])
    }).pipe(Effect.provide(layer)))

  it.effect("begins at 0 for every value of the open labels", () =>
    Effect.gen(function*() {
      yield* count("loaves_total", { oven: "left", grain: "wheat", size: "small" })
      yield* begin("loaves_total", { oven: "left" })
      yield* begin("loaves_total", { oven: "right", grain: "rye" })
      assert.sameMembers((yield* linesOf("loaves_total")).map((line) => line.slice(line.indexOf("oven"))), [
        "oven=\"left\",grain=\"wheat\",size=\"small\"} 1",
        "oven=\"left\",grain=\"wheat\",size=\"large\"} 0",
        "oven=\"left\",grain=\"rye\",size=\"small\"} 0",
        "oven=\"left\",grain=\"rye\",size=\"large\"} 0",
        "oven=\"right\",grain=\"rye\",size=\"small\"} 0",
        "oven=\"right\",grain=\"rye\",size=\"large\"} 0"
      ])
    }).pipe(Effect.provide(layer)))

  it.effect("begins with the process if the engine counts it", () =>
    Effect.gen(function*() {
      assert.lengthOf(yield* linesOf("acme_svc_database_failures_total"), failureCauses.length)
      assert.deepStrictEqual(yield* linesOf("acme_svc_database_rows_unreadable_total"), [
        "acme_svc_database_rows_unreadable_total{role=\"baker\"} 0"
      ])
    }).pipe(Effect.provide(layer)))

  it.effect("has the value that was sampled for the scrape", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* linesOf("flour_kilograms{"), ["flour_kilograms{grain=\"rye\"} 3"])
      const { render } = yield* Metrics
      const wheat = yield* render(new Map([["flour_kilograms", [{ labels: { grain: "wheat" }, value: 2 }]]]))
      assert.include(wheat, "flour_kilograms{grain=\"wheat\"} 2")
      assert.notInclude(wheat, "rye")
      assert.notInclude(yield* render(new Map()), "flour")
    }).pipe(Effect.provide(layer)))

  it.effect("is not counted in a process without metrics, which causes no error", () =>
    Effect.andThen(begin("loaves_total", { oven: "left" }), count("baking_seconds", { oven: "left" }, 1)))

  it("can only be counted as it is declared", () => {
    // @ts-expect-error no such series
    void count("rolls_total", { oven: "left" })
    // @ts-expect-error a word that the label does not have
    void count("loaves_total", { oven: "left", grain: "oats", size: "small" })
    // @ts-expect-error a label is missing
    void count("loaves_total", { oven: "left", grain: "rye" })
    // @ts-expect-error a histogram needs its value
    void count("baking_seconds", { oven: "left" })
    // @ts-expect-error what is sampled is not counted
    void count("flour_kilograms", { grain: "rye" })
    // @ts-expect-error values that only the program knows have to be given
    void begin("loaves_total", { grain: "rye" })
  })
})
