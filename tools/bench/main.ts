import { cpus } from "node:os"
import { ConfigRefused } from "../../src/engine/config/ConfigRefused.ts"
import { attributionReport, measureAttribution } from "./Attribution.ts"
import { bareHttp } from "./BareHttp.ts"
import { check, record } from "./Check.ts"
import { endOnSignals } from "./Cleanup.ts"
import { clusterReport, measureCluster } from "./Cluster.ts"
import { measurePeers } from "./Compare.ts"
import { comparisonReport } from "./CompareReport.ts"
import { floor } from "./Floor.ts"
import { offer } from "./Forked.ts"
import { grownReport, measureGrown } from "./Grown.ts"
import { handshakeReport, measureHandshakes } from "./Handshakes.ts"
import { knocks } from "./Knocks.ts"
import { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { measure } from "./Measure.ts"
import { measureMemory, memoryReport } from "./Memory.ts"
import { measureNotify, notifyReport } from "./Notify.ts"
import type { Mode, Options } from "./Options.ts"
import { readOptions } from "./Options.ts"
import { measurePolicy, policyReport } from "./Policy.ts"
import { measureProcesses, processesReport } from "./Processes.ts"
import * as Procfs from "./Procfs.ts"
import { measureQueue, queueReport } from "./Queue.ts"
import { queueRun } from "./QueueRun.ts"
import { reader } from "./Reader.ts"
import { measureLists, measurePages } from "./Reads.ts"
import { readsReport } from "./ReadsReport.ts"
import { receivers } from "./Receivers.ts"
import { measureRelay, relayReport } from "./Relay.ts"
import type { Paint } from "./Report.ts"
import { paintFor, report } from "./Report.ts"
import { measureSignIn, signInReport } from "./SignIn.ts"
import { measureSlowDisk, slowDiskReport } from "./SlowDisk.ts"
import { measureStandby, standbyReport } from "./StandbyCost.ts"
import { measureStart, startReport } from "./Start.ts"
import { measureTokenCost, tokenCostReport } from "./TokenCost.ts"
import { measureUntilCertificate, untilReport } from "./Until.ts"

/*
 * `npm run bench` (see docs/contribute/bench.md). The program starts itself once more for each process that takes part.
 */

const roles: {
  readonly [role: string]:
    | typeof load
    | typeof floor
    | typeof bareHttp
    | typeof knocks
    | typeof queueRun
    | typeof reader
    | typeof receivers
} = {
  load,
  floor,
  http: bareHttp,
  knocks,
  queue: queueRun,
  reader,
  receivers
}

const conditions = ({ isProved, synchronous, waits }: Options): string => {
  const processors = cpus()
  return [
    `Node ${process.version}, ${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}.`,
    `SQLite WAL with synchronous = ${synchronous}; PostgreSQL with fsync, on loopback. ${
      isProved ? "Names proved by http-01" : "Challenges bypassed"
    }${waits ? ", answers wait" : ""},`,
    `JSON log to a file at its default level. CPU figures are per issuance: one new account, one name, ${
      waits ? "six" : "seven"
    } requests or more.`
  ].join("\n")
}

/** Runs a measurement and prints its results, as tables for people or as JSON. */
const shown = <A>(
  measureIt: (options: Options, progress: Progress) => Promise<A>,
  reportOf: (paint: Paint, measured: A, options: Options) => string
) =>
async (options: Options, progress: Progress): Promise<string> => {
  const measured = await measureIt(options, progress)
  return options.json
    ? JSON.stringify(measured, undefined, 2)
    : reportOf(paintFor(process.stdout.isTTY === true), measured, options)
}

const whole = shown(
  measure,
  (paint, measured, options) => `${conditions(options)}\n\n${report(paint, measured, options)}`
)

/** The special measurements, by their options. Each replaces the measurement of issuances. */
const modes: { readonly [M in Mode]: (options: Options, progress: Progress) => Promise<string> } = {
  attribution: shown(measureAttribution, attributionReport),
  check: async (options, progress) => {
    const { isPassed, text } = await check(options, progress)
    if (!isPassed) process.exitCode = 1
    return text
  },
  cluster: shown(measureCluster, clusterReport),
  grown: shown(measureGrown, (_, costs) => grownReport(costs)),
  handshakes: shown(measureHandshakes, handshakeReport),
  lists: shown(measureLists, readsReport),
  memory: shown(measureMemory, (_, costs) => memoryReport(costs)),
  notify: shown(measureNotify, notifyReport),
  pages: shown(measurePages, readsReport),
  peers: shown(async (options, progress) => {
    const compared = await measurePeers(options, progress)
    if (compared.some(({ sides }) => sides.some(({ turns }) => turns.every((turn) => turn === undefined)))) {
      process.exitCode = 1
    }
    return compared
  }, comparisonReport),
  policy: shown(measurePolicy, (_, cost) => policyReport(cost)),
  processes: shown(measureProcesses, processesReport),
  queue: shown(measureQueue, queueReport),
  record: shown(record, (_, recorded) => JSON.stringify(recorded)),
  relay: shown(measureRelay, relayReport),
  "sign-in": shown(measureSignIn, signInReport),
  "slow-disk": shown(measureSlowDisk, slowDiskReport),
  standby: shown(measureStandby, standbyReport),
  start: shown(measureStart, (_, costs) => startReport(costs)),
  token: shown(measureTokenCost, tokenCostReport),
  "until-certificate": shown(measureUntilCertificate, untilReport)
}

const bench = async (words: ReadonlyArray<string>): Promise<void> => {
  const options = readOptions(words)
  if (!Procfs.isAvailable()) throw new Error("CPU figures are read from /proc, which this system does not have")
  const isInteractive = process.stderr.isTTY === true
  const progress = (text: string) => {
    process.stderr.write(isInteractive ? `\r\u001B[K${text} …` : `${text}\n`)
  }
  const text = await (options.mode === undefined ? whole : modes[options.mode])(options, progress)
  if (isInteractive) process.stderr.write("\r\u001B[K")
  await new Promise((done) => process.stdout.write(`${text}\n`, done))
}

const [option, role = ""] = process.argv.slice(2)
const offered = option === "--role" ? roles[role] : undefined
if (offered === undefined) {
  endOnSignals()
  try {
    await bench(process.argv.slice(2))
    process.exit()
  } catch (error) {
    const isRefused = error instanceof ConfigRefused || !(error instanceof Error)
    process.stderr.write(`bench: ${isRefused ? String(error) : error.stack ?? error.message}\n`)
    process.exit(1)
  }
} else {
  offer(offered)
}
