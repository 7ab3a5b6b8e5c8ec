import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"
import { patienceMs } from "./Load.ts"
import type { Site } from "./Site.ts"
import type { Fault, Means, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/** The path of the recipe for a program that signs. */
export const recipe = resolve(import.meta.dirname, "../../docs/recipes/sign-with-openssl.sh")

/** How long it may take until another worker continues the order of a dead worker. */
const promisedSeconds = 20

/** Places an order at a profile that validates nothing, and finalizes the order. */
export const finalized = async (acme: Server, profile: string, name: string) => {
  const session = await AcmeSession.open(acme.profileUrl(profile), { patienceMs })
  await session.register()
  const { body, url } = await session.newOrder([name])
  const { challenges } = await session.authorization(body.authorizations[0] ?? "")
  await session.trigger(challenges[0]?.url ?? "")
  await session.awaitOrder(url, ["ready"])
  await session.finalize(body, makeCsr({ names: [name] }).csr)
  return { session, url, id: url.slice(url.lastIndexOf("/") + 1) }
}

/** Returns the worker that signs this order. */
export const holderOf = async ({ databaseUrl, workers }: Site, orderId: string): Promise<Server> => {
  const [row] = await sqlAt(
    databaseUrl,
    `SELECT lease_owner FROM jobs WHERE status = 'running' AND dedup_key = '${orderId}'`
  )
  const owner = String(row?.["lease_owner"])
  const holder = workers.find((worker) => owner.split(":").includes(`${worker.pid()}`))
  if (holder === undefined) throw new Error(`nobody signs order ${orderId}: ${owner}`)
  return holder
}

/** The process that takes over the order, which is the restarted worker or only the other one. */
type Heir = "itself" | "neighbour"

/** Kills the worker that has the order, waits until the order continues, and returns how long this took. */
const killed = async (
  { load, measured, site }: Stage,
  order: Awaited<ReturnType<typeof finalized>>,
  heir: Heir,
  release: () => void
): Promise<void> => {
  const holder = await holderOf(site, order.id)
  await holder.kill9()
  const begun = performance.now()
  release()
  if (heir === "itself") await holder.restart()
  const { status } = await load.beside(order.session.awaitOrder(order.url, ["valid", "invalid"], patienceMs))
  const seconds = (performance.now() - begun) / 1000
  order.session.close()
  if (heir === "neighbour") await holder.restart()
  if (status !== "valid") throw new Error(`an order whose worker was killed ended ${status}`)
  measured(`by ${heir} ${seconds.toFixed(1)} s`)
  if (seconds > promisedSeconds) throw new Error(`it took ${seconds.toFixed(1)} s until ${heir} had taken it over`)
}

const heirs: ReadonlyArray<Heir> = ["itself", "neighbour"]

/** A worker is killed while a script signs for it. */
export const killWhileSigning: Fault = {
  name: "kill -9 while signing",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 2,
  run: async (means: Means) => {
    const home = mkdtempSync(join(tmpdir(), "acme-faults-"))
    const hold = join(home, "hold")
    const script = join(home, "sign")
    writeFileSync(
      script,
      `#!/bin/sh\ntouch "${home}/begun.$ACME_SIGNER_ORDER_ID"; while [ -e '${hold}' ]; do sleep 0.05; done\nexec '${recipe}' '${home}'\n`
    )
    chmodSync(script, 0o755)
    const config =
      `${minimalConfig}[profiles.held.challenge]\nbypass = true\n[profiles.held.signer]\nbackend = "custom"\n` +
      `[profiles.held.signer.custom]\nscript_path = "${script}"\ntimeout_ms = 50000\n`
    return under(means, { ...await siteOn(means), home, config, workers: 2 }, async (stage) => {
      for (let round = 0; round < means.rounds; round++) {
        for (const heir of heirs) {
          writeFileSync(hold, "")
          const order = await finalized(stage.site.acme, "held", `${heir}${round}.held.example`)
          await order.session.poll(
            () => Promise.resolve(existsSync(join(home, `begun.${order.id}`))),
            (isBegun) => isBegun,
            patienceMs
          )
          await killed(stage, order, heir, () => rmSync(hold))
        }
      }
      return heirs.length * means.rounds
    })
  }
}

/** A worker is killed while the upstream CA delays its answer. */
export const killWhileRelaying: Fault = {
  name: "kill -9 while relaying",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 2,
  run: async (means: Means) => {
    const home = mkdtempSync(join(tmpdir(), "acme-faults-"))
    const at = join(home, "upstream")
    mkdirSync(at)
    // Both use one CA, with which every stored certificate is checked.
    const made = await runToEnd(["init"], { directory: home })
    if (made.code !== 0) throw new Error(`init: ${made.stderr}`)
    for (const file of ["ca.pem", "ca.key"]) copyFileSync(join(home, file), join(at, file))
    for (const file of ["sqlite.db", "sqlite.db-wal", "sqlite.db-shm", "ca.crl"]) {
      rmSync(join(home, file), { force: true })
    }
    const upstream = await startServer({ directory: at, env: { ACME_SVC_CHALLENGE__BYPASS: "true" } })
    try {
      const config =
        `${minimalConfig}[profiles.relayed.challenge]\nbypass = true\n[profiles.relayed.signer]\nbackend = "relay"\n` +
        `[profiles.relayed.signer.relay]\ndirectory_url = "${upstream.directoryUrl}"\n`
      return await under(means, { ...await siteOn(means), home, config, workers: 2 }, async (stage) => {
        for (let round = 0; round < means.rounds; round++) {
          for (const heir of heirs) {
            upstream.signal("SIGSTOP")
            const order = await finalized(stage.site.acme, "relayed", `${heir}${round}.relayed.example`)
            await order.session.poll(
              () =>
                sqlAt(
                  stage.site.databaseUrl,
                  `SELECT 1 FROM jobs WHERE dedup_key = '${order.id}' AND status = 'running'`
                ),
              (rows) => rows.length > 0,
              patienceMs
            )
            await killed(stage, order, heir, () => upstream.signal("SIGCONT"))
          }
        }
        const placed = await sqlAt(`sqlite://${join(at, "sqlite.db")}`, "SELECT count(*) AS n FROM orders")
        const orders = Number(placed[0]?.["n"])
        if (orders !== heirs.length * means.rounds) throw new Error(`the upstream has ${orders} orders`)
        return orders
      })
    } finally {
      upstream.signal("SIGCONT")
      await upstream.dispose()
    }
  }
}
