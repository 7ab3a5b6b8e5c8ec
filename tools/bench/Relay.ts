import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import { startForked } from "./Forked.ts"
import type { load, Percentiles } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import { isInstalled, startPebble } from "./Pebble.ts"
import { postmasterOf } from "./Postmaster.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import type { Rig } from "./Rig.ts"
import { cpuBetween, idleCost, machineShareOf, read, summed } from "./Rig.ts"
import type { Service } from "./Service.ts"
import { startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures the cost of relaying. One service has five profiles: one signs, two relay to Pebble, and two relay to a
 * second instance of this service, one of them over TLS. The difference between the last two is the cost of TLS.
 */

/**
 * The results of one profile, which signs or relays in one of the compared ways, over all its windows. CPU is in
 * milliseconds per issuance, without the cost of an idle service.
 */
export interface WayCost {
  readonly name: string
  readonly issuances: number
  readonly perSecond: number
  readonly cpu: number
  readonly databaseCpu: number | undefined
  /** `cpu` divided by the CPU of an issuance for which the service signs itself. */
  readonly ratio: number
  /** Requests per issuance: from the clients to the service, and from the service to the upstream. */
  readonly requests: number
  readonly upstreamRequests: number | undefined
  /** Milliseconds from the accepted finalize to the stored certificate, according to the log. */
  readonly stored: Percentiles
  /** Milliseconds from finalize until a client that obeys Retry-After has the certificate. */
  readonly seen: Percentiles
}

/** All results about relaying on one database. */
export interface RelayCost {
  readonly name: Dialect
  readonly concurrency: number
  /** CPU milliseconds per second of the service while it gets no requests. */
  readonly idle: number
  readonly ways: ReadonlyArray<WayCost>
  /** CPU milliseconds that TLS adds to a request to the upstream, and to an issuance relayed to the same upstream. */
  readonly tls: { readonly perRequest: number; readonly share: number } | undefined
  /** The share of the machine's CPU that was used during the measurements. */
  readonly machineShare: number
}

interface Upstream {
  readonly directoryUrl: string
  readonly requests: () => number
}

interface Way {
  readonly name: string
  readonly profile: string
  readonly pollMillis?: number
  readonly upstream?: Upstream
}

const smallPoll = 50
const usualPoll = 2000
const timedRounds = 3
const attempts = 6

const relaying = ({ pollMillis, profile, upstream }: Way): string =>
  upstream === undefined ? "" : [
    `[profiles.${profile}.signer]\nbackend = "relay"`,
    `[profiles.${profile}.signer.relay]`,
    `directory_url = "${upstream.directoryUrl}"`,
    `account_key_path = "${profile}.key"`,
    `challenge_strategy = "bypass"`,
    `poll_interval_ms = ${pollMillis}`
  ].join("\n")

const occurrences = (file: string, text: string): number => readFileSync(file, "utf8").split(text).length - 1

const asUpstream = ({ directoryUrl, logFile }: Service): Upstream => ({
  directoryUrl,
  requests: () => occurrences(logFile, `"request_completed"`)
})

/** Returns the milliseconds between two records of each order. Only records in the log after `offset` count. */
const storedSince = ({ logFile }: Service, offset: number): ReadonlyArray<number> => {
  const accepted = new Map<string, number>()
  const waits: Array<number> = []
  for (const line of readFileSync(logFile).subarray(offset).toString("utf8").split("\n")) {
    if (!/"order_finalize(?:_queue)?d"/.test(line)) continue
    const { fields, timestamp } = JSON.parse(line) as {
      readonly timestamp: string
      readonly fields: { readonly event: string; readonly order_id: string }
    }
    const at = Date.parse(timestamp)
    const since = accepted.get(fields.order_id)
    if (fields.event === "order_finalize_queued") accepted.set(fields.order_id, at)
    else if (since !== undefined) waits.push(at - since)
  }
  return waits
}

const turnTo = async ({ concurrency, loader, service }: Rig, { profile }: Way, count: number): Promise<void> => {
  await loader.call("target", service.directoryOf(profile))
  await loader.call("prepare", count)
  await loader.call("connect", concurrency)
}

/** The sums over all windows of one profile. Times are in milliseconds. */
interface Sums {
  readonly issuances: number
  readonly elapsed: number
  readonly cpu: number
  readonly database: number
  readonly requests: number
  readonly upstreamRequests: number
  readonly stored: ReadonlyArray<number>
  readonly seen: ReadonlyArray<number>
}

const nothing: Sums = {
  issuances: 0,
  elapsed: 0,
  cpu: 0,
  database: 0,
  requests: 0,
  upstreamRequests: 0,
  stored: [],
  seen: []
}

/** Runs one more window. */
const measureWay = async (rig: Rig, way: Way, extent: Options["extent"], idle: number, so: Sums): Promise<Sums> => {
  const { concurrency, loader, service } = rig
  await turnTo(rig, way, concurrency + (extent.issuances ?? (extent.seconds ?? 0) * 60))
  const offset = service.logged()
  const asked = way.upstream?.requests() ?? 0
  const before = read(rig)
  const window = await loader.call("run", { ...extent, concurrency, isPatient: true })
  const after = read(rig)
  await delay(200) // The last records reach the log within this time.
  return {
    issuances: so.issuances + window.issuances,
    elapsed: so.elapsed + window.elapsedMs,
    cpu: so.cpu + cpuBetween(before, after, idle),
    database: so.database + after.database - before.database,
    requests: so.requests + window.requests,
    upstreamRequests: so.upstreamRequests + (way.upstream?.requests() ?? 0) - asked,
    stored: [...so.stored, ...storedSince(service, offset)],
    seen: [...so.seen, ...await loader.call("waits")]
  }
}

const costOf = ({ name, upstream }: Way, sums: Sums, { postmaster }: Rig): Omit<WayCost, "ratio"> => {
  const { cpu, database, elapsed, issuances, requests, seen, stored, upstreamRequests } = sums
  return {
    name,
    issuances,
    perSecond: issuances / elapsed * 1000,
    cpu: cpu / issuances,
    databaseCpu: postmaster === undefined ? undefined : database / issuances,
    requests: requests / issuances,
    upstreamRequests: upstream === undefined ? undefined : upstreamRequests / issuances,
    stored: percentilesOf(stored),
    seen: percentilesOf(seen)
  }
}

const measureRig = async (
  name: Dialect,
  rig: Rig,
  ways: ReadonlyArray<Way>,
  { extent }: Options,
  progress: Progress
): Promise<RelayCost> => {
  const { concurrency, loader } = rig
  const begun = read(rig)
  for (const way of ways) {
    // The code is the same for every polling interval, so that the warm-up can leave out the profile that polls slowly.
    if (way.pollMillis === usualPoll) continue
    progress(`${name}: warming up, ${way.name}`)
    await turnTo(rig, way, concurrency + (extent.issuances ?? 300))
    await loader.call("run", extent.issuances === undefined ? { concurrency, seconds: 6 } : { concurrency, ...extent })
  }
  progress(`${name}: idle`)
  const idle = await idleCost(rig)
  const rounds = extent.issuances === undefined ? timedRounds : 1
  const sums = await summed(ways, rounds, nothing, (way, round, so) => {
    progress(`${name}: ${way.name}, round ${round} of ${rounds}`)
    return measureWay(rig, way, extent, idle, so)
  })
  const measured = sums.map(([way, sum]) => costOf(way, sum, rig))
  const ended = read(rig)
  const [direct] = measured
  const [secure, plain] = measured.slice(-2)
  const more = (secure?.cpu ?? 0) - (plain?.cpu ?? 0)
  return {
    name,
    concurrency,
    idle,
    ways: measured.map((way) => ({ ...way, ratio: way.cpu / (direct?.cpu ?? 1) })),
    tls: secure?.upstreamRequests === undefined
      ? undefined
      : { perRequest: more / secure.upstreamRequests, share: more / secure.cpu },
    machineShare: machineShareOf(begun, ended)
  }
}

const onceMeasured = async (
  dialect: Dialect,
  cluster: PostgresCluster | undefined,
  options: Options,
  progress: Progress
): Promise<RelayCost> => {
  progress(`${dialect}: starting`)
  const { nodeWords, profileDirectory, synchronous } = options
  const concurrency = options.concurrency.at(-1) ?? 1
  const stops: Array<() => Promise<void> | void> = []
  const upheld = <A extends { readonly stop: () => Promise<void> | void }>(one: A): A => {
    stops.unshift(one.stop)
    return one
  }
  try {
    const pebble = upheld(await startPebble())
    const { certificate, privateKey } = pebble
    const onSqlite = { databaseUrl: "sqlite://bench.db", synchronous, nodeWords }
    const secure = asUpstream(upheld(await startService({ ...onSqlite, tls: { certificate, privateKey } })))
    const plain = asUpstream(upheld(await startService(onSqlite)))
    const ways: ReadonlyArray<Way> = [
      { name: "signed here", profile: "default" },
      { name: `Pebble, looks every ${usualPoll} ms`, profile: "usual", pollMillis: usualPoll, upstream: pebble },
      { name: `Pebble, every ${smallPoll} ms`, profile: "quick", pollMillis: smallPoll, upstream: pebble },
      { name: `acme-svc over TLS, ${smallPoll} ms`, profile: "secure", pollMillis: smallPoll, upstream: secure },
      { name: `acme-svc over HTTP, ${smallPoll} ms`, profile: "plain", pollMillis: smallPoll, upstream: plain }
    ]
    const service = upheld(
      await startService({
        synchronous,
        databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
        nodeWords: [
          ...profileDirectory === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${resolve(profileDirectory)}`],
          ...nodeWords
        ],
        trusted: certificate,
        // The service works on as many orders at once as there are clients, so no issuance waits for another one.
        configuration: [`[jobs]\nmax_concurrent = ${concurrency}`, ...ways.map(relaying)].join("\n\n")
      })
    )
    const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
    if (postmaster !== undefined) upheld({ stop: postmaster.leave })
    const loader = upheld(startForked<typeof load>("load"))
    return await measureRig(dialect, { service, loader, postmaster, concurrency }, ways, options, progress)
  } finally {
    for (const stop of stops) await stop()
  }
}

/** Measures on one database. Pebble 2.4 sometimes deadlocks, and then everything is started again. */
const measureDialect = async (dialect: Dialect, options: Options, progress: Progress): Promise<RelayCost> => {
  const cluster = dialect === "postgres" ? await startPostgres({ durable: true }) : undefined
  try {
    for (let attempt = 1;; attempt++) {
      try {
        return await onceMeasured(dialect, cluster, options, progress)
      } catch (error) {
        if (attempt === attempts) throw error
        progress(`${dialect}: ${(error instanceof Error ? error.message : String(error)).split("\n", 1)[0]}`)
      }
    }
  } finally {
    await cluster?.stop()
  }
}

/** Measures on each database, with the last concurrency of the options. */
export const measureRelay = async (options: Options, progress: Progress): Promise<ReadonlyArray<RelayCost>> => {
  if (!isInstalled()) throw new Error("pebble is not installed; on Debian: apt-get install pebble")
  const costs: Array<RelayCost> = []
  for (const dialect of options.databases) costs.push(await measureDialect(dialect, options, progress))
  return costs
}

/** Prints the figures as tables. */
export const relayReport = (paint: Paint, costs: ReadonlyArray<RelayCost>): string =>
  costs.map(({ concurrency, idle, machineShare, name, tls, ways }) =>
    [
      paint.strong(`Relaying on ${name === "sqlite" ? "SQLite" : "PostgreSQL"}, ${concurrency} clients`),
      table(
        paint,
        [
          "",
          "issuances",
          "CPU ms",
          "to signing here",
          ...name === "postgres" ? ["database ms"] : [],
          "upstream requests",
          "finalize to stored, ms: p50",
          "p95",
          "to a client's certificate: p50",
          "p95",
          "its requests"
        ],
        ways.map((way) => [
          way.name,
          String(way.issuances),
          paint.strong(fixed(way.cpu, 2)),
          fixed(way.ratio, 2),
          ...name === "postgres" ? [fixed(way.databaseCpu, 2)] : [],
          fixed(way.upstreamRequests, 1),
          fixed(way.stored.p50, 0),
          fixed(way.stored.p95, 0),
          fixed(way.seen.p50, 0),
          fixed(way.seen.p95, 0),
          fixed(way.requests, 1)
        ])
      ),
      [
        ...tls === undefined ? [] : [
          `  TLS      ${tls.perRequest.toFixed(2)} ms of CPU for each request to the upstream, ${
            Math.round(tls.share * 100)
          } % of an issuance relayed to acme-svc`
        ],
        `  idle     ${idle.toFixed(1)} ms of CPU per second, left out above`,
        `  machine  in use to ${Math.round(machineShare * 100)} %`
      ].join("\n")
    ].join("\n\n")
  ).join("\n\n")
