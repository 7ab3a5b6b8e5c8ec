import { join } from "node:path"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load, Window } from "./Load.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import type { Population } from "./Populate.ts"
import { populate, revoke } from "./Populate.ts"
import { postmasterOf } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { Service } from "./Service.ts"
import { migrate, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures the cost of records of many years. A server with an empty database and a server with a grown database get
 * the same load by turns.
 */

/** The size of the database with which the service must still be fast. */
const full: Population = { accounts: 1_000_000, orders: 10_000_000, revocations: 100_000 }

const rounds = 5

interface Side {
  /** CPU milliseconds per issuance: of the service's process, and of the database server if there is one. */
  readonly cpu: number
  readonly databaseCpu: number
  /** The latency of a request in milliseconds. */
  readonly p50: number
  readonly p95: number
}

/** The results on one database, as medians over the rounds. */
export interface GrownCost {
  readonly name: Dialect
  readonly population: Population
  readonly builtSeconds: number
  readonly issuances: number
  readonly empty: Side
  readonly grown: Side
  /** The octets of the revocation list, and the milliseconds of GET /crl. Only the grown side has a list. */
  readonly crlBytes: number
  readonly crlMs: number
  /**
   * The figures of the grown database divided by those of the empty one, as medians over the rounds. In a round, the
   * two windows directly follow one another.
   */
  readonly ratio: { readonly cpu: number; readonly p50: number; readonly p95: number }
}

interface Bench {
  readonly service: Service
  /** The process id of the database server, if there is one. */
  readonly postmaster: number | undefined
}

const window = async (
  { postmaster, service }: Bench,
  loader: Forked<typeof load>,
  options: Options,
  concurrency: number
): Promise<Side & { readonly issuances: number }> => {
  await loader.call("target", service.directoryUrl)
  await loader.call("prepare", concurrency + (options.extent.issuances ?? (options.extent.seconds ?? 0) * 200))
  await loader.call("connect", concurrency)
  const read = () => ({
    service: Procfs.cpuOf(service.pid).total,
    database: postmaster === undefined ? 0 : Procfs.cpuOfFamily(postmaster)
  })
  const before = read()
  const { everyRequest, issuances }: Window = await loader.call("run", { ...options.extent, concurrency })
  const after = read()
  return {
    issuances,
    cpu: (after.service - before.service) / issuances,
    databaseCpu: (after.database - before.database) / issuances,
    p50: everyRequest.p50,
    p95: everyRequest.p95
  }
}

const timed = async (url: string): Promise<{ readonly bytes: number; readonly ms: number }> => {
  const times: Array<number> = []
  let bytes = 0
  for (let round = 0; round < rounds; round++) {
    const started = performance.now()
    bytes = (await (await fetch(url)).arrayBuffer()).byteLength
    times.push(performance.now() - started)
  }
  return { bytes, ms: median(times) }
}

/** Waits until the revocation list is longer than `bytes`, which means that it has all entries. */
const untilListed = async (url: string, bytes: number): Promise<void> => {
  for (let attempt = 0; attempt < 600; attempt++) {
    if ((await timed(url)).bytes > bytes) return
    await new Promise((done) => setTimeout(done, 100))
  }
  throw new Error("the grown list was not signed within a minute")
}

const sides = ["empty", "grown"] as const

const measureOne = async (
  name: Dialect,
  population: Population,
  options: Options,
  loader: Forked<typeof load>,
  progress: (text: string) => void
): Promise<GrownCost> => {
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
  const { nodeWords, synchronous } = options
  try {
    const prepared = async () => {
      const databaseUrl = await cluster?.createDatabase() ?? "sqlite://bench.db"
      const directory = migrate({ databaseUrl, synchronous })
      return { databaseUrl, directory, where: cluster === undefined ? join(directory, "bench.db") : databaseUrl }
    }
    const start = ({ databaseUrl, directory }: Awaited<ReturnType<typeof prepared>>) =>
      startService({ databaseUrl, synchronous, nodeWords, directory })
    const [small, large] = [await prepared(), await prepared()]
    const begun = performance.now()
    await populate(name, large.where, population, progress)
    const builtSeconds = (performance.now() - begun) / 1000
    // The service makes the CA at its first start, and the revocations belong to this CA.
    await (await start(large)).stop()
    await revoke(name, large.where, population)
    const services = { empty: await start(small), grown: await start(large) }
    const crlUrl = services.grown.directoryUrl.replace(/directory$/, "crl")
    await untilListed(crlUrl, population.revocations * 30)
    const concurrency = options.concurrency.at(-1) ?? 1
    const measured: Array<{ readonly [S in (typeof sides)[number]]: Side }> = []
    let issuances = 0
    for (let round = 0; round <= rounds; round++) {
      progress(round === 0 ? `${name}: warming up` : `${name}: round ${round} of ${rounds}`)
      const pair = new Map<string, Side>()
      // The order changes in each round, so that no side always comes first.
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const cell = await window(
          { service: services[side], postmaster: postmaster?.pid },
          loader,
          options,
          concurrency
        )
        pair.set(side, cell)
        issuances += cell.issuances
      }
      const [empty, grown] = [pair.get("empty"), pair.get("grown")]
      if (round > 0 && empty !== undefined && grown !== undefined) measured.push({ empty, grown })
    }
    const crl = await timed(crlUrl)
    await Promise.all([services.empty.stop(), services.grown.stop(), postmaster?.leave()])
    const sideOf = (side: (typeof sides)[number]): Side => {
      const of = (key: keyof Side) => median(measured.map((one) => one[side][key]))
      return { cpu: of("cpu"), databaseCpu: of("databaseCpu"), p50: of("p50"), p95: of("p95") }
    }
    const ratioOf = (of: (side: Side) => number) => median(measured.map(({ empty, grown }) => of(grown) / of(empty)))
    return {
      name,
      population,
      builtSeconds,
      issuances,
      empty: sideOf("empty"),
      grown: sideOf("grown"),
      crlBytes: crl.bytes,
      crlMs: crl.ms,
      ratio: {
        cpu: ratioOf(({ cpu, databaseCpu }) => cpu + databaseCpu),
        p50: ratioOf(({ p50 }) => p50),
        p95: ratioOf(({ p95 }) => p95)
      }
    }
  } finally {
    await cluster?.stop()
  }
}

/** Measures with the last concurrency of the options. */
export const measureGrown = async (
  options: Options,
  progress: (text: string) => void
): Promise<ReadonlyArray<GrownCost>> => {
  const scaled = (count: number) => Math.max(100, Math.round(count * options.part))
  const population = {
    accounts: scaled(full.accounts),
    orders: scaled(full.orders),
    revocations: scaled(full.revocations)
  }
  const loader = startForked<typeof load>("load")
  const costs: Array<GrownCost> = []
  for (const name of options.databases) costs.push(await measureOne(name, population, options, loader, progress))
  loader.stop()
  return costs
}

/** Describes the figures in words. */
export const grownReport = (costs: ReadonlyArray<GrownCost>): string =>
  costs.map(({ builtSeconds, crlBytes, crlMs, empty, grown, issuances, name, population, ratio }) => {
    const row = (title: string, of: (side: Side) => number, quotient?: number) =>
      `  ${title.padEnd(24)}${of(empty).toFixed(2).padStart(9)}${of(grown).toFixed(2).padStart(9)}${
        quotient === undefined ? "" : quotient.toFixed(2).padStart(9)
      }`
    return [
      `${name}: ${population.accounts} accounts, ${population.orders} orders, ${population.revocations} revocations, ` +
      `built in ${Math.round(builtSeconds)} s; ${issuances} issuances`,
      `  ${"".padEnd(24)}${"empty".padStart(9)}${"grown".padStart(9)}${"ratio".padStart(9)}  (goal: at most 1.10)`,
      row("CPU ms per issuance", ({ cpu, databaseCpu }) => cpu + databaseCpu, ratio.cpu),
      ...(name === "postgres" ? [row("  of it PostgreSQL", ({ databaseCpu }) => databaseCpu)] : []),
      row("request ms, p50", ({ p50 }) => p50, ratio.p50),
      row("request ms, p95", ({ p95 }) => p95, ratio.p95),
      `  GET /crl of ${(crlBytes / 2 ** 20).toFixed(1)} MiB in ${crlMs.toFixed(1)} ms`
    ].join("\n")
  }).join("\n\n")
