import type { Act } from "./Client.ts"
import { measureToFloor } from "./Compare.ts"
import { floorRatioOf } from "./CompareReport.ts"
import type { Try } from "./Gauge.ts"
import { gauge, gaugedClients, shownTry } from "./Gauge.ts"
import type { Recorded } from "./History.ts"
import { append, commitHere, lastRecorded, processorHere } from "./History.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Runs the short benchmark that is part of the gate. Compares its ratio (the CPU time of an issuance, divided by that of
 * the work that no issuance can avoid) with the newest record in the history.
 */

/** The largest ratio that the short bench may reach, as a multiple of the recorded ratio. */
const allowed = 1.1
const mostTries = 3
const recordedTries = 5

const isWithin = ({ ratio }: Try, { short }: Recorded): boolean => ratio <= short * allowed

const title = "CPU of an issuance to that of its floor"

/**
 * Runs the short bench until one result is within the limit or too many results were above it. Returns the results in
 * words.
 */
export const check = async (
  options: Options,
  progress: Progress
): Promise<{ readonly isPassed: boolean; readonly text: string }> => {
  const recorded = lastRecorded()
  if (recorded === undefined) {
    const tries = await gauge(options, progress, () => false)
    return {
      isPassed: true,
      text:
        `${title}: ${tries.map(shownTry).join(", ")}; there is no record of a processor such as ${processorHere()} to `
        + "compare it with: npm run bench -- --record makes one\n0 passed, 0 failed"
    }
  }
  const tries = await gauge(
    options,
    progress,
    (tries) => tries.length < mostTries && !tries.some((one) => isWithin(one, recorded))
  )
  const isPassed = tries.some((one) => isWithin(one, recorded))
  const text =
    `${title}: ${tries.map(shownTry).join(", ")}; recorded ${recorded.short.toFixed(2)} at ${recorded.commit}, `
    + `allowed ${(recorded.short * allowed).toFixed(2)}`
  return {
    isPassed,
    text: isPassed ? `${text}\n1 passed, 0 failed` : `FAILED ${text}\n0 passed, 1 failed`
  }
}

/** Measures the ratios of the checked out commit, and adds them to the history. */
export const record = async (options: Options, progress: Progress): Promise<Recorded> => {
  const commit = commitHere()
  const tries = await gauge(options, progress, (tries) => tries.length < recordedTries)
  const compared = await measureToFloor(
    { ...options, databases: ["sqlite", "postgres"], concurrency: [gaugedClients] },
    progress
  )
  const ratioOf = (act: Act, name: Dialect): number => {
    const found = compared.find(({ burden }) => burden.act === act)
    return (found === undefined ? undefined : floorRatioOf(found, name)) ?? Number.NaN
  }
  const recorded: Recorded = {
    commit,
    date: new Date().toISOString().slice(0, 10),
    runtime: process.version,
    processor: processorHere(),
    short: median(tries.map(({ ratio }) => ratio)),
    sqlite: ratioOf("issue", "sqlite"),
    postgres: ratioOf("issue", "postgres"),
    newAccount: ratioOf("newAccount", "sqlite"),
    newNonce: ratioOf("newNonce", "sqlite"),
    directory: ratioOf("directory", "sqlite")
  }
  append(recorded)
  return recorded
}
