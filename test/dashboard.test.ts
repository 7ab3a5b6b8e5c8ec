import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { assert, beforeAll, describe, it } from "vitest"
import { series as declared } from "../src/domain/words/Series.ts"
import type { Sample, Series } from "../src/engine/telemetry/Metrics.ts"
import { Metrics } from "../src/engine/telemetry/Metrics.ts"
import * as Registry from "../src/engine/telemetry/Registry.ts"
import { alertRules } from "./alerts/AlertRules.ts"

/* The dashboard and the alerts ask only for series that the service has, and the dashboard shows all of them. */

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

interface Dashboard {
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string }> }
  readonly panels: ReadonlyArray<{
    readonly id: number
    readonly title: string
    readonly targets: ReadonlyArray<{ readonly expr: string }>
  }>
}

const dashboard = JSON.parse(read("deploy/grafana/acme-svc.json")) as Dashboard
const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
/**
 * The expressions of the alerts, except for the alert about targets that do not answer, whose series is made by
 * Prometheus.
 */
const alerts = alertRules.map(({ expr }) => expr).filter((expr) => !expr.startsWith("up{"))

/** Labels that a scrape adds. */
const ofTheScrape = ["instance", "job", "le"]

describe("the metrics of the service", () => {
  /** The labels of every series, by the name of the series in queries. */
  const series = new Map<string, ReadonlySet<string>>()

  beforeAll(async () => {
    const program = Effect.gen(function*() {
      const metrics = yield* Metrics
      const samples = new Map<string, ReadonlyArray<Sample>>()
      for (const [name, { kind, labels }] of Object.entries<Series>(declared)) {
        const values = Object.fromEntries(Object.keys(labels).map((label) => [label, "x"]))
        if (kind === "counter" || kind === "histogram") metrics.add(name, values, 1)
        else samples.set(name, [{ labels: values, value: 1 }])
      }
      return yield* metrics.render(samples)
    })
    const text = await Effect.runPromise(Effect.provide(program, Registry.layer("acme,admin,worker", declared)))
    for (const line of text.split("\n")) {
      const [, name, labels = ""] = /^(\w+)(?:\{([^}]*)\})? /.exec(line) ?? []
      if (name === undefined) continue
      series.set(name, new Set([...labels.matchAll(/(\w+)=/g)].map(([, label = ""]) => label)))
    }
  })

  const namesIn = (query: string) => [...query.matchAll(/acme_svc_\w+/g)].map(([name]) => name)

  it("include every series that the dashboard and the alerts use, with the labels that they use", () => {
    assert.isAbove(queries.length + alerts.length, 25)
    for (const query of [...queries, ...alerts]) {
      const names = namesIn(query)
      assert.isNotEmpty(names, query)
      for (const name of names) assert.isTrue(series.has(name), `${name} of ${query}`)
      for (const [, name = "", selector = ""] of query.matchAll(/(acme_svc_\w+)\{([^}]*)\}/g)) {
        for (const [, label = ""] of selector.matchAll(/(\w+)(?:=~|!~|!=|=)/g)) {
          assert.isTrue(series.get(name)?.has(label), `${label} of ${name} in ${query}`)
        }
      }
      for (const [, list = ""] of query.matchAll(/\bby \(([^)]*)\)/g)) {
        for (const label of list.split(",").map((one) => one.trim())) {
          const isKnown = ofTheScrape.includes(label) || names.every((name) => series.get(name)?.has(label))
          assert.isTrue(isKnown, `${label} in ${query}`)
        }
      }
    }
  })

  it("all appear on the dashboard, at least once for every family", () => {
    const shown = new Set(queries.flatMap(namesIn))
    const families = new Set([...series.keys()].map((name) => name.replace(/_(?:bucket|sum|count)$/, "")))
    const missing = [...families].filter((family) => ![...shown].some((name) => name.startsWith(family)))
    assert.deepStrictEqual(missing, [])
  })

  it("can be selected on the dashboard by data source and profile, but connections not by profile", () => {
    assert.deepStrictEqual(dashboard.templating.list.map(({ name }) => name), ["datasource", "profile"])
    assert.notInclude(read("deploy/grafana/acme-svc.json"), "__inputs")
    for (const query of queries.filter((one) => one.includes("pool_connections"))) assert.notInclude(query, "$profile")
    const ids = dashboard.panels.map(({ id }) => id)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("have no series with times of creation", () => {
    assert.isFalse([...series.keys()].some((name) => name.endsWith("_created")))
  })
})
