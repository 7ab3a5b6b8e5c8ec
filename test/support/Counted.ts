import { Effect } from "effect"
import { Metrics } from "../../src/engine/telemetry/Metrics.ts"

/**
 * Returns the value of a series among the process's own counters. The series is named `name{labels}`, as in a scrape.
 * The value is undefined if there is no such series.
 */
export const counted = (series: string) =>
  Effect.gen(function*() {
    const text = yield* (yield* Metrics).render(new Map())
    const line = text.split("\n").find((one) => one.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length + 1))
  })
