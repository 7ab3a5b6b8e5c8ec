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

/** `kill -9` of one of two processes that use a file whose commits share syncs. */
export const killBetweenSyncs: Fault = {
  name: "kill -9 between shared syncs",
  databases: ["SQLite"],
  rounds: 10,
  run: killing(1, shared)
}

/** Kills a process of several under a parent, or lets it stop in order, and waits for its successor. */
export const killChild: Fault = {
  name: "kill -9 or SIGTERM under a parent",
  databases: ["PostgreSQL"],
  rounds: 10,
  run: async (means) =>
    under(
      means,
      { ...await siteOn(means), env: { ACME_SVC_SERVER__PROCESSES: "2" } },
      async ({ chance, load, means: { rounds }, site: { acme } }) => {
        const of = (event: string, process: number) =>
          acme.records().filter(({ fields }) => fields["event"] === event && fields["process"] === process)
        const ready = (process: number, times: number) => {
          let seen = 0
          const isLast = ({ fields }: ReturnType<typeof acme.records>[number]) =>
            fields["process"] === process && ++seen >= times
          return acme.waitForEvent("server_process_ready", { where: isLast })
        }
        for (const process of [0, 1, 2]) await ready(process, 1)
        for (let round = 0; round < rounds; round++) {
          await load.answers.more(20 + chance(8 * means.clients))
          const victim = chance(3)
          const before = of("server_process_ready", victim).length
          const pid = Number(of("server_process_started", victim).at(-1)?.fields["pid"])
          process.kill(pid, chance(2) === 0 ? "SIGKILL" : "SIGTERM")
          await ready(victim, before + 1)
        }
        return rounds
      }
    )
}
