import { spawn } from "node:child_process"
import { once } from "node:events"
import { setTimeout as delay } from "node:timers/promises"
import type { Fault } from "./Stage.ts"
import { NotPossible, siteOn, under } from "./Stage.ts"

/* `strace` slows down the syncs that the commits of a SQLite file share, or makes these syncs fail. */

/** The setting with which commits share syncs. */
export const shared = { ACME_SVC_DATABASE__SQLITE__SYNCHRONOUS: "grouped" } as const

/**
 * Changes the result of each `fdatasync` of a process, in the words of `strace`. When the change is in force, returns a
 * function that ends the change.
 */
export const tamperWithSyncs = async (pid: number, change: string): Promise<() => void> => {
  const words = ["-f", "-e", "trace=fdatasync", "-e", `inject=fdatasync:${change}`, "-o", "/dev/null", "-p", `${pid}`]
  const tracer = spawn("strace", words, { stdio: ["ignore", "ignore", "pipe"] })
  const attached = (async () => {
    let said = ""
    for await (const chunk of tracer.stderr) {
      said += String(chunk)
      if (/attached/.test(said)) return
    }
    throw new NotPossible(`strace cannot attach: ${said.trim()}`)
  })()
  const failed = once(tracer, "error").then(() => Promise.reject(new NotPossible("strace is not here")))
  await Promise.race([attached, failed])
  failed.catch(() => {})
  return () => void tracer.kill("SIGTERM")
}

/** Syncs fail. The service ends, because it cannot know what is on the disk. Nothing that it acknowledged is lost. */
export const failedSyncs: Fault = {
  name: "shared syncs that fail",
  databases: ["SQLite"],
  rounds: 2,
  run: async (means) =>
    under(means, { ...await siteOn(means), env: shared }, async ({ load, means: { clients, rounds }, site }) => {
      for (let round = 0; round < rounds; round++) {
        await load.ledger.acknowledged.more(2 * clients)
        await tamperWithSyncs(site.acme.pid(), "error=EIO")
        await site.acme.waitForEvent("server_fatal_error", {
          where: ({ fields }) => String(fields["error"]).includes("could not be written to the disk: EIO")
        })
        const { code } = await site.acme.exited()
        if (code !== 1) throw new Error(`the service ended with ${code} when a sync failed`)
        await site.acme.restart()
        await load.ledger.acknowledged.more(clients)
      }
      return rounds
    })
}

const slowMillis = 10_000

/** A sync takes ten seconds. Only requests that depend on a commit wait, and the service continues afterwards. */
export const slowSync: Fault = {
  name: "shared sync that takes ten seconds",
  databases: ["SQLite"],
  rounds: 1,
  run: async (means) =>
    under(
      means,
      { ...await siteOn(means), env: shared },
      async ({ load, means: { clients, rounds }, measured, site }) => {
        for (let round = 0; round < rounds; round++) {
          await load.ledger.acknowledged.more(clients)
          const end = await tamperWithSyncs(site.acme.pid(), `delay_enter=${slowMillis * 1000}`)
          await delay(200) // Within this time, the next sync begins.
          const begun = performance.now()
          const answer = await fetch(`${site.acme.baseUrl}/profile/default/directory`)
          await answer.arrayBuffer()
          const took = performance.now() - begun
          measured(`directory after ${took.toFixed(0)} ms`)
          if (answer.status !== 200 || took > slowMillis / 2) throw new Error(`the directory took ${took} ms`)
          end()
          await load.ledger.acknowledged.more(2 * clients)
        }
        return rounds
      }
    )
}
