import { setTimeout as delay } from "node:timers/promises"
import type { SiteOptions } from "./Site.ts"
import type { Fault, Means } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"
import { shared } from "./Syncs.ts"

/**
 * Kills one of the processes and starts it again. The number of answers determines the times, so that the process is at
 * work then.
 */
const killing = (workers: number | undefined, env: SiteOptions["env"] = {}) => async (means: Means) =>
  under(
    means,
    { ...await siteOn(means), ...workers === undefined ? {} : { workers }, env },
    async ({ chance, load, means: { rounds }, site }) => {
      for (let round = 0; round < rounds; round++) {
        await load.answers.more(20 + chance(8 * means.clients))
        await delay(chance(25))
        const victim = site.processes[chance(site.processes.length)] ?? site.acme
        await victim.kill9()
        await victim.restart()
      }
      // Acknowledged facts are in the database, not in the processes.
      for (const server of site.processes) await server.restart()
      return rounds
    }
  )

/** `kill -9` of the only process. */
export const killOne: Fault = {
  name: "kill -9 of the one process",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 10,
  run: killing(undefined)
}

/** `kill -9` of the process that serves or of the worker. */
export const killApart: Fault = {
  name: "kill -9 of acme or worker",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 10,
  run: killing(1)
}

/** The same on a file whose commits share syncs, with two processes that see each other's commits. */
export const killBetweenSyncs: Fault = {
  name: "kill -9 between shared syncs",
  databases: ["SQLite"],
  rounds: 10,
  run: killing(1, shared)
}
