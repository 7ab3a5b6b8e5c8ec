import { spawnSync } from "node:child_process"
import { setTimeout as delay } from "node:timers/promises"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import { migrate, runCommand, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures the cost of a service from its start to its first answer, of an idle service, and of commands that do part of
 * a start.
 */

/** How often the service is started and each command is run. */
const rounds = 7
/**
 * The time after which the process has done everything that it does once after its start. The last of that are two
 * collections of the old generation, which V8 makes when a process becomes idle.
 */
const settlingMillis = 30_000
const idleMillis = 20_000

/** The results on one database. Times and CPU are in milliseconds, and resident memory is in MiB. */
export interface StartCost {
  readonly name: Dialect
  /** The time until the first answer. */
  readonly answered: number
  readonly cpu: number
  /** The CPU of the runtime alone. */
  readonly runtimeCpu: number
  /** The CPU of `--version`, which loads the program and evaluates what every command needs. */
  readonly loadedCpu: number
  /** The CPU of `order list`, which also reads the configuration and the database. */
  readonly commandCpu: number
  /** The CPU that the service uses in a second without requests. */
  readonly idleCpu: number
  readonly idleRss: number
}

/** Returns the CPU of a process that `run` starts and waits for. The kernel counts it in whole ticks. */
const cpuOf = (run: () => unknown): number => {
  const before = Procfs.cpuOfEnded(process.pid)
  run()
  return Procfs.cpuOfEnded(process.pid) - before
}

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, one) => sum + one, 0) / values.length

const measureOne = async (
  name: Dialect,
  { nodeWords, part, synchronous }: Options,
  progress: Progress
): Promise<StartCost> => {
  const times = Math.max(1, Math.round(rounds * part))
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  try {
    const options = { databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db", synchronous, nodeWords }
    const directory = migrate(options)
    const start = async () => {
      const begun = performance.now()
      const service = await startService({ ...options, directory })
      await (await fetch(service.directoryUrl)).text()
      return { service, answered: performance.now() - begun, cpu: Procfs.cpuOf(service.pid).total }
    }
    // The very first start makes a CA and stores compiled code, so it does not count.
    await (await start()).service.stop()
    const starts: Array<{ readonly answered: number; readonly cpu: number }> = []
    const commands: Array<Pick<StartCost, "runtimeCpu" | "loadedCpu" | "commandCpu">> = []
    for (let round = 0; round < times; round++) {
      progress(`${name}: start ${round + 1} of ${times}`)
      const { service, ...cost } = await start()
      starts.push(cost)
      await service.stop()
      commands.push({
        runtimeCpu: cpuOf(() => spawnSync(process.execPath, ["--eval", "0"])),
        loadedCpu: cpuOf(() => runCommand({ ...options, directory }, ["--version"])),
        commandCpu: cpuOf(() => runCommand({ ...options, directory }, ["order", "list", "--json"]))
      })
    }
    progress(`${name}: idle`)
    const { service } = await start()
    await delay(settlingMillis * part)
    const [calm, begun] = [Procfs.cpuOf(service.pid).total, performance.now()]
    await delay(idleMillis * part)
    const used = (Procfs.cpuOf(service.pid).total - calm) / (performance.now() - begun) * 1000
    const idleRss = Procfs.rssOf(service.pid)
    await service.stop()
    return {
      name,
      answered: median(starts.map(({ answered }) => answered)),
      cpu: median(starts.map(({ cpu }) => cpu)),
      runtimeCpu: mean(commands.map(({ runtimeCpu }) => runtimeCpu)),
      loadedCpu: mean(commands.map(({ loadedCpu }) => loadedCpu)),
      commandCpu: mean(commands.map(({ commandCpu }) => commandCpu)),
      idleCpu: used,
      idleRss
    }
  } finally {
    await cluster?.stop()
  }
}

/** Measures on each database. */
export const measureStart = async (options: Options, progress: Progress): Promise<ReadonlyArray<StartCost>> => {
  const costs: Array<StartCost> = []
  for (const name of options.databases) costs.push(await measureOne(name, options, progress))
  return costs
}

/** Describes the figures in words. */
export const startReport = (costs: ReadonlyArray<StartCost>): string =>
  costs.map(({ answered, commandCpu, cpu, idleCpu, idleRss, loadedCpu, name, runtimeCpu }) =>
    [
      `${name}:`,
      `  first answer after the start  ${answered.toFixed(0).padStart(5)} ms          (goal: at most 500)`,
      `  CPU until then                ${cpu.toFixed(0).padStart(5)} ms          (goal: at most 300)`,
      `  CPU of the runtime alone      ${runtimeCpu.toFixed(0).padStart(5)} ms`,
      `  CPU of "--version"            ${loadedCpu.toFixed(0).padStart(5)} ms`,
      `  CPU of "order list"           ${commandCpu.toFixed(0).padStart(5)} ms          (goal: at most 250)`,
      `  CPU when idle                 ${idleCpu.toFixed(1).padStart(5)} ms a second (goal: at most 3)`,
      `  RSS when idle                 ${idleRss.toFixed(0).padStart(5)} MiB         (goal: at most 90)`
    ].join("\n")
  ).join("\n\n")
