import { readFileSync } from "node:fs"
import { cpus } from "node:os"
import { Client } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load, Percentiles, Window } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import type { Postmaster } from "./Postmaster.ts"
import { postmasterOf } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import type { Service } from "./Service.ts"
import { startService } from "./Service.ts"

/*
 * Measures what it costs and gains to divide the roles of the service between processes. The first division is one
 * process with all roles, and the second is two acme and two worker processes. Each division has a PostgreSQL of its
 * own, and gets the same load from the same two load generators.
 */

// A process gets at least as many issuances as a load generator makes, after which V8 has compiled most of its code. If
// the warm-up lasted for a time, each of several processes would have compiled less of it than a single one.
const warmUpIssuances = 1500

/** The results of one way to divide the roles between processes. CPU is in milliseconds per issuance. */
export interface Division {
  readonly name: string
  readonly issuances: number
  readonly perSecond: number
  /** CPU of the processes that serve clients, of the processes that only run jobs, and of the PostgreSQL server. */
  readonly acmeCpu: number
  readonly workerCpu: number | undefined
  readonly databaseCpu: number
  /** The largest number of database connections at one time, without those of the bench. */
  readonly connections: number
  /** The number of certificates that each process with the worker role issued. */
  readonly jobs: ReadonlyArray<number>
  /** The 99th percentile of a request in milliseconds, from the slower of the two load generators. */
  readonly p99: Percentiles["p99"]
  /** The share of the machine's CPU that all its processes used. */
  readonly machineShare: number
}

/** The cost of both divisions. */
export interface ClusterCost {
  readonly concurrency: number
  readonly processors: number
  readonly divisions: ReadonlyArray<Division>
  /** The issuances per second of the second division, divided by those of the first. */
  readonly scaling: number
}

interface Topology {
  readonly name: string
  readonly acme: ReadonlyArray<Service>
  readonly workers: ReadonlyArray<Service>
}

const issuedBy = ({ logFile }: Service): number => readFileSync(logFile, "utf8").split(`"order_finalized"`).length - 1

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, one) => total + one, 0)

/** Counts the sessions of PostgreSQL at short intervals, to find their largest number. */
const watchConnections = async (databaseUrl: string) => {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  const seen =
    "SELECT count(*)::int AS value FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
  let most = 0
  const look = async () => {
    const { rows } = await client.query<{ readonly value: number }>(seen)
    most = Math.max(most, rows[0]?.value ?? 0)
  }
  await look()
  let looking = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(look)
  }, 250)
  return {
    stop: async (): Promise<number> => {
      clearInterval(timer)
      await looking
      await client.end()
      return most
    }
  }
}

const measureTopology = async (
  { acme, name, workers }: Topology,
  loaders: ReadonlyArray<Forked<typeof load>>,
  postmaster: Postmaster,
  databaseUrl: string,
  { concurrency: given, extent }: Options,
  progress: Progress
): Promise<Division> => {
  const concurrency = Math.max(1, Math.round((given.at(-1) ?? 1) / loaders.length))
  const { issuances, seconds } = extent
  const half = issuances === undefined
    ? { seconds: seconds ?? 5 }
    : { issuances: Math.ceil(issuances / loaders.length) }
  const issue = (extent: Options["extent"]) =>
    Promise.all(loaders.map((loader) => loader.call("run", { ...extent, concurrency })))
  for (const [index, loader] of loaders.entries()) {
    const server = acme[index % acme.length]
    if (server === undefined) throw new Error("nobody serves")
    await loader.call("target", server.directoryUrl)
    await loader.call("prepare", concurrency + (issuances ?? warmUpIssuances + (seconds ?? 0) * 100))
    await loader.call("connect", concurrency)
  }
  progress(`${name}: warming up`)
  await issue(issuances === undefined ? { issuances: warmUpIssuances } : half)
  progress(`${name}: measuring`)
  const worked = workers.length === 0 ? acme : workers
  const cpuOf = (services: ReadonlyArray<Service>) => sum(services.map(({ pid }) => Procfs.cpuOf(pid).total))
  const read = () => ({
    acme: cpuOf(acme),
    workers: cpuOf(workers),
    database: Procfs.cpuOfFamily(postmaster.pid),
    machine: Procfs.machineCpu(),
    jobs: worked.map(issuedBy)
  })
  const watch = await watchConnections(databaseUrl)
  const before = read()
  const begun = performance.now()
  const windows: ReadonlyArray<Window> = await issue(half)
  const elapsed = performance.now() - begun
  const after = read()
  const done = sum(windows.map((window) => window.issuances))
  return {
    name,
    issuances: done,
    perSecond: done / elapsed * 1000,
    acmeCpu: (after.acme - before.acme) / done,
    workerCpu: workers.length === 0 ? undefined : (after.workers - before.workers) / done,
    databaseCpu: (after.database - before.database) / done,
    connections: await watch.stop(),
    jobs: after.jobs.map((count, index) => count - (before.jobs[index] ?? 0)),
    p99: Math.max(...windows.map(({ everyRequest }) => everyRequest.p99)),
    machineShare: (after.machine.busy - before.machine.busy) / (after.machine.total - before.machine.total)
  }
}

const onTheirOwn = async (
  cluster: PostgresCluster,
  start: (databaseUrl: string) => Promise<Topology>,
  options: Options,
  progress: Progress
): Promise<Division> => {
  const databaseUrl = await cluster.createDatabase()
  const topology = await start(databaseUrl)
  const postmaster = await postmasterOf(cluster)
  const loaders = [startForked<typeof load>("load"), startForked<typeof load>("load")]
  try {
    return await measureTopology(topology, loaders, postmaster, databaseUrl, options, progress)
  } finally {
    for (const loader of loaders) loader.stop()
    await Promise.all([...topology.acme, ...topology.workers].map((service) => service.stop()))
    await postmaster.leave()
  }
}

/** Measures both divisions, at the last concurrency of the options. */
export const measureCluster = async (options: Options, progress: Progress): Promise<ClusterCost> => {
  const { nodeWords, synchronous } = options
  const cluster = await startPostgres({ durable: true })
  try {
    progress("cluster: starting")
    const one = await onTheirOwn(
      cluster,
      async (databaseUrl) => ({
        name: "1 process of all roles",
        acme: [await startService({ databaseUrl, synchronous, nodeWords })],
        workers: []
      }),
      options,
      progress
    )
    const divided = await onTheirOwn(
      cluster,
      async (databaseUrl) => {
        const first = await startService({ databaseUrl, synchronous, nodeWords, role: "worker" })
        // The first worker makes the schema and the CA, which the others find.
        const { directory } = first
        const more = (role: "acme" | "worker") => startService({ databaseUrl, synchronous, nodeWords, role, directory })
        const workers = [first, await more("worker")]
        return { name: "2 acme and 2 worker processes", acme: [await more("acme"), await more("acme")], workers }
      },
      options,
      progress
    )
    return {
      concurrency: options.concurrency.at(-1) ?? 1,
      processors: cpus().length,
      divisions: [one, divided],
      scaling: divided.perSecond / one.perSecond
    }
  } finally {
    await cluster.stop()
  }
}

/** Prints the figures as a table, with a sentence about what limits them. */
export const clusterReport = (paint: Paint, { concurrency, divisions, processors, scaling }: ClusterCost): string => {
  const total = ({ acmeCpu, databaseCpu, workerCpu = 0 }: Division) => acmeCpu + workerCpu + databaseCpu
  const [one, divided] = divisions
  return [
    paint.strong(`Roles apart on PostgreSQL, ${concurrency} clients`),
    table(
      paint,
      [
        "",
        "issuances",
        "issuances/s",
        "CPU ms: acme",
        "worker",
        "database",
        "sum",
        "connections",
        "issued by each",
        "p99 ms"
      ],
      divisions.map((division) => [
        division.name,
        String(division.issuances),
        fixed(division.perSecond, 1),
        fixed(division.acmeCpu, 2),
        fixed(division.workerCpu, 2),
        fixed(division.databaseCpu, 2),
        fixed(total(division), 2),
        String(division.connections),
        division.jobs.join(" + "),
        fixed(division.p99, 1)
      ])
    ),
    [
      `  scaling  ${scaling.toFixed(2)} times the issuances per second`
      + (one === undefined || divided === undefined
        ? ""
        : `, at ${(total(divided) / total(one)).toFixed(2)} times the CPU per issuance`),
      `  bound    ${processors} processors for the service, PostgreSQL and the load generators together, in use to ${
        divisions.map(({ machineShare }) => `${Math.round(machineShare * 100)} %`).join(" and ")
      }`,
      "           near 100 % a rate tells of the processors and not of the service: the CPU per issuance is what scales"
    ].join("\n")
  ].join("\n\n")
}
