import Sqlite from "better-sqlite3"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { Client } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { Percentiles } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import { postmasterOf } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { queueRun, QueueWindow } from "./QueueRun.ts"
import { tuning } from "./QueueRun.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import { migrate } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures the cost of the job queue itself. The service's own code enqueues, claims, begins and settles jobs that do
 * nothing, with more and more rows of done jobs in the table.
 */

const atOnce = 32
const warmUpJobs = 2000
const largestHistory = 1_000_000
const day = 86_400

/** The cost of a job while the table has `history` rows of done jobs. */
export interface HistoryCost {
  readonly history: number
  readonly jobs: number
  readonly perSecond: number
  /** CPU milliseconds per job: of the process that enqueues and runs the jobs, and of the PostgreSQL server. */
  readonly cpu: number
  readonly databaseCpu: number | undefined
}

/** All results about the queue on one database. */
export interface QueueCost {
  readonly name: Dialect
  /** The time from `enqueue` to the beginning of the work, in one process and with one job at a time. */
  readonly alone: Percentiles
  readonly histories: ReadonlyArray<HistoryCost>
  /** The same time if another process enqueues the job, first with NOTIFY, and then with only polling. */
  readonly told: Percentiles | undefined
  readonly polled: Percentiles | undefined
}

type Runner = Forked<typeof queueRun>

/** Adds rows of done jobs. The database engine generates these rows. */
const addHistory = async (dialect: Dialect, where: string, count: number): Promise<void> => {
  const since = Math.floor(Date.now() / 1000) - day
  const columns =
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)`
  if (dialect === "sqlite") {
    const database = new Sqlite(where)
    database.pragma("busy_timeout = 10000")
    database.exec(
      `${columns} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       SELECT randomblob(16), 'signer_issue', lower(hex(randomblob(16))), '{}', 'done', ${since} + i % ${day}, 1, 5, ${since}, ${since} + i % ${day} FROM n`
    )
    database.close()
    return
  }
  const client = new Client({ connectionString: where })
  await client.connect()
  await client.query("SET synchronous_commit = off")
  await client.query(
    `${columns} SELECT gen_random_uuid(), 'signer_issue', gen_random_uuid()::text, '{}', 'done', ${since} + i % ${day}, 1, 5, ${since}, ${since} + i % ${day}
     FROM generate_series(1, ${count}::bigint) AS n(i)`
  )
  await client.query("VACUUM ANALYZE jobs") // Autovacuum would do this at some time.
  await client.query("CHECKPOINT") // This writes the new rows to the disk now, and not while the bench measures.
  const { rows: [backend] } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")
  await client.end()
  // When a backend ends, its CPU time is added to the parent's. So it must end before the bench measures.
  while (existsSync(`/proc/${backend?.pid}`)) await delay(10)
}

const measureHistory = async (
  runner: Runner,
  databaseCpu: () => number | undefined,
  history: number,
  { extent }: Options
): Promise<HistoryCost> => {
  const { issuances: jobs, seconds } = extent
  const read = () => ({ process: Procfs.cpuOf(runner.pid).total, database: databaseCpu() })
  const before = read()
  const window: QueueWindow = await runner.call(
    "run",
    jobs === undefined ? { atOnce, seconds: seconds ?? 5 } : { atOnce, jobs }
  )
  const after = read()
  return {
    history,
    jobs: window.jobs,
    perSecond: window.jobs / window.elapsedMs * 1000,
    cpu: (after.process - before.process) / window.jobs,
    databaseCpu: before.database === undefined ? undefined : ((after.database ?? 0) - before.database) / window.jobs
  }
}

/** Measures how long it takes until one process begins a job that another process has enqueued. */
const measureOthers = async (where: string, options: Options, hears: boolean, jobs: number): Promise<Percentiles> => {
  const [sender, runner]: [Runner, Runner] = [startForked("queue"), startForked("queue")]
  const { synchronous } = options
  await runner.call("open", { where, synchronous, runs: true, hears })
  await sender.call("open", { where, synchronous, runs: false, hears: false })
  const asked = await sender.call("send", jobs)
  const begins = await runner.call("begins", asked.map(([key]) => key))
  await sender.call("close")
  await runner.call("close")
  sender.stop()
  runner.stop()
  return percentilesOf(begins.map((at, index) => at - (asked[index]?.[1] ?? at)))
}

const measureDialect = async (dialect: Dialect, options: Options, progress: Progress): Promise<QueueCost> => {
  progress(`${dialect}: starting`)
  const cluster: PostgresCluster | undefined = dialect === "postgres"
    ? await startPostgres({ durable: true })
    : undefined
  try {
    const { extent, synchronous } = options
    const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
    const databaseUrl = await cluster?.createDatabase() ?? "sqlite://queue.db"
    const directory = migrate({ databaseUrl, synchronous })
    const where = dialect === "sqlite" ? join(directory, "queue.db") : databaseUrl
    const runner: Runner = startForked("queue")
    await runner.call("open", { where, synchronous, runs: true, hears: true })
    await runner.call("run", { atOnce, jobs: extent.issuances ?? warmUpJobs })
    progress(`${dialect}: one job at a time`)
    const { begins: alone } = await runner.call("run", { atOnce: 1, jobs: extent.issuances ?? 1000 })
    const histories: Array<HistoryCost> = []
    let history = 0
    for (const size of [0, 10_000, 100_000, largestHistory]) {
      const wanted = Math.round(size * options.part)
      progress(`${dialect}: beside ${wanted} done jobs`)
      if (wanted > history) await addHistory(dialect, where, wanted - history)
      history = Math.max(history, wanted)
      histories.push(
        await measureHistory(
          runner,
          () => postmaster === undefined ? undefined : Procfs.cpuOfFamily(postmaster.pid),
          history,
          options
        )
      )
    }
    await runner.call("close")
    runner.stop()
    const others = async (hears: boolean) => {
      progress(`${dialect}: between processes, ${hears ? "told" : "polling"}`)
      return await measureOthers(where, options, hears, extent.issuances ?? 200)
    }
    const told = dialect === "postgres" ? await others(true) : undefined
    const polled = await others(false)
    await postmaster?.leave()
    return { name: dialect, alone, histories, told, polled }
  } finally {
    await cluster?.stop()
  }
}

/** Measures the queue on each database. */
export const measureQueue = async (options: Options, progress: Progress): Promise<ReadonlyArray<QueueCost>> => {
  const costs: Array<QueueCost> = []
  for (const dialect of options.databases) costs.push(await measureDialect(dialect, options, progress))
  return costs
}

const latency = (label: string, given: Percentiles | undefined): ReadonlyArray<ReadonlyArray<string>> =>
  given === undefined
    ? []
    : [[label, ...[given.p50, given.p95, given.p99].map((ms) => ms.toFixed(1)), String(given.count)]]

/** Returns the figures as tables. */
export const queueReport = (paint: Paint, costs: ReadonlyArray<QueueCost>): string =>
  costs.map(({ alone, histories, name, polled, told }) => {
    const [empty] = histories
    const cost = (one: HistoryCost) => one.cpu + (one.databaseCpu ?? 0)
    return [
      paint.strong(
        `The queue on ${name === "sqlite" ? "SQLite" : "PostgreSQL"}: jobs that do nothing, ${atOnce} at once`
      ),
      table(
        paint,
        [
          "done jobs beside",
          "jobs",
          "jobs/s",
          "CPU ms per job",
          ...name === "postgres" ? ["database ms"] : [],
          "to none"
        ],
        histories.map((one) => [
          String(one.history),
          String(one.jobs),
          fixed(one.perSecond, 0),
          fixed(one.cpu, 3),
          ...name === "postgres" ? [fixed(one.databaseCpu, 3)] : [],
          empty === undefined ? "-" : (cost(one) / cost(empty)).toFixed(2)
        ])
      ),
      table(paint, ["ms from enqueue to begin", "p50", "p95", "p99", "jobs"], [
        ...latency("same process, one job at a time", alone),
        ...latency("another process, told by NOTIFY", told),
        ...latency(`another process, polling every ${tuning.poll_interval_ms} ms`, polled)
      ])
    ].join("\n\n")
  }).join("\n\n")
