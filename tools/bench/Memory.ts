import { startPostgres } from "../../test/support/Postgres.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import { startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures whether memory is bounded. The resident memory of a service is read after a number of issuances, and again
 * after ten times as many.
 */

const early = 10_000
const late = 100_000
const step = 500
/**
 * How often the memory is read at each of the two times. The median of these readings counts, because garbage is
 * collected at irregular times.
 */
const readings = 5

/** The resident memory of a service, in MiB. */
export interface MemoryCost {
  readonly name: Dialect
  readonly concurrency: number
  readonly early: { readonly issuances: number; readonly rss: number }
  readonly late: { readonly issuances: number; readonly rss: number }
  readonly ratio: number
}

const measureOne = async (
  name: Dialect,
  { concurrency: given, nodeWords, part, synchronous }: Options,
  loader: Forked<typeof load>,
  progress: Progress
): Promise<MemoryCost> => {
  const concurrency = given.at(-1) ?? 1
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  try {
    const service = await startService({
      databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
      synchronous,
      nodeWords
    })
    await loader.call("target", service.directoryUrl)
    let issued = 0
    let seen: ReadonlyArray<number> = []
    const upTo = async (count: number) => {
      const wanted = Math.max(1, Math.round(count * part))
      while (issued < wanted) {
        const issuances = Math.min(wanted - issued, Math.max(1, Math.round(step * Math.min(1, part * 10))))
        progress(`${name}: ${issued} of ${wanted} issuances`)
        await loader.call("prepare", issuances)
        issued += (await loader.call("run", { concurrency, issuances })).issuances
        seen = [...seen, Procfs.rssOf(service.pid)].slice(-readings)
      }
      return { issuances: issued, rss: median(seen) }
    }
    const [first, last] = [await upTo(early), await upTo(late)]
    await service.stop()
    return { name, concurrency, early: first, late: last, ratio: last.rss / first.rss }
  } finally {
    await cluster?.stop()
  }
}

/** Measures on each database, with the last concurrency of the options. */
export const measureMemory = async (options: Options, progress: Progress): Promise<ReadonlyArray<MemoryCost>> => {
  const loader = startForked<typeof load>("load")
  const costs: Array<MemoryCost> = []
  for (const name of options.databases) costs.push(await measureOne(name, options, loader, progress))
  loader.stop()
  return costs
}

/** Describes the figures in words. */
export const memoryReport = (costs: ReadonlyArray<MemoryCost>): string =>
  costs.map(({ concurrency, early, late, name, ratio }) =>
    [
      `${name}, ${concurrency} clients:`,
      ...[early, late].map(({ issuances, rss }) =>
        `  RSS after ${String(issuances).padStart(6)} issuances  ${rss.toFixed(0).padStart(4)} MiB`
      ),
      `  ratio                      ${ratio.toFixed(2)}  (goal: at most 1.10)`
    ].join("\n")
  ).join("\n\n")
