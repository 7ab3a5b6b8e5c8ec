import { cpus } from "node:os"
import { bareHttp } from "./BareHttp.ts"
import { endOnSignals } from "./Cleanup.ts"
import { clusterReport, measureCluster } from "./Cluster.ts"
import { floor } from "./Floor.ts"
import { grownReport, measureGrown } from "./Grown.ts"
import { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { measure } from "./Measure.ts"
import { measureNotify, notifyReport } from "./Notify.ts"
import type { Options } from "./Options.ts"
import { readOptions } from "./Options.ts"
import { offer } from "./Peer.ts"
import { measurePolicy, policyReport } from "./Policy.ts"
import * as Procfs from "./Procfs.ts"
import { measureQueue, queueReport } from "./Queue.ts"
import { queueRun } from "./QueueRun.ts"
import { reader } from "./Reader.ts"
import type { ReadsCost } from "./Reads.ts"
import { measureLists, measurePages } from "./Reads.ts"
import { readsReport } from "./ReadsReport.ts"
import { receivers } from "./Receivers.ts"
import { measureRelay, relayReport } from "./Relay.ts"
import { paintFor, report } from "./Report.ts"
import { measureSignIn, signInReport } from "./SignIn.ts"

/*
 * `npm run bench`: see docs/bench.md. The program runs once more for each process that takes part.
 */

const roles: {
  readonly [role: string]:
    | typeof load
    | typeof floor
    | typeof bareHttp
    | typeof queueRun
    | typeof reader
    | typeof receivers
} = {
  load,
  floor,
  http: bareHttp,
  queue: queueRun,
  reader,
  receivers
}

const conditions = (synchronous: string): string => {
  const processors = cpus()
  return [
    `Node ${process.version}, ${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}.`,
    `SQLite WAL with synchronous = ${synchronous}; PostgreSQL with fsync, on loopback. Challenges bypassed, JSON log to a`,
    "file at its default level. CPU figures are per issuance: one new account, one name, seven requests or more."
  ].join("\n")
}

const serviceText = async (options: Options, progress: Progress): Promise<string> => {
  const measured = await measure(options, progress)
  return options.json
    ? JSON.stringify(measured, undefined, 2)
    : `${conditions(options.synchronous)}\n\n${report(paintFor(process.stdout.isTTY === true), measured, options)}`
}

const grownText = async (options: Options, progress: Progress): Promise<string> => {
  const costs = await measureGrown(options, progress)
  return options.json ? JSON.stringify(costs, undefined, 2) : grownReport(costs)
}

const policyText = async (options: Options, progress: Progress): Promise<string> => {
  const cost = await measurePolicy(options, progress)
  return options.json ? JSON.stringify(cost, undefined, 2) : policyReport(cost)
}

const queueText = async (options: Options, progress: Progress): Promise<string> => {
  const costs = await measureQueue(options, progress)
  return options.json
    ? JSON.stringify(costs, undefined, 2)
    : queueReport(paintFor(process.stdout.isTTY === true), costs)
}

const clusterText = async (options: Options, progress: Progress): Promise<string> => {
  const cost = await measureCluster(options, progress)
  return options.json
    ? JSON.stringify(cost, undefined, 2)
    : clusterReport(paintFor(process.stdout.isTTY === true), cost)
}

const relayText = async (options: Options, progress: Progress): Promise<string> => {
  const costs = await measureRelay(options, progress)
  return options.json
    ? JSON.stringify(costs, undefined, 2)
    : relayReport(paintFor(process.stdout.isTTY === true), costs)
}

const notifyText = async (options: Options, progress: Progress): Promise<string> => {
  const costs = await measureNotify(options, progress)
  return options.json
    ? JSON.stringify(costs, undefined, 2)
    : notifyReport(paintFor(process.stdout.isTTY === true), costs)
}

const readsText =
  (measureReads: (options: Options, progress: Progress) => Promise<ReadonlyArray<ReadsCost>>) =>
  async (options: Options, progress: Progress): Promise<string> => {
    const costs = await measureReads(options, progress)
    return options.json
      ? JSON.stringify(costs, undefined, 2)
      : readsReport(paintFor(process.stdout.isTTY === true), costs)
  }

const signInText = async (options: Options, progress: Progress): Promise<string> => {
  const costs = await measureSignIn(options, progress)
  return options.json
    ? JSON.stringify(costs, undefined, 2)
    : signInReport(paintFor(process.stdout.isTTY === true), costs)
}

const chosen = ({ cluster, grown, lists, notify, pages, policy, queue, relay, signIn }: Options) =>
  signIn
    ? signInText
    : lists
    ? readsText(measureLists)
    : pages
    ? readsText(measurePages)
    : relay
    ? relayText
    : notify
    ? notifyText
    : cluster
    ? clusterText
    : policy
    ? policyText
    : queue
    ? queueText
    : grown === undefined
    ? serviceText
    : grownText

const bench = async (words: ReadonlyArray<string>): Promise<void> => {
  const options = readOptions(words)
  if (!Procfs.isAvailable()) throw new Error("CPU figures are read from /proc, which this system does not have")
  const isInteractive = process.stderr.isTTY === true
  const progress = (text: string) => {
    process.stderr.write(isInteractive ? `\r\u001B[K${text} …` : `${text}\n`)
  }
  const text = await chosen(options)(options, progress)
  if (isInteractive) process.stderr.write("\r\u001B[K")
  await new Promise((done) => process.stdout.write(`${text}\n`, done))
}

const [option, role = ""] = process.argv.slice(2)
const offered = option === "--role" ? roles[role] : undefined
if (offered === undefined) {
  endOnSignals()
  try {
    await bench(process.argv.slice(2))
    process.exit(0)
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
    process.exit(1)
  }
} else {
  offer(offered)
}
