import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { engineSeries } from "../../../src/engine/telemetry/EngineSeries.ts"
import { mergeScrapes } from "../../../src/engine/telemetry/MergedScrapes.ts"
import { counter, gauge, makeCounting, Metrics } from "../../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../../src/engine/telemetry/Registry.ts"

const series = {
  ...engineSeries,
  loaves_total: counter("Loaves baked.", {}),
  flour_kilograms: gauge("Flour that is left.", { grain: "text" })
} as const

const { count } = makeCounting<typeof series>()

/** The scrape of a process that has baked some loaves and may know how much flour is left. */
const scraped = (process: number, loaves: number, flour: ReadonlyArray<number> = []) =>
  Effect.runPromise(Effect.provide(
    Effect.andThen(
      count("loaves_total", {}, loaves),
      Metrics.use(({ render }) =>
        render(new Map([["flour_kilograms", flour.map((value) => ({ labels: { grain: "rye" }, value }))]]))
      )
    ),
    Registry.layer("baker", series, process)
  ))

describe("the scrapes of several processes", () => {
  it("are one text in which each sample has the number of its process", async () => {
    const text = mergeScrapes([await scraped(1, 3), await scraped(2, 4, [7])])
    assert.deepStrictEqual(text.split("\n").filter((line) => /loaves|flour|EOF/.test(line)), [
      "# HELP loaves Loaves baked.",
      "# TYPE loaves counter",
      `loaves_total{role="baker",process="1"} 3`,
      `loaves_total{role="baker",process="2"} 4`,
      "# HELP flour_kilograms Flour that is left.",
      "# TYPE flour_kilograms gauge",
      `flour_kilograms{grain="rye",process="2"} 7`,
      "# EOF"
    ])
    assert.isTrue(text.endsWith("# EOF\n"))
  })

  it("are unchanged if there is only one, and empty if no process answers", async () => {
    const one = await scraped(1, 3, [7])
    assert.strictEqual(mergeScrapes([one]), one)
    assert.strictEqual(mergeScrapes([]), "# EOF\n")
  })
})
