import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { temporaryDirectory } from "./Cleanup.ts"

/*
 * Reads figures that are not visible outside the server's process. Node loads a script before the program. On SIGUSR2,
 * this script writes the figures since its last report.
 */

const manifest = resolve(import.meta.dirname, "../../package.json")

const reporting = (report: string, output: string) => `
process.on("SIGUSR2", () => {
  const { renameSync, writeFileSync } = require("node:fs")
  writeFileSync(${JSON.stringify(`${output}.part`)}, JSON.stringify(${report}))
  renameSync(${JSON.stringify(`${output}.part`)}, ${JSON.stringify(output)})
})
`

// The values of the histogram include the interval of the timer itself.
const resolution = 10

const delayScript = (output: string) => `
const histogram = require("node:perf_hooks").monitorEventLoopDelay({ resolution: ${resolution} })
histogram.enable()
const report = () => {
  const millis = (nanos) => Math.max(0, nanos / 1e6 - ${resolution})
  const seen = { p50: millis(histogram.percentile(50)), p99: millis(histogram.percentile(99)), max: millis(histogram.max) }
  histogram.reset()
  return seen
}
${reporting("report()", output)}`

const countScript = (output: string) => `
const service = require("node:module").createRequire(${JSON.stringify(manifest)})
let counts = new Map()
let writes = 0
const count = (text) => counts.set(text, (counts.get(text) ?? 0) + 1)

const Sqlite = service("better-sqlite3")
const { prepare } = Sqlite.prototype
Sqlite.prototype.prepare = function(text) {
  const database = this
  const statement = prepare.call(database, text)
  const controls = /^\\s*(BEGIN|COMMIT|ROLLBACK)/i.test(text)
  for (const name of ["all", "get", "run"]) {
    const original = statement[name]
    statement[name] = (...parameters) => {
      count(text)
      if (/^\\s*COMMIT/i.test(text) || (!controls && !statement.readonly && !database.inTransaction)) writes++
      return original.apply(statement, parameters)
    }
  }
  return statement
}

const { Client } = service("pg")
const { query } = Client.prototype
Client.prototype.query = function(...parameters) {
  const [first] = parameters
  const text = typeof first === "string" ? first : first?.text
  if (typeof text === "string") count(text)
  return query.apply(this, parameters)
}

const report = () => {
  const seen = { writes, statements: [...counts] }
  counts = new Map()
  writes = 0
  return seen
}
${reporting("report()", output)}`

const profileScript = (output: string) => `
const { Session } = require("node:inspector")
const session = new Session()
session.connect()
session.post("Profiler.enable")
let isRunning = false
const report = () => {
  isRunning = !isRunning
  if (isRunning) {
    session.post("Profiler.start")
    return {}
  }
  let profile
  session.post("Profiler.stop", (error, stopped) => {
    profile = stopped?.profile
  })
  return { profile }
}
${reporting("report()", output)}`

/** A profile as V8 writes it. The first node is the root. A sample is the id of the node that was running. */
export interface Profile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: ReadonlyArray<number>
  }>
  readonly samples: ReadonlyArray<number>
}

/** The delay of the event loop, in milliseconds. */
export interface LoopDelay {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** The statements that a server has sent to its database. */
export interface Sent {
  /** The number of transactions that write. Outside the database, only transactions of SQLite can be counted. */
  readonly writes: number
  readonly statements: ReadonlyArray<readonly [text: string, count: number]>
}

/** A script for a process, and a function that reads the script's report. */
export interface Probe<A> {
  readonly nodeWords: ReadonlyArray<string>
  /** The figures since the last report. */
  readonly read: (pid: number) => Promise<A>
}

const probe = <A>(script: (output: string) => string): Probe<A> => {
  const directory = temporaryDirectory()
  const file = join(directory, "probe.cjs")
  const output = join(directory, "seen.json")
  writeFileSync(file, script(output))
  return {
    nodeWords: ["--require", file],
    read: async (pid) => {
      process.kill(pid, "SIGUSR2")
      const deadline = performance.now() + 10_000
      while (!existsSync(output)) {
        if (performance.now() > deadline) throw new Error("the probe within the server does not answer")
        await delay(5)
      }
      const seen = JSON.parse(readFileSync(output, "utf8")) as A
      rmSync(output)
      return seen
    }
  }
}

/** Measures the delay of the event loop with a timer every ten milliseconds, which costs almost nothing. */
export const loopDelayProbe = (): Probe<LoopDelay> => probe(delayScript)

/**
 * Profiles the main thread from one report to the next. The first report starts the profile, and the second contains
 * it.
 */
export const profileProbe = (): Probe<{ readonly profile?: Profile }> => probe(profileScript)

/** Counts every statement. The wrapped drivers take extra time, so no other figures of that process should be used. */
export const statementProbe = (): Probe<Sent> => probe(countScript)
