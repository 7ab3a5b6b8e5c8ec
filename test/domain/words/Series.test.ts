import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { series } from "../../../src/domain/words/Series.ts"
import { mergeScrapes } from "../../../src/engine/telemetry/MergedScrapes.ts"
import type { Sample, Series } from "../../../src/engine/telemetry/Metrics.ts"
import { Metrics } from "../../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../../src/engine/telemetry/Registry.ts"
import { text } from "../../support/Documents.ts"
import { familyOf, readOpenMetrics } from "../../support/OpenMetrics.ts"

/** Returns the type and the labels of a series as a scrape shows them. */
const shown = ({ kind, labels }: Series): readonly [string, ReadonlyArray<string>] => [
  kind === "sampledCounter" ? "counter" : kind,
  [...kind === "counter" || kind === "histogram" ? ["role"] : [], ...Object.keys(labels)]
]

/** The values of labels that only the configuration knows. They may have every character that is escaped. */
const texts = ["one", "a \"b\" \\ c\n{d=\"e\"} 1"]

/** Returns a scrape in which every series has samples. */
const scraped = (process?: number): Promise<string> =>
  Effect.runPromise(Effect.provide(
    Effect.gen(function*() {
      const { add, render } = yield* Metrics
      const samples = new Map<string, ReadonlyArray<Sample>>()
      for (const [name, { kind, labels }] of Object.entries<Series>(series)) {
        const names = Object.entries(labels)
        const values = names.length === 0 ?
          [{}] :
          texts.map((value, index) =>
            Object.fromEntries(names.map(([label, words]) => [label, words === "text" ? value : words[index] ?? value]))
          )
        if (kind === "gauge" || kind === "sampledCounter") {
          samples.set(name, values.map((one, index) => ({ labels: one, value: index + 0.5 })))
        } else for (const one of values) for (const value of [0, 0.3, 1e9]) add(name, one, value)
      }
      yield* render(samples)
      return yield* render(samples) // A second scrape must not add the sampled series again.
    }),
    Registry.layer("acme,admin,worker", series, process)
  ))

describe("the series of the service", () => {
  it("belong to different families, and only counters have names that end with _total", () => {
    const names = Object.keys(series)
    assert.sameMembers([...new Set(names.map(familyOf))], names.map(familyOf))
    const counters = Object.entries<Series>(series).filter(([, one]) => shown(one)[0] === "counter")
    assert.deepStrictEqual(names.filter((name) => name !== familyOf(name)), counters.map(([name]) => name))
    assert.isTrue(counters.every(([name]) => name.endsWith("_total")))
  })

  it("are valid OpenMetrics in the scrape of one process and of several", async () => {
    const families = Object.entries<Series>(series).map(([name, one]) => [familyOf(name), shown(one)[0]] as const)
    for (const scrape of [await scraped(), mergeScrapes([await scraped(0), await scraped(1), await scraped(2)])]) {
      assert.deepStrictEqual(Object.fromEntries(readOpenMetrics(scrape)), Object.fromEntries(families))
    }
  })

  it("are listed in docs/reference/metrics.md with their types and labels, and nothing else is", () => {
    const rows = [...text("docs/reference/metrics.md").matchAll(/^\| `(acme_svc_\w+)` *\| (\w+) *\| ([^|]*?) *\|/gm)]
    const listed = rows.map(([, name = "", type = "", labels = ""]) => {
      const names = labels.replaceAll(/ \([^)]*\)/g, "")
      return [name, [type, names === "none" ? [] : names.split(", ")]]
    })
    assert.strictEqual(new Set(listed.map(([name]) => name)).size, listed.length)
    assert.deepStrictEqual(
      Object.fromEntries(listed),
      Object.fromEntries(Object.entries<Series>(series).map(([name, one]) => [name, shown(one)]))
    )
  })
})
