import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { loops } from "../../src/domain/words/Loop.ts"
import { freePort } from "../support/Ports.ts"
import { patienceMs } from "./Load.ts"
import type { Fault, Means, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

const preload = new URL("Poisoned.ts", import.meta.url).href

/**
 * Returns whether a loop is left out, because its work ends by itself, begins with an event that does not happen here,
 * uses another database, or belongs to a parent and its children.
 */
const isNotPlayed = (loop: string, { database }: Means): boolean =>
  [
    "crl_first_list",
    "database_checkpoints",
    "generation_retired",
    "listener_closed",
    "reload_refused",
    "tls_expiry",
    "trace_export"
  ].includes(
    loop
  ) ||
  loop.startsWith("process_") ||
  (database === "SQLite" && loop === "job_ends_heard")

const statusOf = async (url: string): Promise<number> => (await fetch(url)).status

const until = async (what: string, holds: () => Promise<boolean>, giveUpMs = patienceMs): Promise<void> => {
  const end = performance.now() + giveUpMs
  while (!await holds()) {
    if (performance.now() > end) throw new Error(`${what} does not hold after ${giveUpMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/**
 * Ends each loop once with a defect. The end must be logged and counted, the loop must be started again, and clients
 * must get their certificates.
 */
const each = async (stage: Stage, folder: string, metrics: string): Promise<number> => {
  const { load, means, site } = stage
  const played = Object.keys(loops).filter((loop) => !isNotPlayed(loop, means))
  for (const loop of played) {
    writeFileSync(join(folder, loop), "")
    await site.acme.waitForEvent("server_loop_failed", {
      where: ({ fields }) => fields["loop"] === loop,
      timeoutMs: patienceMs
    })
    const series = new RegExp(`acme_svc_loop_restarts_total\\{[^}]*loop="${loop}"\\} [1-9]`)
    await until(`the count of ${loop}`, async () => series.test(await (await fetch(`${metrics}/metrics`)).text()))
    await load.ledger.acknowledged.more(means.clients)
  }
  for (const url of [site.acme.baseUrl, metrics]) {
    await until(`${url} is ready`, async () => await statusOf(`${url}/ready`) === 200)
  }
  return played.length
}

/**
 * Ends a loop again and again. The process must become unready and then end, and the next process must issue
 * certificates.
 */
const forGood = async ({ load, means, measured, site: { acme } }: Stage, folder: string): Promise<number> => {
  writeFileSync(join(folder, "job_claims"), "always")
  const begun = performance.now()
  await until("the process is unready", async () => await statusOf(`${acme.baseUrl}/ready`) === 503)
  if (await statusOf(`${acme.baseUrl}/health`) !== 200) throw new Error("an unready process is not alive")
  await acme.waitForEvent("server_loop_given_up", { timeoutMs: 150_000 })
  const { code } = await acme.exited()
  if (code !== 1) throw new Error(`the process ended with ${code}, and not with 1`)
  measured(`ended ${((performance.now() - begun) / 1000).toFixed(0)} s after the first death`)
  rmSync(join(folder, "job_claims"))
  await acme.restart()
  await until("the process is ready", async () => await statusOf(`${acme.baseUrl}/ready`) === 200)
  await load.ledger.acknowledged.more(means.clients)
  return 1
}

/** A defect in each piece of background work, one after the other, and a defect that persists. */
export const poison: Fault = {
  name: "poison for background work",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 1,
  run: async (means: Means) => {
    const site = await siteOn(means)
    const [port, adminPort] = [await freePort(), await freePort()]
    let folder = ""
    return under(
      means,
      {
        ...site,
        from: "source",
        tls: false,
        env: {
          NODE_OPTIONS: `--import ${preload}`,
          ACME_SVC_METRICS__ENABLED: "true",
          ACME_SVC_METRICS__BIND_ADDRESS: `127.0.0.1:${port}`,
          ACME_SVC_ADMIN__ENABLED: "true",
          ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
          ACME_SVC_ADMIN__BASE_URL: `http://127.0.0.1:${adminPort}`
        },
        envOf: () => ({ ACME_TEST_POISON: folder }),
        prepare: async (_, directory) => {
          folder = join(directory, "poison")
          mkdirSync(folder)
        }
      },
      async (stage) => await each(stage, folder, `http://127.0.0.1:${port}`) + await forGood(stage, folder)
    )
  }
}
