import { join } from "node:path"
import type { PostgresCluster } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { SmallDisk } from "../support/SmallDisk.ts"
import { makeSmallDisk, NotMountable } from "../support/SmallDisk.ts"
import type { Fault, Means, Outcome, Stage } from "./Stage.ts"
import { NotPossible, under } from "./Stage.ts"

const mounted = (megabytes: number): SmallDisk => {
  try {
    return makeSmallDisk(megabytes)
  } catch (error) {
    throw error instanceof NotMountable ? new NotPossible(error.message) : error
  }
}

/** Fills the disk under load until requests fail, and then frees the space again. */
const filling =
  (disk: SmallDisk, room: number, mend: () => Promise<void>) =>
  async ({ chance, load, means: { clients, rounds }, site: { acme } }: Stage): Promise<number> => {
    const pid = acme.pid()
    for (let round = 0; round < rounds; round++) {
      disk.fill(chance(room))
      await load.failures.more(2 * clients)
      const health = await fetch(`${acme.baseUrl}/health`)
      if (health.status !== 200) throw new Error(`health is ${health.status} while the disk is full`)
      disk.clear()
      await mend()
      await load.ledger.acknowledged.more(2 * clients)
    }
    const shown = await Promise.race([acme.exited(), Promise.resolve(undefined)])
    if (shown !== undefined || acme.pid() !== pid) throw new Error("the service did not outlive the full disk")
    return rounds
  }

const onSqlite = async (means: Means): Promise<Outcome> => {
  const disk = mounted(64)
  try {
    const databaseUrl = `sqlite://${join(disk.directory, "acme.db")}`
    return await under(means, { databaseUrl }, filling(disk, 262_144, () => Promise.resolve()))
  } finally {
    disk.remove()
  }
}

const onPostgres = async (means: Means): Promise<Outcome> => {
  const disk = mounted(128)
  let cluster: PostgresCluster | undefined
  try {
    cluster = await startPostgres({ within: disk.directory })
    const { createDatabase, isGone, resume } = cluster
    return await under(
      means,
      { databaseUrl: await createDatabase() },
      // A server that could not write its log has ended, and must be started again.
      filling(disk, 65_536, async () => {
        if (isGone()) means.say("PostgreSQL has ended itself")
        await resume()
      })
    )
  } finally {
    await cluster?.stop()
    disk.remove()
  }
}

/** The disk of the database becomes full, and the space is freed while the service runs. */
export const fullDisk: Fault = {
  name: "full disk of the database",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 3,
  run: (means) => means.database === "SQLite" ? onSqlite(means) : onPostgres(means)
}
