import { setTimeout as delay } from "node:timers/promises"
import type { ProblemBody } from "../../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import type { FaultProxy, Seen } from "./FaultProxy.ts"
import type { Play } from "./Faults.ts"

/* Plays one fault after another through one relay, and reports each result. */

/** The result of one play. */
export interface Result {
  readonly play: Play
  /** `valid`, `revoked` or the type of the problem. */
  readonly ended: string
  /** How many requests of the play's kind the upstream received, and how many orders were opened there. */
  readonly requests: number
  readonly orders: number
  readonly seconds: number
  /** The differences from the expected result. */
  readonly wrong?: string
}

/** A profile that relays through a proxy of its own. */
export interface Lane {
  readonly profileUrl: string
  readonly proxy: FaultProxy
}

const longestMillis = 150_000

const suffixOf = ({ type = "" }: ProblemBody): string => type.slice(type.lastIndexOf(":") + 1)

/** Returns how many milliseconds after a fault the next request of its kind came, or undefined if none came. */
const soonest = (seen: ReadonlyArray<Seen>, play: Play): number | undefined => {
  const times = seen.filter(({ at }) => at === play.at)
  const gaps = times.flatMap(({ fault, millis }, index) => {
    const next = times[index + 1]
    return fault === play.fault && next !== undefined ? [next.millis - millis] : []
  })
  return gaps.length === 0 ? undefined : Math.min(...gaps)
}

const wrongWith = (play: Play, seen: ReadonlyArray<Seen>, ended: string, orders: number): string | undefined => {
  const requests = seen.filter(({ at }) => at === play.at).length
  const faults = seen.filter(({ at, fault }) => at === play.at && fault === play.fault).length
  const gap = soonest(seen, play)
  if (faults === 0) return "the request was never made"
  if (ended !== play.ends) return `ended ${ended}, and not ${play.ends}`
  if (play.most !== undefined && requests > play.most) return `asked again ${requests - play.most} times`
  if (play.waits !== undefined && gap !== undefined && gap < play.waits * 1000) {
    return `asked again after ${gap.toFixed(0)} ms`
  }
  return orders > play.orders ? `${orders} orders at the upstream` : undefined
}

/**
 * Requests the revocation until it has ended. A failed revocation is not requested again, because that would be another
 * revocation.
 */
const revoke = async (session: AcmeSession, chain: string, reason: number): Promise<string> => {
  const [, der = ""] = /-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(chain) ?? []
  const certificate = Buffer.from(der, "base64").toString("base64url")
  for (const until = performance.now() + longestMillis; performance.now() < until; await delay(200)) {
    const answer = await session.postOnce(session.directory.revokeCert ?? "", { certificate, reason })
    if (answer.status === 200) return "revoked"
    if (answer.status !== 503) return problemType(answer) ?? `${answer.status}`
  }
  return "never"
}

/** Plays one fault: orders a certificate and, if the fault concerns revokeCert, revokes it. */
const playOne = async ({ proxy }: Lane, session: AcmeSession, play: Play, name: string): Promise<Result> => {
  const begun = performance.now()
  const isRevocation = play.at === "revokeCert"
  proxy.begin(isRevocation ? [] : play.rules)
  const { csr } = makeCsr({ names: [name] })
  const placed = await session.newOrder([name])
  const { challenges } = await session.authorization(placed.body.authorizations[0] ?? "")
  await session.trigger(challenges[0]?.url ?? "")
  await session.awaitOrder(placed.url, ["ready"])
  await session.finalize(placed.body, csr)
  const order = await session.awaitOrder(placed.url, ["valid", "invalid"], longestMillis)
  let ended = order.status === "valid" ? "valid" : suffixOf(order.error ?? {})
  const orders = proxy.seen().filter(({ at, status }) => at === "newOrder" && status === 201).length
  let seen = proxy.seen()
  if (isRevocation && order.certificate !== undefined) {
    const chain = await session.download(order.certificate)
    proxy.begin(play.rules)
    ended = await revoke(session, chain, 4)
    seen = proxy.seen()
  }
  const wrong = wrongWith(play, seen, ended, orders)
  return {
    play,
    ended,
    requests: seen.filter(({ at }) => at === play.at).length,
    orders,
    seconds: (performance.now() - begun) / 1000,
    ...wrong === undefined ? {} : { wrong }
  }
}

/** Plays the given plays one after another. `nameOf` returns the name for each of their orders. */
export const playAll = async (
  lane: Lane,
  plays: ReadonlyArray<Play>,
  nameOf: (index: number) => string
): Promise<ReadonlyArray<Result>> => {
  const session = await AcmeSession.open(lane.profileUrl, { patienceMs: 30_000 })
  try {
    await session.register()
    const results: Array<Result> = []
    for (const [index, play] of plays.entries()) {
      const begun = performance.now()
      results.push(
        await playOne(lane, session, play, nameOf(index)).catch((cause: unknown) => ({
          play,
          ended: "broken",
          requests: 0,
          orders: 0,
          seconds: (performance.now() - begun) / 1000,
          wrong: String(cause)
        }))
      )
    }
    return results
  } finally {
    session.close()
  }
}
