import { writePebbleFiles } from "../../test/support/PebbleFiles.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import type { Profile } from "./Probe.ts"
import { profileProbe } from "./Probe.ts"
import * as Procfs from "./Procfs.ts"
import { provedConfiguration, provedProfile } from "./Proof.ts"
import type { Paint } from "./Report.ts"
import { table } from "./Report.ts"
import { startService, waitsConfiguration } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures which code uses the CPU of an issuance. While the load is steady, V8 profiles the main thread. Each function
 * in the profile counts towards one line of the table. The file of the function determines this line. The table also
 * has the other threads of the process, by their names. The service runs from its sources, because the bundle is a
 * single file and does not show where a function comes from.
 */

interface Line {
  readonly title: string
  /** Matches the files of the line's functions. A function belongs to the first line whose files match. */
  readonly file: RegExp
}

const lines: ReadonlyArray<Line> = [
  { title: "Schema", file: /node_modules\/effect\/.*\/(?:Schema\w*|schema\/\w+)\.js$/ },
  { title: "Effect runtime: fibers, layers, waits, scheduler", file: /node_modules\/effect\// },
  { title: "PostgreSQL's driver", file: /node_modules\/pg(?:-[\w-]+)?\// },
  {
    title: "statements: SQLite itself, and the database layer in JavaScript",
    file: /node_modules\/better-sqlite3\/|src\/(?:engine\/sql|store)\//
  },
  {
    title: "signatures, hashes, keys, random octets",
    file: /^node:internal\/crypto\/|^node:crypto$|src\/crypto\/Entropy/
  },
  { title: "X.509, CSR, lint, keys' weakness", file: /src\/crypto\/(?:x509|asn1|keys)\/|src\/services\/signing\// },
  { title: "JWS and base64", file: /src\/crypto\/|^node:buffer$|^node:internal\/buffer$/ },
  { title: "TLS", file: /^node:(?:_tls_\w+|internal\/tls\/.*|tls)$/ },
  {
    title: "Node's HTTP, streams and sockets",
    file:
      /^node:(?:_http_\w+|http|https|net|events|stream|_stream_\w+|internal\/(?:http|net|streams\/.*|stream_base_commons|js_stream_socket|url|event_target|abort_controller))$|^node:(?:_http|http|url|querystring)/
  },
  {
    title: "timers, ticks, promises, async hooks",
    file:
      /^node:(?:timers|internal\/(?:timers|process\/.*|async_hooks|util\/.*|async_local_storage\/.*)|async_hooks|diagnostics_channel|domain)/
  },
  {
    title: "logging",
    file:
      /src\/engine\/telemetry\/(?:Event|Engine(?:Event|Log)|Sink|Weight|Log|Declaration|Tracing|Otlp)|src\/domain\/words\/(?!Series)|^node:(?:fs|internal\/fs\/.*)$/
  },
  { title: "metrics", file: /src\/engine\/telemetry\/|src\/domain\/words\/Series|node_modules\/prom-client\// },
  { title: "listener", file: /src\/engine\/(?:http|host|net)\/|src\/app\// },
  { title: "routing and checks of requests", file: /src\/surfaces\// },
  { title: "nonces, jobs", file: /src\/engine\/queue\/|src\/services\/nonce\// },
  { title: "operations", file: /src\/(?:operations|domain|services|settings|engine)\// }
]

const collected = "garbage collection on the main thread"
const outside = "outside of JavaScript: event loop, kernel, V8"
const remaining = "everything else"

/** The lines for entries of the profile that are not functions and have a name from V8. */
const ofEngine = new Map([["(garbage collector)", collected], ["(program)", outside], ["(root)", outside]])

// Node gives names to its threads.
const threadTitle = (name: string): string =>
  /^V8Worker|^DelayedTask/.test(name) ? "V8's helper threads: collection, compiler" : "thread pool"

/** Returns the line of a function. A function without a file is native, and counts towards the line of its caller. */
const titleOf = (name: string, url: string, caller: string): string => {
  const own = ofEngine.get(name)
  if (own !== undefined) return own
  if (url === "") return caller
  return lines.find(({ file }) => file.test(url))?.title ?? remaining
}

/** Returns the share of each line in those samples of a profile in which the thread was busy. */
export const sharesOf = ({ nodes, samples }: Profile): ReadonlyMap<string, number> => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const titles = new Map<number, string>()
  const idle = new Set<number>()
  const name = (id: number, caller: string): void => {
    const node = byId.get(id)
    if (node === undefined) return
    const { functionName, url } = node.callFrame
    const title = titleOf(functionName, url, caller)
    titles.set(id, title)
    if (functionName === "(idle)") idle.add(id)
    for (const child of node.children ?? []) name(child, title)
  }
  const [root] = nodes
  if (root !== undefined) name(root.id, outside)
  const counts = new Map<string, number>()
  let busy = 0
  for (const id of samples) {
    if (idle.has(id)) continue
    const title = titles.get(id) ?? remaining
    counts.set(title, (counts.get(title) ?? 0) + 1)
    busy++
  }
  return new Map([...counts].map(([title, count]) => [title, count / busy]))
}

/** The CPU of an issuance on one database, by the code that used the CPU. */
export interface Attribution {
  readonly name: Dialect
  readonly concurrency: number
  readonly issuances: number
  /** CPU milliseconds of the process per issuance, including the profiler. */
  readonly total: number
  readonly requests: number
  /** CPU milliseconds of each line per issuance, the largest first. */
  readonly lines: ReadonlyArray<readonly [title: string, cpu: number]>
}

const warmUp = { seconds: 12 }

const measureOne = async (
  name: Dialect,
  options: Options,
  loader: Forked<typeof load>,
  progress: Progress
): Promise<Attribution> => {
  const { extent, isProved, nodeWords, synchronous, waits } = options
  const concurrency = options.concurrency.at(-1) ?? 1
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  try {
    progress(`${name}: warming up`)
    const probe = profileProbe()
    const service = await startService({
      databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
      synchronous,
      nodeWords: [...probe.nodeWords, ...nodeWords],
      isFromSource: true,
      tls: await writePebbleFiles(temporaryDirectory()),
      configuration: waitsConfiguration(waits) + (isProved ? provedConfiguration(await loader.call("prove")) : "")
    })
    await loader.call("target", isProved ? service.directoryOf(provedProfile) : service.directoryUrl)
    const run = async (length: Options["extent"]) => {
      await loader.call("prepare", concurrency + (length.issuances ?? (length.seconds ?? 0) * 250))
      await loader.call("connect", concurrency)
      const before = Procfs.threadsOf(service.pid)
      const window = await loader.call("run", { ...length, concurrency, withProof: isProved })
      return { before, window, after: Procfs.threadsOf(service.pid) }
    }
    await run(extent.issuances === undefined ? warmUp : extent)
    progress(`${name}: measuring`)
    await probe.read(service.pid)
    const { after, before, window } = await run(extent)
    const { profile } = await probe.read(service.pid)
    await service.stop()
    if (profile === undefined) throw new Error("the server has made no profile")
    const sums = new Map<string, number>()
    const add = (title: string, cpu: number) => sums.set(title, (sums.get(title) ?? 0) + cpu / window.issuances)
    for (const [id, { cpu, name }] of after) {
      const used = cpu - (before.get(id)?.cpu ?? 0)
      if (id !== service.pid) add(threadTitle(name), used)
      else for (const [title, share] of sharesOf(profile)) add(title, share * used)
    }
    return {
      name,
      concurrency,
      issuances: window.issuances,
      requests: window.requests / window.issuances,
      total: [...sums.values()].reduce((sum, one) => sum + one, 0),
      lines: [...sums].sort(([, one], [, other]) => other - one)
    }
  } finally {
    await cluster?.stop()
  }
}

/** Measures on each database, with the last concurrency of the options. */
export const measureAttribution = async (
  options: Options,
  progress: Progress
): Promise<ReadonlyArray<Attribution>> => {
  const loader = startForked<typeof load>("load")
  const measured: Array<Attribution> = []
  for (const name of options.databases) measured.push(await measureOne(name, options, loader, progress))
  loader.stop()
  return measured
}

/** Prints one table for each database. */
export const attributionReport = (paint: Paint, measured: ReadonlyArray<Attribution>): string =>
  measured.map(({ concurrency, issuances, lines, name, requests, total }) =>
    [
      paint.strong(
        `${name === "sqlite" ? "SQLite" : "PostgreSQL"}, ${concurrency} clients, TLS: ${
          total.toFixed(2)
        } CPU ms per issuance of ${requests.toFixed(1)} requests, over ${issuances} issuances`
      ),
      table(
        paint,
        ["", "CPU ms", "share"],
        lines.map(([title, cpu]) => [title, cpu.toFixed(2), `${(cpu / total * 100).toFixed(1)} %`])
      )
    ].join("\n\n")
  ).join("\n\n")
