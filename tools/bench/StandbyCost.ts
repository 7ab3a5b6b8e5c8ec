import { setTimeout as delay } from "node:timers/promises"
import { Client } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { Done } from "./Commits.ts"
import { openCommitters } from "./Commits.ts"
import { startForked } from "./Forked.ts"
import type { Extent, load } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import { summed } from "./Rig.ts"
import { startService } from "./Service.ts"

/*
 * Measures what it costs if commits wait for a standby. Clients commit small transactions. Some of them do not notify,
 * some notify within the transaction, and some are announced afterwards. Then clients issue certificates. A standby
 * always follows, so that the machine has the same work whatever a commit waits for.
 */

const rounds = 2
const warmUpSeconds = 5
const settlingMillis = 500

/** What a commit waits for, as settings of the server and of its standby. */
interface Wait {
  readonly name: string
  readonly server: ReadonlyArray<string>
  readonly standby: string
}

const waits: ReadonlyArray<Wait> = [
  {
    name: "commits wait for no standby",
    server: ["synchronous_standby_names = ''", "synchronous_commit = on"],
    standby: "recovery_min_apply_delay = 0"
  },
  {
    name: "commits wait for the disk of the standby",
    server: ["synchronous_standby_names = '*'", "synchronous_commit = on"],
    standby: "recovery_min_apply_delay = 0"
  },
  {
    name: "commits wait for their replay, 10 ms later",
    server: ["synchronous_standby_names = '*'", "synchronous_commit = remote_apply"],
    standby: "recovery_min_apply_delay = '10ms'"
  }
]

/** The figures of one kind of work. */
export interface Rate {
  readonly name: string
  readonly count: number
  readonly perSecond: number
  /** Milliseconds of one commit or issuance. */
  readonly p50: number
  readonly p95: number
  /** The rate divided by the rate of commits that do not notify. Present only for commits. */
  readonly toPlain: number | undefined
  /** The rate divided by the rate of the same work if commits wait for no standby. */
  readonly toNone: number
  /** How many notifications a listening session got in a second. Present only for commits. */
  readonly heard: number | undefined
}

/** The figures of all work while commits wait in one of the ways of `waits`. */
export interface Condition {
  readonly name: string
  readonly rates: ReadonlyArray<Rate>
}

/** All figures of a run. */
export interface StandbyCost {
  readonly concurrency: number
  readonly conditions: ReadonlyArray<Condition>
}

/** One kind of work, and how much of it was done. */
export interface WorkDone {
  readonly name: string
  readonly isCommit: boolean
  readonly done: Done
}

/**
 * Compares the rates of each condition with the rates of the first condition, and the rates of commits with the rates
 * of the first work.
 */
export const comparedRates = (
  measured: ReadonlyArray<{ readonly name: string; readonly works: ReadonlyArray<WorkDone> }>
): ReadonlyArray<Condition> => {
  const rateOf = ({ count, elapsedMs }: Done) => count / elapsedMs * 1000
  return measured.map(({ name, works }) => ({
    name,
    rates: works.map(({ done, isCommit, name }, index) => {
      const perSecond = rateOf(done)
      const [plain] = works
      const none = measured[0]?.works[index]
      const { p50, p95 } = percentilesOf(done.durations)
      return {
        name,
        count: done.count,
        perSecond,
        p50,
        p95,
        toPlain: isCommit && plain !== undefined ? perSecond / rateOf(plain.done) : undefined,
        toNone: none === undefined ? Number.NaN : perSecond / rateOf(none.done),
        heard: isCommit ? done.heard / done.elapsedMs * 1000 : undefined
      }
    })
  }))
}

const nothing: Done = { count: 0, elapsedMs: 0, durations: [], heard: 0 }
const added = (one: Done, other: Done): Done => ({
  count: one.count + other.count,
  elapsedMs: one.elapsedMs + other.elapsedMs,
  durations: [...one.durations, ...other.durations],
  heard: one.heard + other.heard
})

const configure = async (url: string, settings: ReadonlyArray<string>): Promise<void> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  for (const setting of settings) await client.query(`ALTER SYSTEM SET ${setting}`)
  await client.query("SELECT pg_reload_conf()")
  await client.end()
}

/** Changes what commits wait for, even in sessions that are already open. */
const change = async ({ adminUrl }: PostgresCluster, standbyPort: number, wait: Wait): Promise<void> => {
  const standby = new URL(adminUrl)
  standby.port = `${standbyPort}`
  await configure(standby.href, [wait.standby])
  await configure(adminUrl, wait.server)
  await delay(settlingMillis)
}

interface Work {
  readonly name: string
  readonly isCommit: boolean
  readonly run: (extent: Extent) => Promise<Done>
}

/**
 * Starts an acme and a worker process, and issues certificates through them. Every job is announced, because no process
 * runs a job that it has enqueued itself.
 */
const serve = async (
  cluster: PostgresCluster,
  concurrency: number,
  { extent: asked, nodeWords, synchronous }: Options
) => {
  const options = { databaseUrl: await cluster.createDatabase(), synchronous, nodeWords }
  const worker = await startService({ ...options, role: "worker" })
  const acme = await startService({ ...options, role: "acme", directory: worker.directory })
  const loader = startForked<typeof load>("load")
  await loader.call("target", acme.directoryUrl)
  const run = async (extent: Extent): Promise<Done> => {
    await loader.call("prepare", concurrency + (extent.issuances ?? Math.ceil((extent.seconds ?? 0) * 200)))
    await loader.call("connect", concurrency)
    const { elapsedMs, issuances } = await loader.call("run", { ...extent, concurrency })
    return { count: issuances, elapsedMs, durations: await loader.call("durations"), heard: 0 }
  }
  await run(asked.issuances === undefined ? { seconds: warmUpSeconds } : asked)
  return {
    run,
    stop: async () => {
      loader.stop()
      await Promise.all([acme.stop(), worker.stop()])
    }
  }
}

/** Measures each way in which commits can wait, in turns, with the last concurrency of the options. */
export const measureStandby = async (options: Options, progress: Progress): Promise<StandbyCost> => {
  const { extent } = options
  const concurrency = options.concurrency.at(-1) ?? 1
  const cluster = await startPostgres({ durable: true, followed: true })
  try {
    progress("standby: starting")
    const service = await serve(cluster, concurrency, options)
    const committers = await openCommitters(await cluster.createDatabase(), concurrency)
    const follower = await cluster.follower({ isAsynchronous: true })
    try {
      const works: ReadonlyArray<Work> = [
        { name: "commits", isCommit: true, run: (window) => committers.run("none", window) },
        { name: "commits that notify", isCommit: true, run: (window) => committers.run("within", window) },
        { name: "commits, announced afterwards", isCommit: true, run: (window) => committers.run("after", window) },
        { name: "issuances", isCommit: false, run: service.run }
      ]
      let present: Wait | undefined
      const sums = await summed(
        waits.flatMap((wait) => works.map((work) => ({ wait, work }))),
        extent.issuances === undefined ? rounds : 1,
        nothing,
        async ({ wait, work }, round, so) => {
          if (wait !== present) {
            progress(`standby: round ${round}, ${wait.name}`)
            await change(cluster, follower.port, wait)
            present = wait
          }
          return added(so, await work.run(extent))
        }
      )
      return {
        concurrency,
        conditions: comparedRates(waits.map(({ name }) => ({
          name,
          works: sums.flatMap(([{ wait, work }, done]) => wait.name === name ? [{ ...work, done }] : [])
        })))
      }
    } finally {
      await Promise.all([committers.close(), service.stop()])
      await follower.stop()
    }
  } finally {
    await cluster.stop()
  }
}

/** Prints a table for each way in which commits can wait. */
export const standbyReport = (paint: Paint, { concurrency, conditions }: StandbyCost): string =>
  conditions.map(({ name, rates }) =>
    [
      paint.strong(`${concurrency} clients, ${name}`),
      table(
        paint,
        ["", "a second", "to commits", "to no standby", "ms p50", "p95", "notifications/s"],
        rates.map((one) => [
          one.name,
          paint.strong(fixed(one.perSecond, one.toPlain === undefined ? 1 : 0)),
          fixed(one.toPlain, 2),
          fixed(one.toNone, 2),
          fixed(one.p50, 1),
          fixed(one.p95, 1),
          fixed(one.heard, 0)
        ])
      )
    ].join("\n\n")
  ).join("\n\n")
