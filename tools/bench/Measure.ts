import { resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { Dearest } from "./Dearest.ts"
import { countIn, dearestOf } from "./Dearest.ts"
import type { Floor } from "./FloorRig.ts"
import { between, layFloor } from "./FloorRig.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load, Window } from "./Load.ts"
import type { Options } from "./Options.ts"
import type { Postmaster } from "./Postmaster.ts"
import { postmasterOf } from "./Postmaster.ts"
import type { LoopDelay } from "./Probe.ts"
import { loopDelayProbe, statementProbe } from "./Probe.ts"
import * as Procfs from "./Procfs.ts"
import { provedConfiguration, provedProfile } from "./Proof.ts"
import { startService, waitsConfiguration } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/**
 * The results of one server with one number of simultaneous clients. Times are CPU milliseconds per issuance, unless
 * stated otherwise.
 */
export interface Cell {
  readonly concurrency: number
  readonly window: Window
  readonly perSecond: number
  readonly cpu: number
  readonly cpuUser: number
  readonly cpuSystem: number
  readonly databaseCpu: number | undefined
  readonly loopDelay: LoopDelay | undefined
  readonly rssMiB: number
  readonly logBytes: number
  /** The CPU of the load generator as a share of one core, and that of other processes as a share of the machine. */
  readonly clientShare: number
  readonly otherShare: number
  readonly floor: Floor | undefined
}

/** The statements that the service sends to its database for one issuance. */
export interface Statements {
  readonly perIssuance: number
  readonly writingTransactions: number
  /** How many clients issued at once while the statements were counted. */
  readonly concurrency: number
  /** How often PostgreSQL synced its WAL for one issuance, and how many octets it wrote to the WAL. */
  readonly wal: { readonly bytes: number; readonly syncs: number } | undefined
  readonly list: ReadonlyArray<{ readonly text: string; readonly perIssuance: number }>
  /** Which statements took most of PostgreSQL's time, if the options ask for the list of statements. */
  readonly dearest: Dearest | undefined
}

export interface Measured {
  readonly name: Dialect
  readonly cells: ReadonlyArray<Cell>
  readonly statements: Statements | undefined
}

export type Progress = (text: string) => void

// V8 compiles in the background, and the CPU per issuance is stable only after this time. So the warm-up has a length
// in seconds and not in issuances.
const warmUpSeconds = ({ seconds }: Options["extent"]): number =>
  seconds === undefined ? 4 : 4 + 2 * Math.min(seconds, 6)
const countedIssuances = 240

/** Estimates from the rate of the previous window how many credentials the next window needs. */
const credentialsFor = ({ issuances, seconds }: Options["extent"], perSecond: number, concurrency: number): number =>
  concurrency + (issuances ?? Math.ceil((seconds ?? 0) * perSecond * 1.5))

interface Watched {
  readonly pid: number
  readonly logged?: () => number
}

/** Runs one window, and reads the CPU time of every process. */
const measureCell = async (
  watched: Watched,
  loader: Forked<typeof load>,
  postmaster: Postmaster | undefined,
  parameter: Options["extent"] & { readonly concurrency: number; readonly withProof: boolean },
  loopDelay: (() => Promise<LoopDelay>) | undefined
): Promise<Omit<Cell, "floor">> => {
  const read = () => ({
    service: Procfs.cpuOf(watched.pid),
    database: postmaster === undefined ? undefined : Procfs.cpuOfFamily(postmaster.pid),
    machine: Procfs.machineCpu(),
    logged: watched.logged?.() ?? 0
  })
  await loader.call("connect", parameter.concurrency)
  await loopDelay?.()
  const before = read()
  const window = await loader.call("run", parameter)
  const after = read()
  const { issuances } = window
  const cpu = after.service.total - before.service.total
  const database = before.database === undefined ? undefined : (after.database ?? 0) - before.database
  const busy = after.machine.busy - before.machine.busy
  return {
    concurrency: parameter.concurrency,
    window,
    perSecond: issuances / window.elapsedMs * 1000,
    cpu: cpu / issuances,
    cpuUser: (after.service.user - before.service.user) / issuances,
    cpuSystem: (after.service.system - before.service.system) / issuances,
    databaseCpu: database === undefined ? undefined : database / issuances,
    loopDelay: await loopDelay?.(),
    rssMiB: Procfs.rssOf(watched.pid),
    logBytes: (after.logged - before.logged) / issuances,
    clientShare: window.clientCpuMs / window.elapsedMs,
    otherShare: Math.max(0, busy - cpu - (database ?? 0) - window.clientCpuMs)
      / (after.machine.total - before.machine.total)
  }
}

const warmUp = async (
  loader: Forked<typeof load>,
  directoryUrl: string,
  { extent, isProved }: Options
): Promise<number> => {
  const seconds = warmUpSeconds(extent)
  await loader.call("target", directoryUrl)
  await loader.call("prepare", 200 * seconds)
  const { elapsedMs, issuances } = await loader.call("run", { concurrency: 8, seconds, withProof: isProved })
  return issuances / elapsedMs * 1000
}

/**
 * Waits before reading the counters of the WAL, because a session adds its counts only after it has been idle for a
 * short time.
 */
const settledWal = async (postmaster: Postmaster | undefined) => {
  await delay(1500)
  return postmaster?.wal()
}

/** Starts the service that is measured, with a profile that validates names if the options ask for this. */
const startMeasured = async (
  databaseUrl: string,
  loader: Forked<typeof load>,
  { isProved, synchronous, waits }: Options,
  nodeWords: ReadonlyArray<string>
) => {
  const configuration = waitsConfiguration(waits)
    + (isProved ? provedConfiguration(await loader.call("prove")) : "")
  const service = await startService({ databaseUrl, synchronous, nodeWords, configuration })
  return { service, directoryUrl: isProved ? service.directoryOf(provedProfile) : service.directoryUrl }
}

const countStatements = async (
  dialect: Dialect,
  databaseUrl: string,
  loader: Forked<typeof load>,
  options: Options,
  postgres: { readonly cluster: PostgresCluster; readonly postmaster: Postmaster } | undefined
): Promise<Statements> => {
  const probe = statementProbe()
  const postmaster = postgres?.postmaster
  const counter = postgres !== undefined && options.listStatements
    ? await countIn(postgres.cluster, databaseUrl)
    : undefined
  const { directoryUrl, service } = await startMeasured(databaseUrl, loader, options, probe.nodeWords)
  const withProof = options.isProved
  await loader.call("target", directoryUrl)
  await loader.call("prepare", 2 * countedIssuances)
  const [concurrency = 1] = options.concurrency
  await loader.call("run", { concurrency, issuances: countedIssuances, withProof })
  await probe.read(service.pid)
  const before = await postmaster?.nextTransaction()
  const walBefore = await settledWal(postmaster)
  await counter?.reset()
  const { issuances } = await loader.call("run", { concurrency, issuances: countedIssuances, withProof })
  const counted = await counter?.read()
  const after = await postmaster?.nextTransaction()
  const walAfter = await settledWal(postmaster)
  const { statements, writes } = await probe.read(service.pid)
  await service.stop()
  await counter?.leave()
  const written = dialect === "sqlite" ? writes : (after ?? 0) - (before ?? 0)
  return {
    perIssuance: statements.reduce((sum, [, count]) => sum + count, 0) / issuances,
    writingTransactions: written / issuances,
    concurrency,
    wal: walBefore === undefined || walAfter === undefined ? undefined : {
      bytes: (walAfter.bytes - walBefore.bytes) / issuances,
      syncs: (walAfter.syncs - walBefore.syncs) / issuances
    },
    list: statements
      .map(([text, count]) => ({ text: text.replaceAll(/\s+/g, " ").trim(), perIssuance: count / issuances }))
      .sort((one, other) => other.perIssuance - one.perIssuance),
    dearest: counted === undefined ? undefined : dearestOf(counted, issuances)
  }
}

/** Makes all measurements of the service on one database. */
const measureService = async (
  dialect: Dialect,
  options: Options,
  loader: Forked<typeof load>,
  progress: Progress
): Promise<Measured> => {
  progress(`${dialect}: starting`)
  const cluster = dialect === "postgres"
    ? await startPostgres({ durable: true, countsStatements: options.listStatements })
    : undefined
  try {
    const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
    const postgres = cluster === undefined || postmaster === undefined ? undefined : { cluster, postmaster }
    const databaseUrl = await cluster?.createDatabase() ?? "sqlite://bench.db"
    const delayProbe = loopDelayProbe()
    const { directoryUrl, service } = await startMeasured(databaseUrl, loader, options, [
      ...delayProbe.nodeWords,
      ...options.profileDirectory === undefined
        ? []
        : ["--cpu-prof", `--cpu-prof-dir=${resolve(options.profileDirectory)}`],
      ...options.nodeWords
    ])
    let perSecond = await warmUp(loader, directoryUrl, options)
    const rig = options.serviceOnly
      ? undefined
      : await layFloor({
        service,
        loader,
        synchronous: options.synchronous,
        postgres
      })
    const cells: Array<Cell> = []
    for (const concurrency of options.concurrency) {
      progress(`${dialect}: concurrency ${concurrency}`)
      await loader.call("prepare", credentialsFor(options.extent, perSecond, concurrency))
      const parameter = { ...options.extent, concurrency, withProof: options.isProved }
      const before = await rig?.measure({ concurrency })
      const cell = await measureCell(service, loader, postmaster, parameter, () => delayProbe.read(service.pid))
      perSecond = cell.perSecond
      const after = await rig?.measure({ concurrency })
      cells.push({ ...cell, floor: before === undefined || after === undefined ? undefined : between(before, after) })
    }
    rig?.stop()
    await service.stop()
    const isCounted = options.listStatements || !options.serviceOnly
    if (isCounted) progress(`${dialect}: counting statements`)
    const statements = isCounted
      ? await countStatements(dialect, databaseUrl, loader, options, postgres)
      : undefined
    await postmaster?.leave()
    return { name: dialect, cells, statements }
  } finally {
    await cluster?.stop()
  }
}

/** Makes the measurements that the options ask for, on one database after another. */
export const measure = async (options: Options, progress: Progress): Promise<ReadonlyArray<Measured>> => {
  const loader = startForked<typeof load>("load")
  const measured: Array<Measured> = []
  for (const dialect of options.databases) measured.push(await measureService(dialect, options, loader, progress))
  loader.stop()
  return measured
}
