import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { LoopDisk } from "../support/LoopDisk.ts"
import { makeLoopDisk } from "../support/LoopDisk.ts"
import { startPostgres } from "../support/Postgres.ts"
import { minimalConfig } from "../support/Server.ts"
import { NotMountable } from "../support/SmallDisk.ts"
import { killTree, stopTree } from "../support/Stopped.ts"
import type { SiteOptions } from "./Site.ts"
import type { Fault, Means, Outcome, Stage } from "./Stage.ts"
import { NotPossible, under } from "./Stage.ts"
import { shared, tamperWithSyncs } from "./Syncs.ts"

const mounted = (): LoopDisk => {
  try {
    return makeLoopDisk(256)
  } catch (error) {
    throw error instanceof NotMountable ? new NotPossible(error.message) : error
  }
}

/** A program other than the service that writes to the disk. */
interface Neighbour {
  /** Stops the program, calls `keep`, and then ends the program. */
  readonly cut: (keep: () => void) => Promise<void>
  readonly begin: () => Promise<void>
}

/**
 * Cuts the power under load: stops the writing processes, keeps the synced content of the disk, and starts everything
 * with that content. A copy that is made while processes write would mix contents of different times.
 */
const cutting =
  (disk: LoopDisk, neighbour: Neighbour, begun: (pid: number) => Promise<unknown> = async () => {}) =>
  async (
    { chance, load, means: { clients, rounds }, site: { acme } }: Stage
  ): Promise<number> => {
    for (let round = 0; round < rounds; round++) {
      await begun(acme.pid())
      await load.answers.more(20 + chance(8 * clients))
      const pids = await stopTree(acme.pid())
      await neighbour.cut(disk.keep)
      // A stopped process that is left behind would keep files of the disk open.
      killTree(pids)
      await acme.exited()
      disk.cut()
      await neighbour.begin()
      await acme.restart()
      await load.ledger.acknowledged.more(2 * clients)
    }
    return rounds
  }

const nobody: Neighbour = {
  cut: (keep) => Promise.resolve(keep()),
  begin: () => Promise.resolve()
}

const onSqlite = (
  means: Means,
  disk: LoopDisk,
  env: SiteOptions["env"] = {},
  begun?: (pid: number) => Promise<unknown>
): Promise<Outcome> => {
  const home = join(disk.directory, "home")
  mkdirSync(home)
  writeFileSync(join(home, "config.toml"), minimalConfig)
  disk.sync() // This syncs the files of the operator. From now on the service must sync its own files.
  const options: SiteOptions = { home, config: null, env }
  return under(means, options, cutting(disk, nobody, begun))
}

const onPostgres = async (means: Means, disk: LoopDisk): Promise<Outcome> => {
  const cluster = await startPostgres({ within: disk.directory, durable: true })
  try {
    const databaseUrl = await cluster.createDatabase()
    disk.sync() // This syncs the empty database, because no process has synced it yet.
    return await under(means, { databaseUrl }, cutting(disk, { cut: cluster.cutPower, begin: cluster.resume }))
  } finally {
    await cluster.stop()
  }
}

/** The power is cut. Unsynced data is lost, but everything that was acknowledged must still exist. */
export const powerCut: Fault = {
  name: "power cut",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 5,
  run: async (means) => {
    const disk = mounted()
    try {
      return await (means.database === "SQLite" ? onSqlite : onPostgres)(means, disk)
    } finally {
      disk.remove()
    }
  }
}

const slowerMicros = 10_000

/** The power is cut while commits share syncs. Each sync takes ten milliseconds longer than usual. */
export const powerCutBetweenSyncs: Fault = {
  name: "power cut between shared syncs",
  databases: ["SQLite"],
  rounds: 5,
  run: async (means) => {
    const disk = mounted()
    try {
      return await onSqlite(means, disk, shared, (pid) => tamperWithSyncs(pid, `delay_enter=${slowerMicros}`))
    } finally {
      disk.remove()
    }
  }
}
