import { join, resolve } from "node:path"
import { Client } from "pg"
import type { PostgresCluster } from "../test/support/Postgres.ts"
import { startPostgres } from "../test/support/Postgres.ts"
import type { bareHttp } from "./BareHttp.ts"
import type { Cryptography, floor } from "./Floor.ts"
import type { Exchange, load, Window } from "./Load.ts"
import type { Options } from "./Options.ts"
import { isInstalled, startPebble } from "./Pebble.ts"
import type { Peer } from "./Peer.ts"
import { startPeer } from "./Peer.ts"
import type { LoopDelay } from "./Probe.ts"
import { loopDelayProbe, statementProbe } from "./Probe.ts"
import * as Procfs from "./Procfs.ts"
import type { Service } from "./Service.ts"
import { migrate, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/** The floor measured beside one window, in CPU microseconds per issuance. */
export interface Floor extends Cryptography {
  readonly http: number
  readonly statements: number
  /** The cost of the statements in the database server; on SQLite it is part of the process. */
  readonly databaseServer: number
  /** The process's own part: everything but `databaseServer`. */
  readonly total: number
}

/** One concurrency at one server. Times are CPU milliseconds per issuance unless they say otherwise. */
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
  /** Shares of one core and of the whole machine. */
  readonly clientShare: number
  readonly otherShare: number
  readonly floor: Floor | undefined
}

/** The statements the service sends to its database for one issuance. */
export interface Statements {
  readonly perIssuance: number
  readonly writingTransactions: number
  readonly list: ReadonlyArray<{ readonly text: string; readonly perIssuance: number }>
}

export interface Measured {
  readonly name: Dialect | "pebble"
  readonly cells: ReadonlyArray<Cell>
  readonly statements: Statements | undefined
}

export type Progress = (text: string) => void

// The runtime's compiler works in the background for this long before the code is stable. A few issuances need less.
const warmUpSeconds = ({ seconds }: Options["extent"]): number =>
  seconds === undefined ? 4 : 4 + 2 * Math.min(seconds, 6)
// One round; there is one before and one after each window.
const floorMillis = { cryptography: 100, sqlite: 300, http: 600 }
const floorIssuances = 108
const countedIssuances = 240

/** Enough for the window, estimated from the rate of the one before. */
const credentialsFor = ({ issuances, seconds }: Options["extent"], perSecond: number, concurrency: number): number =>
  concurrency + (issuances ?? Math.ceil((seconds ?? 0) * perSecond * 1.5))

/** The parent of a PostgreSQL cluster's processes. */
export interface Postmaster {
  readonly pid: number
  /** The number of the next transaction that writes. */
  readonly nextTransaction: () => Promise<number>
  readonly leave: () => Promise<void>
}

/** Finds it; `leave` closes the connection that was needed. */
export const postmasterOf = async (cluster: PostgresCluster): Promise<Postmaster> => {
  const client = new Client({ connectionString: cluster.adminUrl })
  await client.connect()
  const one = async (sql: string): Promise<number> => {
    const { rows } = await client.query<{ readonly value: string | number }>(sql)
    return Number(rows[0]?.value)
  }
  const pid = Procfs.parentOf(await one("SELECT pg_backend_pid() AS value"))
  return {
    pid,
    nextTransaction: () => one("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS value"),
    leave: () => client.end()
  }
}

const lastOfEachKind = (exchanges: ReadonlyArray<Exchange>): ReadonlyArray<Exchange> => [
  ...new Map(exchanges.map((exchange) => [exchange.kind, exchange])).values()
]

interface Watched {
  readonly pid: number
  readonly logged?: () => number
}

/** Runs one window, and reads the CPU time of every process. */
const measureCell = async (
  watched: Watched,
  loader: Peer<typeof load>,
  postmaster: Postmaster | undefined,
  parameter: Options["extent"] & { readonly concurrency: number },
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

const between = (before: Floor, after: Floor): Floor => {
  const mean = (key: keyof Floor) => (before[key] + after[key]) / 2
  return {
    verify: mean("verify"),
    importKey: mean("importKey"),
    csr: mean("csr"),
    leaf: mean("leaf"),
    lint: mean("lint"),
    http: mean("http"),
    statements: mean("statements"),
    databaseServer: mean("databaseServer"),
    total: mean("total")
  }
}

/** The processes that measure the floor beside a server. */
interface FloorRig {
  readonly measure: (concurrency: number) => Promise<Floor>
  readonly stop: () => void
}

const layFloor = async (
  service: Service,
  loader: Peer<typeof load>,
  options: Options,
  postgres: { readonly cluster: PostgresCluster; readonly postmaster: Postmaster } | undefined
): Promise<FloorRig> => {
  const exchanges = lastOfEachKind(await loader.call("sample"))
  const worker = startPeer<typeof floor>("floor")
  const http = startPeer<typeof bareHttp>("http")
  await worker.call("lay", { exchanges, caDirectory: service.directory })
  const port = await http.call("serve", exchanges)
  const requests = exchanges.map(({ request }) => request)

  const measureHttp = async (concurrency: number, millis: number): Promise<number> => {
    const before = Procfs.cpuOf(http.pid).total
    const { issuances } = await loader.call("replay", { port, requests, concurrency, seconds: millis / 1000 })
    return (Procfs.cpuOf(http.pid).total - before) / issuances * 1000
  }

  const { synchronous } = options
  if (postgres === undefined) {
    const directory = migrate({ databaseUrl: "sqlite://floor.db", synchronous })
    await worker.call("openSqlite", { file: join(directory, "floor.db"), synchronous })
  } else {
    const databaseUrl = await postgres.cluster.createDatabase()
    migrate({ databaseUrl, synchronous })
    await worker.call("openPostgres", databaseUrl)
  }
  const measureStatements = async (concurrency: number, scale: number) => {
    if (postgres === undefined) {
      return { statements: await worker.call("sqlite", floorMillis.sqlite * scale), databaseServer: 0 }
    }
    const { pid } = postgres.postmaster
    const before = Procfs.cpuOfFamily(pid)
    const bout = await worker.call("postgres", { concurrency, issuances: floorIssuances * scale })
    return {
      statements: bout.microseconds,
      databaseServer: (Procfs.cpuOfFamily(pid) - before) / bout.issuances * 1000
    }
  }

  // The first rounds only warm the code up.
  await worker.call("cryptography", 200)
  await measureStatements(8, 3)
  await measureHttp(8, 2000)
  return {
    measure: async (concurrency) => {
      const cryptography = await worker.call("cryptography", floorMillis.cryptography)
      const statements = await measureStatements(concurrency, 1)
      const bare = { ...cryptography, http: await measureHttp(concurrency, floorMillis.http), ...statements }
      const { csr, http: served, importKey, leaf, lint, statements: stored, verify } = bare
      return { ...bare, total: verify + importKey + csr + leaf + lint + served + stored }
    },
    stop: () => {
      worker.stop()
      http.stop()
    }
  }
}

const warmUp = async (
  loader: Peer<typeof load>,
  directoryUrl: string,
  extent: Options["extent"]
): Promise<number> => {
  const seconds = warmUpSeconds(extent)
  await loader.call("target", directoryUrl)
  await loader.call("prepare", 200 * seconds)
  const { elapsedMs, issuances } = await loader.call("run", { concurrency: 8, seconds })
  return issuances / elapsedMs * 1000
}

const countStatements = async (
  dialect: Dialect,
  databaseUrl: string,
  loader: Peer<typeof load>,
  options: Options,
  postmaster: Postmaster | undefined
): Promise<Statements> => {
  const probe = statementProbe()
  const service = await startService({ databaseUrl, synchronous: options.synchronous, nodeWords: probe.nodeWords })
  await loader.call("target", service.directoryUrl)
  await loader.call("prepare", 2 * countedIssuances)
  await loader.call("run", { concurrency: 8, issuances: countedIssuances })
  await probe.read(service.pid)
  const before = await postmaster?.nextTransaction()
  const { issuances } = await loader.call("run", { concurrency: 8, issuances: countedIssuances })
  const after = await postmaster?.nextTransaction()
  const { statements, writes } = await probe.read(service.pid)
  await service.stop()
  const written = dialect === "sqlite" ? writes : (after ?? 0) - (before ?? 0)
  return {
    perIssuance: statements.reduce((sum, [, count]) => sum + count, 0) / issuances,
    writingTransactions: written / issuances,
    list: statements
      .map(([text, count]) => ({ text: text.replaceAll(/\s+/g, " ").trim(), perIssuance: count / issuances }))
      .sort((one, other) => other.perIssuance - one.perIssuance)
  }
}

/** Everything about the service on one database. */
const measureService = async (
  dialect: Dialect,
  options: Options,
  loader: Peer<typeof load>,
  progress: Progress
): Promise<Measured> => {
  progress(`${dialect}: starting`)
  const cluster = dialect === "postgres" ? await startPostgres({ durable: true }) : undefined
  try {
    const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
    const databaseUrl = await cluster?.createDatabase() ?? "sqlite://bench.db"
    const delayProbe = loopDelayProbe()
    const service = await startService({
      databaseUrl,
      synchronous: options.synchronous,
      nodeWords: [
        ...delayProbe.nodeWords,
        ...options.profileDirectory === undefined
          ? []
          : ["--cpu-prof", `--cpu-prof-dir=${resolve(options.profileDirectory)}`],
        ...options.nodeWords
      ]
    })
    let perSecond = await warmUp(loader, service.directoryUrl, options.extent)
    const rig = options.serviceOnly
      ? undefined
      : await layFloor(
        service,
        loader,
        options,
        cluster === undefined || postmaster === undefined ? undefined : { cluster, postmaster }
      )
    const cells: Array<Cell> = []
    for (const concurrency of options.concurrency) {
      progress(`${dialect}: concurrency ${concurrency}`)
      await loader.call("prepare", credentialsFor(options.extent, perSecond, concurrency))
      const parameter = { ...options.extent, concurrency }
      const before = await rig?.measure(concurrency)
      const cell = await measureCell(service, loader, postmaster, parameter, () => delayProbe.read(service.pid))
      perSecond = cell.perSecond
      const after = await rig?.measure(concurrency)
      cells.push({ ...cell, floor: before === undefined || after === undefined ? undefined : between(before, after) })
    }
    rig?.stop()
    await service.stop()
    progress(`${dialect}: counting statements`)
    const statements = options.serviceOnly
      ? undefined
      : await countStatements(dialect, databaseUrl, loader, options, postmaster)
    await postmaster?.leave()
    return { name: dialect, cells, statements }
  } finally {
    await cluster?.stop()
  }
}

const pebbleAttempts = 6
const pebbleWarmUp = 100

/** A new Pebble for every window: each order makes the next one more expensive. */
const measurePebbleCell = async (
  { extent }: Options,
  concurrency: number,
  loader: Peer<typeof load>
): Promise<Cell> => {
  const pebble = await startPebble()
  try {
    await loader.call("target", pebble.directoryUrl)
    await loader.call("prepare", 500)
    const { elapsedMs, issuances } = await loader.call("run", { concurrency, issuances: pebbleWarmUp })
    await loader.call("prepare", credentialsFor(extent, issuances / elapsedMs * 1000, concurrency))
    const cell = await measureCell(pebble, loader, undefined, { ...extent, concurrency }, undefined)
    return { ...cell, floor: undefined }
  } finally {
    await pebble.stop()
  }
}

/** Pebble 2.4 sometimes deadlocks when orders are made at once; another one is started then. */
const measurePebble = async (options: Options, loader: Peer<typeof load>, progress: Progress): Promise<Measured> => {
  const cells: Array<Cell> = []
  for (const concurrency of options.concurrency) {
    for (let attempt = 1;; attempt++) {
      progress(`pebble: concurrency ${concurrency}${attempt > 1 ? `, attempt ${attempt}` : ""}`)
      const cell = await measurePebbleCell(options, concurrency, loader).catch((error: unknown) => {
        const [reason = ""] = (error instanceof Error ? error.message : String(error)).split("\n")
        progress(`pebble: ${reason}`)
        return undefined
      })
      if (cell !== undefined) cells.push(cell)
      if (cell !== undefined || attempt === pebbleAttempts) break
    }
  }
  return { name: "pebble", cells, statements: undefined }
}

/** Measures what the options ask for, one server after another. */
export const measure = async (options: Options, progress: Progress): Promise<ReadonlyArray<Measured>> => {
  if (options.pebble && !isInstalled()) throw new Error("pebble is not installed; on Debian: apt-get install pebble")
  const loader = startPeer<typeof load>("load")
  const measured: Array<Measured> = []
  for (const dialect of options.databases) measured.push(await measureService(dialect, options, loader, progress))
  if (options.pebble) measured.push(await measurePebble(options, loader, progress))
  loader.stop()
  return measured
}
