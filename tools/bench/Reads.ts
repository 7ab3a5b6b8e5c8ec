import { freePort } from "../../test/support/Ports.ts"
import type { BusyPopulation } from "./Busy.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import { fillOnce, placeOf } from "./Kept.ts"
import { lists } from "./ListReads.ts"
import type { load, Window } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import { pages } from "./PageReads.ts"
import { postmasterOf } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { Read, reader, Reading } from "./Reader.ts"
import type { Service } from "./Service.ts"
import { migrate, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"
import type { Subject } from "./Subject.ts"

/*
 * Measures how long reads of operators take on a grown database, and how these reads affect clients that issue
 * certificates. Two kinds of windows take turns: one with only clients that issue certificates, and one that also has
 * some reads a second.
 */

/** The results of one kind of window. Times are milliseconds of one request. CPU is in milliseconds per issuance. */
interface Side {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly serviceCpu: number
  readonly databaseCpu: number
  /** The share of the machine's CPU that other processes used. */
  readonly others: number
}

/**
 * A read without other load, with its times, and with the CPU of the service, its readers and the database together.
 */
interface Alone {
  readonly reading: Reading
  readonly cpu: number
}

/** The results of one read. Times are in milliseconds. */
interface ReadCost {
  readonly name: string
  readonly total: string
  /** The results without other load, when the read is made first, and when it is made again. */
  readonly first: Alone | undefined
  readonly again: Alone | undefined
  readonly count: number
  /** The times under load, or undefined if the windows ended before this read was made. */
  readonly firstOctet: { readonly p50: number; readonly p95: number } | undefined
  readonly whole: { readonly p50: number; readonly p95: number } | undefined
  /** The statuses of answers that were not expected. */
  readonly unexpected: ReadonlyArray<number>
}

/** A median and its standard error. */
export interface Spread {
  readonly median: number
  readonly error: number
}

/** The results on one database, with medians over the rounds, and with the reads of all rounds. */
export interface ReadsCost {
  readonly name: Dialect
  readonly population: BusyPopulation
  /** How long it took to fill the database, or undefined if an earlier run filled it. */
  readonly builtSeconds: number | undefined
  readonly concurrency: number
  readonly alone: Side
  readonly beside: Side
  /**
   * The figures with reads divided by those without, as medians of the ratios of neighbouring windows, with their
   * standard errors.
   */
  readonly ratio: { readonly p50: Spread; readonly p99: Spread; readonly perSecond: Spread }
  readonly reads: ReadonlyArray<ReadCost>
  readonly readsPerSecond: number
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN

/**
 * Returns the median and its standard error. The error of the median is estimated as 1.25 times the error of the mean.
 * This factor holds for normally distributed values.
 */
const spreadOf = (values: ReadonlyArray<number>): Spread => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1)
  return { median: median(values), error: 1.25 * Math.sqrt(variance / values.length) }
}

interface Bench {
  readonly service: Service
  /** The process id of the database server, if there is one. */
  readonly postmaster: number | undefined
  readonly loader: Forked<typeof load>
  readonly readers: Forked<typeof reader>
  readonly reads: ReadonlyArray<Read>
}

interface Measured extends Side {
  readonly readings: ReadonlyArray<Reading>
}

const window = async (
  { loader, postmaster, reads, readers, service }: Bench,
  { concurrency, readsPerSecond, seconds }: Pick<Options, "readsPerSecond"> & {
    readonly concurrency: number
    readonly seconds: number
  },
  from: number | undefined
): Promise<Measured> => {
  await loader.call("prepare", concurrency + seconds * 100)
  const read = () => ({
    service: Procfs.cpuOf(service.pid).total,
    // On SQLite the readers are children of the service.
    database: postmaster === undefined
      ? Procfs.cpuOfFamily(service.pid) - Procfs.cpuOf(service.pid).total
      : Procfs.cpuOfFamily(postmaster),
    machine: Procfs.machineCpu()
  })
  const before = read()
  const reading = from === undefined
    ? []
    : readers.call("run", { reads, from, perSecond: readsPerSecond, seconds })
  const issued: Window = await loader.call("run", { seconds, concurrency })
  const after = read()
  const database = Math.max(0, after.database - before.database)
  const own = after.service - before.service + database + issued.clientCpuMs
  const busy = after.machine.busy - before.machine.busy
  return {
    perSecond: issued.issuances / issued.elapsedMs * 1000,
    p50: issued.everyRequest.p50,
    p99: issued.everyRequest.p99,
    serviceCpu: (after.service - before.service) / issued.issuances,
    databaseCpu: database / issued.issuances,
    others: Math.max(0, (busy - own) / (after.machine.total - before.machine.total)),
    readings: await reading
  }
}

/** Makes every read once, without other load. */
const readAlone = async ({ postmaster, readers, reads, service }: Bench): Promise<ReadonlyArray<Alone>> => {
  const cpu = () =>
    Procfs.cpuOf(service.pid).total + Procfs.cpuOfChildren(service.pid) +
    (postmaster === undefined ? 0 : Procfs.cpuOfChildren(postmaster))
  const found: Array<Alone> = []
  for (let from = 0; from < reads.length; from++) {
    const before = cpu()
    const [reading] = await readers.call("run", { reads, from, perSecond: 1000, count: 1 })
    if (reading !== undefined) found.push({ reading, cpu: Math.max(0, cpu() - before) })
  }
  return found
}

const costOf = (
  read: Read,
  alone: ReadonlyArray<ReadonlyArray<Alone>>,
  readings: ReadonlyArray<Reading>
): ReadCost => {
  const own = readings.filter(({ name }) => name === read.name)
  const [first, again] = alone.map((pass) => pass.find(({ reading }) => reading.name === read.name))
  const of = (key: "firstOctet" | "whole") => {
    const { count, p50, p95 } = percentilesOf(own.map((one) => one[key]))
    return count === 0 ? undefined : { p50, p95 }
  }
  const expected = read.status ?? 200
  return {
    name: read.name,
    total: first?.reading.total ?? "",
    first,
    again,
    count: own.length,
    firstOctet: of("firstOctet"),
    whole: of("whole"),
    unexpected: [...[first, again].flatMap((one) => one === undefined ? [] : [one.reading]), ...own]
      .flatMap(({ status }) => status === expected ? [] : [status])
  }
}

const sideOf = (windows: ReadonlyArray<Side>): Side => {
  const of = (key: keyof Side) => median(windows.map((one) => one[key]))
  return {
    perSecond: of("perSecond"),
    p50: of("p50"),
    p99: of("p99"),
    serviceCpu: of("serviceCpu"),
    databaseCpu: of("databaseCpu"),
    others: of("others")
  }
}

// With these settings, nothing expires and nothing is deleted while the bench runs.
const still = {
  ACME_SVC_ORDER__VALIDITY_SECONDS: "126144000",
  ACME_SVC_ORDER__RETENTION_DAYS: "0",
  ACME_SVC_JOBS__RETENTION_DAYS: "3650",
  ACME_SVC_ADMIN__ENABLED: "true"
}

const measureOne = async (
  name: Dialect,
  options: Options,
  subject: Subject,
  loader: Forked<typeof load>,
  progress: Progress
): Promise<ReadsCost> => {
  const { accounts, auditRows, nodeWords, orders, rounds, synchronous } = options
  const wanted = { accounts, orders, auditRows }
  const place = await placeOf(name, options.keep)
  const readers = startForked<typeof reader>("reader")
  const adminPort = await freePort()
  const origin = `http://127.0.0.1:${adminPort}`
  const serving = {
    databaseUrl: place.databaseUrl,
    directory: place.directory,
    synchronous,
    nodeWords,
    variables: { ...still, ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`, ACME_SVC_ADMIN__BASE_URL: origin }
  }
  let leave: (() => Promise<void>) | undefined
  try {
    const { builtSeconds, population } = await fillOnce(name, place, wanted, serving, loader, progress)
    migrate(serving)
    const postmaster = place.cluster === undefined ? undefined : await postmasterOf(place.cluster)
    leave = postmaster?.leave
    const service = await startService(serving)
    await readers.call("target", { origin, headers: await subject.enter(serving, origin) })
    await loader.call("target", service.directoryUrl)
    const reads = subject.readsOf(population, Math.floor(Date.now() / 1000))
    const bench: Bench = { service, postmaster: postmaster?.pid, loader, readers, reads }
    progress(`${name}: reading everything, and again`)
    const alone = [await readAlone(bench), await readAlone(bench)]
    const seconds = options.extent.seconds ?? 1
    const extent = { concurrency: options.concurrency.at(-1) ?? 1, readsPerSecond: options.readsPerSecond, seconds }
    const measured: Array<{ readonly alone: Measured; readonly beside: Measured }> = []
    await loader.call("connect", extent.concurrency)
    progress(`${name}: warming up`)
    await window(bench, extent, undefined)
    let from = 0
    for (let round = 1; round <= rounds; round++) {
      progress(`${name}: round ${round} of ${rounds}`)
      const withoutReads = () => window(bench, extent, undefined)
      const withReads = async () => {
        const one = await window(bench, extent, from)
        from += one.readings.length
        return one
      }
      // The order changes in each round, so that no side always comes first.
      const isAloneFirst = round % 2 === 0
      const first = isAloneFirst ? await withoutReads() : await withReads()
      const second = isAloneFirst ? await withReads() : await withoutReads()
      measured.push(isAloneFirst ? { alone: first, beside: second } : { alone: second, beside: first })
    }
    await service.stop()
    const readings = measured.flatMap(({ beside }) => beside.readings)
    const ratioOf = (key: keyof Side) => spreadOf(measured.map(({ alone, beside }) => beside[key] / alone[key]))
    return {
      name,
      population,
      builtSeconds,
      concurrency: extent.concurrency,
      alone: sideOf(measured.map(({ alone }) => alone)),
      beside: sideOf(measured.map(({ beside }) => beside)),
      ratio: { p50: ratioOf("p50"), p99: ratioOf("p99"), perSecond: ratioOf("perSecond") },
      reads: reads.map((read) => costOf(read, alone, readings)),
      readsPerSecond: readings.length / (rounds * seconds)
    }
  } finally {
    readers.stop()
    await leave?.()
    await place.cluster?.stop()
  }
}

const measureReads = async (
  subject: Subject,
  options: Options,
  progress: Progress
): Promise<ReadonlyArray<ReadsCost>> => {
  const loader = startForked<typeof load>("load")
  const costs: Array<ReadsCost> = []
  for (const name of options.databases) costs.push(await measureOne(name, options, subject, loader, progress))
  loader.stop()
  return costs
}

/** Measures the lists of the API with the last concurrency of the options. */
export const measureLists = (options: Options, progress: Progress): Promise<ReadonlyArray<ReadsCost>> =>
  measureReads(lists, options, progress)

/** Measures the pages of the panel, in the same way as {@link measureLists}. */
export const measurePages = (options: Options, progress: Progress): Promise<ReadonlyArray<ReadsCost>> =>
  measureReads(pages, options, progress)
