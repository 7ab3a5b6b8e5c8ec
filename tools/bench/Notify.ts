import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import { startForked } from "./Forked.ts"
import type { load, Percentiles } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import { postmasterOf } from "./Postmaster.ts"
import type { receivers } from "./Receivers.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import type { Rig } from "./Rig.ts"
import { cpuBetween, idleCost, machineShareOf, read, summed } from "./Rig.ts"
import type { Service } from "./Service.ts"
import { startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures how much more an issuance costs if receivers are notified. One service has three profiles: the first has no
 * receiver, the second has a webhook, and the third has a webhook, a mail server and a program. Every window lasts
 * until its last delivery.
 */

/**
 * The results of one profile over all its windows. CPU is in milliseconds per issuance, without the cost of an idle
 * service.
 */
export interface ToldCost {
  readonly name: string
  readonly issuances: number
  readonly cpu: number
  readonly databaseCpu: number | undefined
  /** CPU as a multiple of the CPU of an issuance without a receiver. */
  readonly ratio: number
  /** How long a whole issuance takes for its client, in milliseconds. */
  readonly issuance: Percentiles
  readonly deliveries: number
  /** Mean milliseconds from the last issuance of a window to the last delivery. */
  readonly behind: number
  /** The share of a core that the service used in that time. With a low share, the service mostly waited. */
  readonly behindShare: number
}

/** All results about notifications on one database. */
export interface NotifyCost {
  readonly name: Dialect
  readonly concurrency: number
  /** CPU milliseconds per second of the service while it gets no requests. */
  readonly idle: number
  readonly ways: ReadonlyArray<ToldCost>
  /** The share of the machine's CPU that was used during the measurements. */
  readonly machineShare: number
}

interface Way {
  readonly name: string
  readonly profile: string
  readonly entries: number
}

const ways: ReadonlyArray<Way> = [
  { name: "nobody", profile: "default", entries: 0 },
  { name: "one webhook", profile: "web", entries: 1 },
  { name: "webhook, mail and program", profile: "all", entries: 3 }
]

/** Each issuance causes two notifications: one for the new account and one for the certificate. */
const eventsPerIssuance = 2
const timedRounds = 4
const patienceMs = 300_000
const timeout = "timeout_ms = 60000"

const configurationOf = (ports: { readonly web: number; readonly mail: number }): string => {
  const program = join(temporaryDirectory(), "told")
  writeFileSync(program, "#!/bin/sh\nread -r _\nexit 0\n")
  chmodSync(program, 0o755)
  const webhook = (profile: string) =>
    `[profiles.${profile}.notify.webhook.chat]\nurl = "http://127.0.0.1:${ports.web}/hook"\n${timeout}`
  return [
    `[profiles.web.notify]\nenabled = ["webhook"]\nwebhook_enabled = ["chat"]\n${webhook("web")}`,
    `[profiles.all.notify]\nenabled = ["webhook", "email", "custom"]`,
    `webhook_enabled = ["chat"]\ncustom_enabled = ["told"]\n${webhook("all")}`,
    `[profiles.all.notify.email]\nsmtp_host = "127.0.0.1"\nsmtp_port = ${ports.mail}\nsmtp_security = "none"`,
    `from = "acme@example.org"\nto = ["ops@example.org"]\n${timeout}`,
    `[profiles.all.notify.custom.told]\nscript_path = "${program}"\n${timeout}`
  ].join("\n")
}

/** Waits until the log has `wanted` deliveries after the position `offset`. */
const delivered = async ({ logFile }: Service, offset: number, wanted: number): Promise<void> => {
  for (const end = performance.now() + patienceMs;; await delay(50)) {
    const text = readFileSync(logFile).subarray(offset).toString("utf8")
    const failed = text.split("\n").find((line) => line.includes(`"notify_delivery_failed"`))
    if (failed !== undefined) throw new Error(`a delivery failed: ${failed}`)
    const count = text.split(`"notify_delivered"`).length - 1
    if (count >= wanted) return
    if (performance.now() > end) throw new Error(`${count} of ${wanted} notifications were delivered`)
  }
}

/** The sums over all windows of one profile. Times are in milliseconds. */
interface Sums {
  readonly windows: number
  readonly issuances: number
  readonly cpu: number
  readonly database: number
  readonly behind: number
  readonly behindCpu: number
  readonly durations: ReadonlyArray<number>
}

const nothing: Sums = { windows: 0, issuances: 0, cpu: 0, database: 0, behind: 0, behindCpu: 0, durations: [] }

/** Runs one more window, and waits for all its deliveries. */
const measureWay = async (
  rig: Rig,
  { entries, profile }: Way,
  extent: Options["extent"],
  idle: number,
  so: Sums
): Promise<Sums> => {
  const { concurrency, loader, service } = rig
  await loader.call("target", service.directoryOf(profile))
  await loader.call("prepare", concurrency + (extent.issuances ?? (extent.seconds ?? 0) * 150))
  await loader.call("connect", concurrency)
  const offset = service.logged()
  const before = read(rig)
  const { issuances } = await loader.call("run", { ...extent, concurrency })
  const issued = read(rig)
  await delivered(service, offset, issuances * entries * eventsPerIssuance)
  const after = read(rig)
  return {
    windows: so.windows + 1,
    issuances: so.issuances + issuances,
    cpu: so.cpu + cpuBetween(before, after, idle),
    database: so.database + after.database - before.database,
    behind: so.behind + after.at - issued.at,
    behindCpu: so.behindCpu + after.cpu - issued.cpu,
    durations: [...so.durations, ...await loader.call("durations")]
  }
}

const measureRig = async (name: Dialect, rig: Rig, { extent }: Options, progress: Progress): Promise<NotifyCost> => {
  const begun = read(rig)
  // At its start, the service sends notifications about its profiles, which must not count.
  await delivered(rig.service, 0, ways.reduce((sum, { entries }) => sum + entries, 0))
  for (const way of ways) {
    progress(`${name}: warming up, ${way.name}`)
    await measureWay(rig, way, extent.issuances === undefined ? { seconds: 6 } : extent, 0, nothing)
  }
  progress(`${name}: idle`)
  const idle = await idleCost(rig)
  const rounds = extent.issuances === undefined ? timedRounds : 1
  const sums = await summed(ways, rounds, nothing, (way, round, so) => {
    progress(`${name}: ${way.name}, round ${round} of ${rounds}`)
    return measureWay(rig, way, extent, idle, so)
  })
  const ended = read(rig)
  const measured = sums.map(([way, { behind, behindCpu, cpu, database, durations, issuances, windows }]) => ({
    name: way.name,
    issuances,
    cpu: cpu / issuances,
    databaseCpu: rig.postmaster === undefined ? undefined : database / issuances,
    issuance: percentilesOf(durations),
    deliveries: way.entries * eventsPerIssuance,
    behind: behind / windows,
    behindShare: behindCpu / behind
  }))
  const [silent] = measured
  return {
    name,
    concurrency: rig.concurrency,
    idle,
    ways: measured.map((way) => ({ ...way, ratio: way.cpu / (silent?.cpu ?? 1) })),
    machineShare: machineShareOf(begun, ended)
  }
}

const measureOn = async (
  dialect: Dialect,
  cluster: PostgresCluster | undefined,
  options: Options,
  progress: Progress
): Promise<NotifyCost> => {
  progress(`${dialect}: starting`)
  const stops: Array<() => Promise<void> | void> = []
  try {
    const told = startForked<typeof receivers>("receivers")
    stops.unshift(told.stop)
    const service = await startService({
      databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
      synchronous: options.synchronous,
      nodeWords: options.nodeWords,
      configuration: configurationOf(await told.call("listen"))
    })
    stops.unshift(service.stop)
    const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
    if (postmaster !== undefined) stops.unshift(postmaster.leave)
    const loader = startForked<typeof load>("load")
    stops.unshift(loader.stop)
    const concurrency = options.concurrency.at(-1) ?? 1
    return await measureRig(dialect, { service, loader, postmaster, concurrency }, options, progress)
  } finally {
    for (const stop of stops) await stop()
  }
}

/** Measures on each database, with the last concurrency of the options. */
export const measureNotify = async (options: Options, progress: Progress): Promise<ReadonlyArray<NotifyCost>> => {
  const costs: Array<NotifyCost> = []
  for (const dialect of options.databases) {
    const cluster = dialect === "postgres" ? await startPostgres({ durable: true }) : undefined
    try {
      costs.push(await measureOn(dialect, cluster, options, progress))
    } finally {
      await cluster?.stop()
    }
  }
  return costs
}

/** Prints the figures as tables. */
export const notifyReport = (paint: Paint, costs: ReadonlyArray<NotifyCost>): string =>
  costs.map(({ concurrency, idle, machineShare, name, ways }) =>
    [
      paint.strong(`Notifications on ${name === "sqlite" ? "SQLite" : "PostgreSQL"}, ${concurrency} clients`),
      table(
        paint,
        [
          "told",
          "issuances",
          "CPU ms",
          "to nobody told",
          ...name === "postgres" ? ["database ms"] : [],
          "issuance ms: p50",
          "p99",
          "deliveries each",
          "behind ms",
          "busy %"
        ],
        ways.map((way) => [
          way.name,
          String(way.issuances),
          paint.strong(fixed(way.cpu, 2)),
          fixed(way.ratio, 2),
          ...name === "postgres" ? [fixed(way.databaseCpu, 2)] : [],
          fixed(way.issuance.p50, 0),
          fixed(way.issuance.p99, 0),
          String(way.deliveries),
          fixed(way.behind, 0),
          fixed(way.behindShare * 100, 0)
        ])
      ),
      [
        `  idle     ${idle.toFixed(1)} ms of CPU per second, left out above`,
        `  machine  in use to ${Math.round(machineShare * 100)} %`
      ].join("\n")
    ].join("\n\n")
  ).join("\n\n")
