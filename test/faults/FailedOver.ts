import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { download } from "../interop/RevocationList.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { leafOf } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import type { PostgresCluster, PostgresFollower } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { Findings } from "./Auditor.ts"
import type { OrderEntry } from "./Ledger.ts"
import type { ListSource, ListWatch } from "./ListWatch.ts"
import { plainSerial, watchLists } from "./ListWatch.ts"
import type { Load } from "./Load.ts"
import type { Site } from "./Site.ts"
import type { Fault, Means, Outcome, Stage } from "./Stage.ts"
import { under } from "./Stage.ts"

/*
 * A primary is killed under load, and its standby takes over. Two processes serve, two workers have hosts of their own,
 * and one process is for operators. The URL names both servers.
 */

/** How the standby follows, and what must be true afterwards. */
interface Following {
  readonly isAsynchronous: boolean
  readonly delaySeconds?: number
  /** Whether a third server follows the second one and takes over from it as well. */
  readonly isTwice?: boolean
}

const serversOf = (url: string, ports: ReadonlyArray<number>): string => {
  const { host } = new URL(url)
  return url.replace(host, ports.map((port) => `127.0.0.1:${port}`).join(","))
}

const at = (url: string, port: number): string => serversOf(url, [port])

/** Returns every source of a list: the processes that serve, and the files that workers export. */
const sourcesOf = ({ fronts, workers }: Site): ReadonlyArray<ListSource> => [
  ...fronts.map(({ directory, port }, index) => ({
    name: `front ${index}`,
    read: () => download(`http://127.0.0.1:${port}/profile/default/crl`, join(directory, "ca.pem"))
  })),
  ...workers.map(({ directory }, index) => ({
    name: `export ${index}`,
    isLate: true as const,
    read: () => {
      const file = join(directory, "ca.crl")
      return Promise.resolve(existsSync(file) ? readFileSync(file) : undefined)
    }
  }))
]

const revoked = ({ ledger }: Load): ReadonlyArray<OrderEntry> =>
  ledger.orders.filter(({ chain, isRevoked }) => isRevoked && chain !== undefined)

const serialOf = ({ chain = "" }: OrderEntry): string => plainSerial(leafOf(chain).serialNumber)

/** Waits until clients have learned of this many more revocations, and returns the last one. */
const moreRevoked = async (load: Load, count: number): Promise<OrderEntry> => {
  for (const enough = revoked(load).length + count; revoked(load).length < enough;) {
    await load.ledger.acknowledged.more(1)
  }
  const last = revoked(load).at(-1)
  if (last === undefined) throw new Error("nothing was revoked")
  return last
}

/** Waits until clients have revoked, and every process that serves has a list with that revocation. */
const listedSoon = async (load: Load, lists: ListWatch, count: number): Promise<void> =>
  lists.has(serialOf(await moreRevoked(load, count)))

const idsIn = (text: string): ReadonlyArray<string> => text.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []

/**
 * Returns whether a text is about an order or a challenge that exists, but at an earlier step than the client was told.
 * Clients repeat such a step.
 */
const isStep = (text: string): boolean =>
  /\/order\/\S+ is (?:stored as )?(?:pending|ready)$|was answered and is pending$/.test(text)

/**
 * Returns whether a text is about an account that exists with an earlier key, because the change of its key was lost.
 * What belongs to the account exists, but the client cannot ask for it with the key that it was told to use.
 */
const isEarlierKey = (text: string): boolean => text.endsWith("\"The signature does not verify.\"}")

/** Returns the fields of every report of a lost change. */
const lostIn = ({ processes }: Site) =>
  processes.flatMap((server) => server.records()).flatMap(({ fields }) =>
    fields["event"] === "db_change_lost" ? [fields] : []
  )

/** Returns the ids of the accounts and orders that processes reported as lost. */
const namedIn = (site: Site): ReadonlySet<string> =>
  new Set(lostIn(site).flatMap((fields) => [String(fields["account_id"]), String(fields["order_id"])]))

/** Returns the serial numbers of the certificates whose revocation processes reported as lost. */
const revocationsNamedIn = (site: Site): ReadonlySet<string> =>
  new Set(
    lostIn(site).flatMap((fields) =>
      fields["change"] === "certificate_revoked" ? plainSerial(String(fields["cert_serial"])) : []
    )
  )

/**
 * How long processes may take until they have reported everything, which is the time of two searches on a busy machine.
 */
const namedWithinMs = 30_000

/**
 * Judges the loss of the data that the standby lacked. The processes must have reported all of it. Everything that was
 * acknowledged before the standby was cut off must exist. `before` has the ids of those accounts and orders.
 */
const judgeLoss = async (
  { load: { forgotten, ledger }, measured, site }: Stage,
  { lost, twice }: Findings,
  before: ReadonlySet<string>
): Promise<Findings> => {
  const orderOf = new Map(
    ledger.orders.flatMap(({ challenges, url }) => challenges.map((one) => [idsIn(one).at(-1), idsIn(url).at(-1)]))
  )
  const accountOf = new Map(ledger.orders.map(({ account, url }) => [idsIn(url).at(-1), idsIn(account.url).at(-1)]))
  const subjectOf = (text: string): string => {
    const id = idsIn(text).at(-1) ?? ""
    return (isEarlierKey(text) ? accountOf.get(id) : orderOf.get(id)) ?? id
  }
  const isGone = (text: string): boolean => !isEarlierKey(text) && /not in the database|: 40\d /.test(text)
  const steps = lost.filter(isStep)
  const gone = lost.filter((text) => !isStep(text))
  const unnamed = () => gone.filter((text) => !namedIn(site).has(subjectOf(text)))
  for (const end = Date.now() + namedWithinMs; unnamed().length > 0 && Date.now() < end;) await delay(200)
  const named = namedIn(site)
  const events = site.processes.flatMap((server) => server.records())
    .filter(({ fields }) => fields["event"] === "db_went_back").length
  measured(
    `${new Set(gone.map(subjectOf)).size} accounts and orders hit, ${steps.length} steps to repeat; ` +
      `${named.size} ids named by ${events} processes; ${forgotten.value} clients began again`
  )
  if (events === 0) throw new Error("nobody has said that the database went back")
  const rows = await sqlAt(site.databaseUrl, "SELECT 1 FROM audit_log WHERE event = 'changes_lost'")
  if (rows.length !== events) throw new Error(`${rows.length} rows of the trail for ${events} events`)
  return {
    lost: [...unnamed(), ...gone.filter((text) => isGone(text) && before.has(subjectOf(text)))],
    // A certificate whose record was lost is issued again.
    twice: twice.filter((text) => !idsIn(text).some((id) => named.has(id) || named.has(orderOf.get(id) ?? "")))
  }
}

interface Servers {
  readonly primary: PostgresCluster
  readonly first: PostgresFollower
  /** The port of the server that follows the promoted standby. */
  readonly second: number
}

const failOver = async (
  means: Means,
  { isAsynchronous, isTwice }: Following,
  { first, primary, second }: Servers
): Promise<Outcome> => {
  const url = await primary.createDatabase()
  const env = {
    ACME_SVC_DATABASE__URL: serversOf(url, [primary.port, first.port, ...isTwice === true ? [second] : []])
  }
  const layout = { fronts: 2, workers: 2, areApart: true, hasAdmin: true }
  let stop = () => Promise.resolve()
  let stopNext = () => Promise.resolve()
  const before = new Set<string>()
  const inject = async ({ chance, load, means: { clients }, measured, site }: Stage) => {
    const lists = watchLists(sourcesOf(site), join(site.acme.directory, "ca.pem"))
    stop = lists.stop
    await listedSoon(load, lists, 2 + chance(4))
    if (isAsynchronous) {
      for (const { url: one } of [...load.ledger.accounts, ...load.ledger.orders]) {
        for (const id of idsIn(one)) before.add(id)
      }
      await first.cutOff()
      await listedSoon(load, lists, 2)
      await moreRevoked(load, 1)
    }
    await primary.cutPower(() => undefined)
    await first.promote()
    await load.ledger.acknowledged.more(3 * clients)
    await listedSoon(load, lists, 2)
    if (isTwice === true) {
      const next = await first.follower({ port: second })
      stopNext = next.stop
      await load.ledger.acknowledged.more(2 * clients)
      await first.cutPower()
      await next.promote()
      await load.ledger.acknowledged.more(3 * clients)
      await listedSoon(load, lists, 2)
    }
    await load.finish()
    // After an asynchronous failover, a revocation that a process reports as lost stays lost unless it was listed. All
    // others get onto every list.
    const listed = () => {
      const lost = isAsynchronous ? revocationsNamedIn(site) : new Set<string>()
      return revoked(load).filter((entry) => lists.isListed(serialOf(entry)) || !lost.has(serialOf(entry)))
    }
    await lists.hasEverywhere(() => listed().map(serialOf))
    await lists.refuses(listed().map(({ chain = "" }) => leafOf(chain).toString()))
    if (lists.wrong.length > 0) throw new Error(lists.wrong.join("\n"))
    measured(`${lists.verified()} lists verified, ${lists.unanswered()} not answered`)
    return isTwice === true ? 2 : 1
  }
  try {
    return await under(
      means,
      {
        ...layout,
        databaseUrl: at(url, isTwice === true ? second : first.port),
        env,
        manners: { isForgetful: isAsynchronous },
        ...isAsynchronous ? { judge: (stage: Stage, findings: Findings) => judgeLoss(stage, findings, before) } : {}
      },
      inject
    )
  } finally {
    await stop()
    await stopNext()
  }
}

const injected = (following: Following) => async (means: Means): Promise<Outcome> => {
  const primary = await startPostgres({ followed: true })
  try {
    const first = await primary.follower(following)
    try {
      return await failOver(means, following, { primary, first, second: await freePort() })
    } finally {
      await first.stop()
    }
  } finally {
    await primary.stop()
  }
}

/** A commit is acknowledged when the standby has it, so nothing is lost. */
export const failedOverSynchronously: Fault = {
  name: "primary killed, synchronous standby promoted",
  databases: ["PostgreSQL"],
  rounds: 1,
  run: injected({ isAsynchronous: false })
}

/** The standby has everything, but shows the state of a minute ago when it is promoted. */
export const failedOverLate: Fault = {
  name: "primary killed, standby a minute behind promoted",
  databases: ["PostgreSQL"],
  rounds: 1,
  run: injected({ isAsynchronous: false, delaySeconds: 60 })
}

/** The server that was promoted is killed too. */
export const failedOverTwice: Fault = {
  name: "primary killed, then the promoted standby",
  databases: ["PostgreSQL"],
  rounds: 2,
  run: injected({ isAsynchronous: false, isTwice: true })
}

/** The standby lacks the last commits. */
export const failedOverAsynchronously: Fault = {
  name: "primary killed, asynchronous standby promoted",
  databases: ["PostgreSQL"],
  rounds: 1,
  run: injected({ isAsynchronous: true })
}
