import { assert, describe, it } from "vitest"
import { series } from "../../../src/domain/words/Series.ts"
import type { Series } from "../../../src/engine/telemetry/Metrics.ts"
import { text } from "../../support/Documents.ts"

/** Returns the type and the labels of a series as a scrape shows them. */
const shown = ({ kind, labels }: Series): readonly [string, ReadonlyArray<string>] => [
  kind === "sampledCounter" ? "counter" : kind,
  [...kind === "counter" || kind === "histogram" ? ["role"] : [], ...Object.keys(labels)]
]

describe("the series of the service", () => {
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
