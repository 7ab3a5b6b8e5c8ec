import { spawnSync } from "node:child_process"
import { setTimeout as delay } from "node:timers/promises"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import type { Synchronous } from "./Service.ts"
import { startService } from "./Service.ts"

/*
 * Measures what a slow disk costs on SQLite. `strace` makes each sync of the service take longer. Meanwhile clients get
 * certificates, and one more client reads the directory, which needs no database.
 */

const settings: ReadonlyArray<Synchronous> = ["full", "grouped"]
const delays = [0, 1, 3, 10] as const
const rounds = 3
const pauseMillis = 5

/** The figures of one setting while each sync takes `syncMillis` longer. Times are in milliseconds. */
export interface OnSlowDisk {
  readonly synchronous: Synchronous
  readonly syncMillis: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly directoryP50: number
  readonly directoryP99: number
}

/** Reads a document again and again until it is told to stop. Returns the milliseconds of each read. */
const readUntil = async (url: string, isOver: () => boolean): Promise<ReadonlyArray<number>> => {
  const durations: Array<number> = []
  while (!isOver()) {
    const begun = performance.now()
    await (await fetch(url)).arrayBuffer()
    durations.push(performance.now() - begun)
    await delay(pauseMillis)
  }
  return durations
}

/**
 * Returns a program that delays the syncs of the program that it runs. Without a delay it only observes them, so that
 * its own cost is in all figures. The program stops the service at no other system call.
 */
const tracerOf = (syncMillis: number): ReadonlyArray<string> => {
  const calls = "fsync,fdatasync"
  const slower = syncMillis === 0 ? [] : ["-e", `inject=${calls}:delay_enter=${syncMillis * 1000}`]
  return ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-e", `trace=${calls}`, ...slower, "-o", "/dev/null"]
}

const measureOnce = async (
  synchronous: Synchronous,
  syncMillis: number,
  { concurrency, extent, nodeWords }: Options
): Promise<OnSlowDisk> => {
  const clients = concurrency.at(-1) ?? 1
  const service = await startService({
    databaseUrl: "sqlite://bench.db",
    synchronous,
    nodeWords,
    tracer: tracerOf(syncMillis)
  })
  const loader = startForked<typeof load>("load")
  try {
    await loader.call("target", service.directoryUrl)
    await loader.call("prepare", 2000)
    await loader.call("run", { concurrency: clients, seconds: extent.issuances === undefined ? 4 : 1 })
    await loader.call("prepare", clients + (extent.issuances ?? Math.ceil((extent.seconds ?? 0) * 200)))
    let isOver = false
    const reading = readUntil(service.directoryUrl, () => isOver)
    const { elapsedMs, issuances } = await loader.call("run", { ...extent, concurrency: clients })
    isOver = true
    const ofIssuances = percentilesOf(await loader.call("durations"))
    const ofDirectory = percentilesOf(await reading)
    return {
      synchronous,
      syncMillis,
      perSecond: issuances / elapsedMs * 1000,
      p50: ofIssuances.p50,
      p99: ofIssuances.p99,
      directoryP50: ofDirectory.p50,
      directoryP99: ofDirectory.p99
    }
  } finally {
    loader.stop()
    await service.stop()
  }
}

/** Measures both settings in turns, with each of the delays of a sync, and with the last concurrency of the options. */
export const measureSlowDisk = async (options: Options, progress: Progress): Promise<ReadonlyArray<OnSlowDisk>> => {
  if (spawnSync("strace", ["-V"]).error !== undefined) throw new Error("strace is not installed")
  const cells = delays.flatMap((syncMillis) => settings.map((synchronous) => ({ syncMillis, synchronous })))
  const turns: Array<OnSlowDisk> = []
  for (let round = 1; round <= (options.extent.issuances === undefined ? rounds : 1); round++) {
    for (const { syncMillis, synchronous } of cells) {
      progress(`slow disk: round ${round}, ${synchronous}, ${syncMillis} ms`)
      turns.push(await measureOnce(synchronous, syncMillis, options))
    }
  }
  return cells.map((cell) => {
    const own = turns.filter((turn) => turn.synchronous === cell.synchronous && turn.syncMillis === cell.syncMillis)
    const of = (figure: (turn: OnSlowDisk) => number) => median(own.map(figure))
    return {
      ...cell,
      perSecond: of(({ perSecond }) => perSecond),
      p50: of(({ p50 }) => p50),
      p99: of(({ p99 }) => p99),
      directoryP50: of(({ directoryP50 }) => directoryP50),
      directoryP99: of(({ directoryP99 }) => directoryP99)
    }
  })
}

/** Prints the figures as a table. */
export const slowDiskReport = (paint: Paint, cells: ReadonlyArray<OnSlowDisk>): string =>
  table(
    paint,
    ["synchronous", "sync + ms", "issuances/s", "to + 0 ms", "ms p50", "p99", "directory ms p50", "p99"],
    cells.map((cell) => {
      const atOnce = cells.find(({ syncMillis, synchronous }) => syncMillis === 0 && synchronous === cell.synchronous)
      return [
        cell.synchronous,
        String(cell.syncMillis),
        fixed(cell.perSecond, 1),
        fixed(cell.perSecond / (atOnce?.perSecond ?? Number.NaN), 2),
        fixed(cell.p50, 0),
        fixed(cell.p99, 0),
        fixed(cell.directoryP50, 1),
        fixed(cell.directoryP99, 1)
      ]
    })
  )
