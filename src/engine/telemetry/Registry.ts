import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OpenMetricsContentType } from "prom-client"
import { Counter, Gauge, Histogram, Registry } from "prom-client"
import { engineSeries } from "./EngineSeries.ts"
import type { Labels, Sample, Series, Values } from "./Metrics.ts"
import { Metrics } from "./Metrics.ts"

/* The metrics of a process that serves. A command counts nothing, and does not load the library for metrics. */

/**
 * Provides the declared series of a process, which include at least the series of the engine. `role` is the value of
 * the label `role` that counted series have. If several processes serve together, `process` is the number of this
 * process, and every sample has this number as the label `process`.
 */
export const layer = (
  role: string,
  declared: typeof engineSeries & Readonly<Record<string, Series>>,
  process?: number
): Layer.Layer<Metrics> => Layer.sync(Metrics, () => make(role, declared, process))

/**
 * Returns every combination of labels that has the given values. Each label that is not given has one of its declared
 * words.
 */
const combinations = (labels: Labels, given: Partial<Values>): ReadonlyArray<Values> =>
  Object.entries(labels).reduce<ReadonlyArray<Values>>((found, [label, words]) => {
    const fixed = given[label]
    const values = fixed !== undefined ? [fixed] : words === "text" ? [] : words
    return found.flatMap((one) => values.map((value) => ({ ...one, [label]: value })))
  }, [{}])

/** A series that is read at a scrape. */
interface Sampled {
  readonly metric: Counter | Gauge
  /** Replaces the samples of the series. */
  readonly set: (samples: ReadonlyArray<Sample>) => void
}

const make = (
  role: string,
  declared: Readonly<Record<string, Series>>,
  process: number | undefined
): Metrics["Service"] => {
  const registry = new Registry<OpenMetricsContentType>()
  if (process !== undefined) registry.setDefaultLabels({ process })
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  const counters = new Map<string, Counter>()
  const histograms = new Map<string, Histogram>()
  const sampled = new Map<string, Sampled>()
  for (const [name, { buckets, help, kind, labels }] of Object.entries(declared)) {
    const own = { name, help, labelNames: Object.keys(labels), registers: [] }
    const ofRole = { name, help, labelNames: ["role", ...own.labelNames], registers: [registry] }
    switch (kind) {
      case "counter": {
        counters.set(name, new Counter(ofRole))
        break
      }
      case "histogram": {
        histograms.set(name, new Histogram({ ...ofRole, buckets: [...buckets] }))
        break
      }
      case "gauge": {
        const metric = new Gauge(own)
        sampled.set(name, {
          metric,
          set: (samples) => {
            metric.reset()
            for (const sample of samples) metric.set(sample.labels, sample.value)
          }
        })
        break
      }
      case "sampledCounter": {
        const metric = new Counter(own)
        sampled.set(name, {
          metric,
          set: (samples) => {
            metric.reset()
            for (const sample of samples) metric.inc(sample.labels, sample.value)
          }
        })
        break
      }
    }
  }
  const add: Metrics["Service"]["add"] = (name, labels, value) => {
    const all = { role, ...labels }
    counters.get(name)?.inc(all, value)
    histograms.get(name)?.observe(all, value)
  }
  const begin: Metrics["Service"]["begin"] = (name, labels) => {
    for (const values of combinations(declared[name]?.labels ?? {}, labels)) add(name, values, 0)
  }
  for (const [name, { kind }] of Object.entries(engineSeries)) if (kind === "counter") begin(name, {})
  return {
    add,
    begin,
    render: (samples) =>
      Effect.promise(() => {
        for (const [name, { metric, set }] of sampled) {
          const found = samples.get(name)
          registry.removeSingleMetric(name)
          if (found === undefined) continue
          set(found)
          registry.registerMetric(metric)
        }
        return registry.metrics()
      })
  }
}
