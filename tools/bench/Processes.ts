import { setTimeout as delay } from "node:timers/promises"
import { Client } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
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
 * Measures which costs grow with the number of processes over one PostgreSQL. Half of the processes have the role acme,
 * and half are workers. First all processes are idle, and then two load generators request certificates from the first
 * two.
 */

/** The time after which a process has done everything that it does once after its start. */
const settlingMillis = 15_000
const idleMillis = 30_000
const loadSeconds = 10
const counts = [2, 10, 40]

/** The results for one number of processes. CPU is in milliseconds. */
export interface Crowd {
  readonly processes: number
  readonly workers: number
  /** The sessions of PostgreSQL while all processes are idle, and how many of these sessions use LISTEN. */
  readonly connections: number
  readonly listening: number
  /** PostgreSQL's CPU, transactions and new sessions in a second without requests. */
  readonly databaseCpu: number
  readonly transactions: number
  readonly newSessions: number
  /** The CPU of one idle process in a second, as a mean over the processes. */
  readonly processCpu: number
  /** The issuances in a second under load, and PostgreSQL's CPU for one issuance. */
  readonly perSecond: number
  readonly databaseCpuPerIssuance: number
}

interface Server {
  readonly client: Client
  readonly postmaster: Postmaster
}

const numberOf = async ({ client }: Server, sql: string): Promise<number> => {
  const { rows } = await client.query<{ readonly value: string | number }>(sql)
  return Number(rows[0]?.value)
}

const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
const statOf = (column: string) => `SELECT ${column} AS value FROM pg_stat_database WHERE datname = current_database()`

const readServer = async (server: Server) => ({
  cpu: Procfs.cpuOfFamily(server.postmaster.pid),
  transactions: await numberOf(server, statOf("xact_commit")),
  sessions: await numberOf(server, statOf("sessions"))
})

const cpuOf = (services: ReadonlyArray<Service>): number =>
  services.reduce((sum, { pid }) => sum + Procfs.cpuOf(pid).total, 0)

const startCrowd = async (processes: number, databaseUrl: string, { nodeWords, synchronous }: Options) => {
  const options = { databaseUrl, synchronous, nodeWords }
  // The first worker makes the schema and the CA, which the others find.
  const first = await startService({ ...options, role: "worker" })
  const { directory } = first
  const [acme, workers]: [Array<Service>, Array<Service>] = [[], [first]]
  while (acme.length + workers.length < processes) {
    const role = acme.length < workers.length ? "acme" : "worker"
    ;(role === "acme" ? acme : workers).push(await startService({ ...options, role, directory }))
  }
  return { acme, workers }
}

const measureCrowd = async (
  processes: number,
  cluster: PostgresCluster,
  options: Options,
  progress: Progress
): Promise<Crowd> => {
  const { part } = options
  progress(`${processes} processes: starting`)
  const databaseUrl = await cluster.createDatabase()
  const { acme, workers } = await startCrowd(processes, databaseUrl, options)
  const all = [...acme, ...workers]
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  const server = { client, postmaster: await postmasterOf(cluster) }
  const loaders = [startForked<typeof load>("load"), startForked<typeof load>("load")]
  try {
    await delay(settlingMillis * part)
    progress(`${processes} processes: idle`)
    const [before, begun, calm] = [await readServer(server), performance.now(), cpuOf(all)]
    await delay(idleMillis * part)
    const seconds = (performance.now() - begun) / 1000
    const [after, used] = [await readServer(server), cpuOf(all) - calm]
    const connections = await numberOf(server, `SELECT count(*) AS value ${others}`)
    const listening = await numberOf(server, `SELECT count(*) AS value ${others} AND query LIKE 'LISTEN %'`)
    progress(`${processes} processes: load`)
    for (const [index, loader] of loaders.entries()) {
      await loader.call("target", acme[index % acme.length]?.directoryUrl ?? "")
      await loader.call("prepare", 2000)
    }
    const run = () =>
      Promise.all(loaders.map((one) => one.call("run", { concurrency: 8, seconds: loadSeconds * part })))
    await run()
    const [atRest, started] = [Procfs.cpuOfFamily(server.postmaster.pid), performance.now()]
    const issued = (await run()).reduce((sum, { issuances }) => sum + issuances, 0)
    const took = (performance.now() - started) / 1000
    return {
      processes,
      workers: workers.length,
      connections,
      listening,
      databaseCpu: (after.cpu - before.cpu) / seconds,
      transactions: (after.transactions - before.transactions) / seconds,
      newSessions: (after.sessions - before.sessions) / seconds,
      processCpu: used / seconds / processes,
      perSecond: issued / took,
      databaseCpuPerIssuance: (Procfs.cpuOfFamily(server.postmaster.pid) - atRest) / issued
    }
  } finally {
    for (const loader of loaders) loader.stop()
    await Promise.all(all.map((service) => service.stop()))
    await client.end()
    await server.postmaster.leave()
  }
}

/** Measures 2, 10 and 40 processes, each number over a database of its own. */
export const measureProcesses = async (options: Options, progress: Progress): Promise<ReadonlyArray<Crowd>> => {
  const cluster = await startPostgres({ durable: true, connections: 500 })
  try {
    const measured: Array<Crowd> = []
    for (const processes of counts) measured.push(await measureCrowd(processes, cluster, options, progress))
    return measured
  } finally {
    await cluster.stop()
  }
}

/** Prints the figures as a table, and estimates from them the costs of more processes than were run. */
export const processesReport = (paint: Paint, measured: ReadonlyArray<Crowd>): string => {
  const [least, most] = [measured[0], measured.at(-1)]
  if (least === undefined || most === undefined) return "nothing was measured"
  const grown = most.processes - least.processes
  const cpuEach = (most.databaseCpu - least.databaseCpu) / grown
  const transactionsEach = (most.transactions - least.transactions) / grown
  const forecast = [100, 1000].map((processes) => {
    const more = processes - least.processes
    const cpu = least.databaseCpu + more * cpuEach
    return `  ${processes} idle processes  ${(cpu / 10).toFixed(1)} % of a core of PostgreSQL, ${
      (least.transactions + more * transactionsEach).toFixed(0)
    } transactions a second`
  })
  return [
    paint.strong("Processes over one PostgreSQL, half acme, half workers"),
    table(
      paint,
      [
        "processes",
        "connections",
        "listening",
        "database CPU ms/s",
        "transactions/s",
        "new sessions/s",
        "CPU ms/s of a process",
        "issuances/s",
        "database CPU ms each"
      ],
      measured.map((one) => [
        String(one.processes),
        String(one.connections),
        String(one.listening),
        fixed(one.databaseCpu, 2),
        fixed(one.transactions, 1),
        fixed(one.newSessions, 2),
        fixed(one.processCpu, 2),
        fixed(one.perSecond, 1),
        fixed(one.databaseCpuPerIssuance, 2)
      ])
    ),
    [
      `  An idle process more costs the server ${cpuEach.toFixed(2)} ms of CPU a second.`,
      ...forecast
    ].join("\n")
  ].join("\n\n")
}
