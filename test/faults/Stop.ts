import { setTimeout as delay } from "node:timers/promises"
import { idText, sqlAt } from "../support/OpenDatabase.ts"
import type { Server } from "../support/Server.ts"
import { patienceMs } from "./Load.ts"
import type { Site } from "./Site.ts"
import type { Fault, Means, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/** Returns whether requests for this host wait at the responder, with the workers that sent them. */
const isHeld = (host: string): boolean => host.startsWith("held")

/** Returns the worker that validates this challenge. */
const holderOf = async ({ databaseUrl, workers }: Site, challengeId: string): Promise<Server> => {
  const [row] = await sqlAt(
    databaseUrl,
    `SELECT lease_owner FROM jobs WHERE status = 'running' AND dedup_key = '${challengeId}'`
  )
  const [, pid] = String(row?.["lease_owner"]).split(":")
  const holder = workers.find((worker) => `${worker.pid()}` === pid)
  if (holder === undefined) throw new Error(`nobody validates challenge ${challengeId}: ${JSON.stringify(row)}`)
  return holder
}

/**
 * Stops the worker. On SQLite, waits until the worker does not write, because otherwise no other process could write.
 */
const stopIt = async (worker: Server, { databaseUrl }: Site): Promise<void> => {
  for (;;) {
    worker.signal("SIGSTOP")
    if (!databaseUrl.startsWith("sqlite://")) return
    const isFree = await sqlAt(databaseUrl, "UPDATE workers SET version = version").then(() => true, () => false)
    if (isFree) return
    worker.signal("SIGCONT")
  }
}

/** Makes one validation, and stops its worker until another worker has taken over the validation. */
const round = async ({ load, site }: Stage, host: string, gate: Gate): Promise<void> => {
  const { responder } = site.world
  const session = await load.another()
  await session.register()
  const placed = await session.newOrder([host])
  const challenge = (await session.authorization(placed.body.authorizations[0] ?? "")).challenges[0]
  const { token = "", url = "" } = challenge ?? {}
  responder.tokens.set(token, session.keyAuthorization(token))
  const probes = () => responder.requests.filter((request) => request.host.split(":")[0] === host).length
  const probed = (count: number) =>
    session.poll(() => Promise.resolve(probes()), (seen) => seen >= count, patienceMs).then(() => undefined)

  await session.trigger(url)
  await probed(1)
  const challengeId = url.slice(url.lastIndexOf("/") + 1)
  const stopped = await holderOf(site, challengeId)
  await stopIt(stopped, site)
  try {
    await probed(2)
  } finally {
    gate.open()
  }
  const settled = await session.awaitOrder(placed.url, ["ready", "invalid"], patienceMs)
  if (settled.status !== "ready") throw new Error(`${host} is ${settled.status}`)
  stopped.signal("SIGCONT")
  // The result of the stopped worker no longer counts, which the worker must notice.
  const [row] = await sqlAt(site.databaseUrl, `SELECT id FROM jobs WHERE dedup_key = '${challengeId}'`)
  const jobId = idText(row?.["id"])
  await stopped.waitForEvent("job_lease_lost", {
    where: ({ fields }) => fields["job_id"] === jobId,
    timeoutMs: patienceMs
  })
}

interface Gate {
  readonly opened: Promise<void>
  readonly open: () => void
}

const makeGate = (): Gate => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** A worker that has jobs gets SIGSTOP, and SIGCONT after its lease has ended and another worker has done the jobs. */
export const stopWorker: Fault = {
  name: "SIGSTOP of a worker beyond its leases",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 2,
  run: async (means: Means) => {
    const gates = new Map<string, Gate>()
    const gateOf = (host: string): Gate => {
      const gate = gates.get(host) ?? makeGate()
      gates.set(host, gate)
      return gate
    }
    const before = async (host: string) => {
      const [name = ""] = host.split(":")
      if (isHeld(name)) await gateOf(name).opened
    }
    // The attempt waits until the other worker has taken over.
    const env = { ACME_SVC_CHALLENGE__TIMEOUT_MS: "25000" }
    return under(means, { ...await siteOn(means), workers: 2, web: { before }, env }, async (stage) => {
      for (let index = 0; index < means.rounds; index++) {
        const host = `held${index}.example`
        await round(stage, host, gateOf(host))
        await stage.load.answers.more(means.clients)
        await delay(stage.chance(25))
      }
      return means.rounds
    })
  }
}
