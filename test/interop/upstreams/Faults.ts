import type { Asked, Fault, Rule } from "./FaultProxy.ts"
import type { Upstream } from "./Upstream.ts"

/* The faults that can happen at each request of a relay, and how the order or the revocation must end. */

/** How often a fault occurs. `for ever` affects every request of the kind. */
export type Often = 1 | 2 | "for ever"

/** A play of the table. */
export interface Play {
  readonly at: Asked
  readonly fault: Fault
  readonly often: Often
  readonly rules: ReadonlyArray<Rule>
  /** `valid` or `revoked`, or else the type of the problem that the client gets. */
  readonly ends: string
  /** The largest permitted number of requests of the kind, or undefined if only time limits them. */
  readonly most?: number
  /** How many orders may be opened at the upstream. */
  readonly orders: number
  /** The seconds for which no request of the kind may follow the fault. */
  readonly waits?: number
}

const urn = "urn:ietf:params:acme:error:"
const problem = (
  name: string,
  status: number,
  type: string,
  retryAfter?: number
): Fault => ({
  name,
  answer: {
    status,
    type: "application/problem+json",
    body: JSON.stringify({ type: `${urn}${type}`, detail: "planted" }),
    ...retryAfter === undefined ? {} : { retryAfter: `${retryAfter}` }
  }
})
const page = (name: string, status: number, retryAfter?: number): Fault => ({
  name,
  answer: {
    status,
    type: "text/html",
    body: "<h1>planted</h1>",
    ...retryAfter === undefined ? {} : { retryAfter: `${retryAfter}` }
  }
})

/** The faults after which another attempt can save the order. */
const passing: ReadonlyArray<{ readonly fault: Fault; readonly waits?: number }> = [
  { fault: problem("429, wait 2 s", 429, "rateLimited", 2), waits: 2 },
  { fault: problem("rateLimited of 403, wait 2 s", 403, "rateLimited", 2), waits: 2 },
  { fault: page("503, wait 2 s", 503, 2), waits: 2 },
  { fault: problem("500, a problem", 500, "serverInternal") },
  { fault: page("500, a page", 500) },
  { fault: page("403, a page", 403) },
  {
    fault: {
      name: "403, other JSON",
      answer: { status: 403, type: "application/json", body: "{\"message\":\"blocked\"}" }
    }
  },
  { fault: problem("a problem of 2 MB", 403, "x".repeat(2_000_000)) },
  { fault: problem("badNonce", 400, "badNonce") },
  { fault: { name: "answer lost", damage: "lost" } },
  { fault: { name: "answer cut", damage: "cut" } },
  { fault: { name: "connection closed", silence: "closed" } },
  { fault: { name: "no answer for 30 s", silence: "hangs" } }
]

const hour = problem("429, wait 1 h", 429, "rateLimited", 3600)
const forbidden = problem("caa", 403, "caa")
const unauthorized = problem("unauthorized", 403, "unauthorized")

const hangs = ({ silence }: Fault) => silence === "hangs"
// The answer to HEAD has no body, so it cannot report a limit with another status.
const isLimit = ({ name }: Fault, at: Asked) =>
  name.startsWith("429") || (name.startsWith("rateLimited") && at !== "newNonce")

/** The requests of every order. */
const ofOrders: ReadonlyArray<Asked> = ["newOrder", "authorization", "challenge", "order", "finalize", "certificate"]

/**
 * Requests that change something at the upstream. The state of the order shows their effect even if no answer arrives.
 */
const ofChanges: ReadonlyArray<Asked> = ["newOrder", "challenge", "finalize"]

/** The requests that are sent only if the answer to newOrder was lost. */
const ofSearch: ReadonlyArray<Asked> = ["account", "orders"]

const lost: Fault = { name: "answer lost", damage: "lost" }
const times = (often: Often) => often === "for ever" ? Number.POSITIVE_INFINITY : often

/** Returns whether, as far as the relay can know, the upstream may have opened an order whose URL did not arrive. */
const isUnclear = ({ answer, damage }: Fault): boolean =>
  answer === undefined ? damage !== "cut" : answer.body.length > 1_000_000 ||
    (answer.type !== "application/problem+json" && answer.status !== 503)

/** Returns the plays for one kind of request in the course of an order. */
const orderPlays = (at: Asked, often: ReadonlyArray<Often>, lists: Upstream["lists"]): ReadonlyArray<Play> => {
  const isSearch = ofSearch.includes(at)
  const before: ReadonlyArray<Rule> = isSearch ? [{ at: "newOrder", fault: lost, times: 1 }] : []
  const rules = (fault: Fault, often: Often) => [...before, { at, fault, times: times(often) }]
  // Without a list, an order that may exist cannot be found. So a second order is opened, but no third one, because
  // each order may cost money.
  const isBlind = (fault: Fault) => lists !== "whole" && at === "newOrder" && isUnclear(fault)
  const ended = (fault: Fault, often: Often): string => {
    if (often === 1 || (often === 2 && (lists === "harmful" || !isBlind(fault)))) return "valid"
    // A list that stays unreadable counts as absent, and another order is opened.
    if (isSearch || (fault.damage !== undefined && ofChanges.includes(at) && !isBlind(fault))) return "valid"
    return isLimit(fault, at) ? "rateLimited" : "serverInternal"
  }
  const passed = passing.flatMap(({ fault, waits }) =>
    often.filter((often) => often === 1 || !hangs(fault)).map((often): Play => ({
      at,
      fault,
      often,
      rules: rules(fault, often),
      ends: ended(fault, often),
      orders: isBlind(fault) && fault.damage !== undefined
        ? 1 + (lists === "harmful" ? times(often) : 1)
        : isSearch && often === "for ever"
        ? 2
        : 1,
      ...waits === undefined ? {} : { waits }
    }))
  )
  return [
    // A nonce that is always refused only causes a time-out, and newNonce has no body that could be cut off.
    ...at === "newNonce"
      ? passed.filter(({ fault }) => fault.damage !== "cut" && fault.name !== "badNonce")
      : passed,
    { at, fault: hour, often: 1, rules: rules(hour, 1), ends: "rateLimited", most: 1, orders: 1 },
    ...at === "newNonce" ? [] : [forbidden, unauthorized].map((fault): Play => ({
      at,
      fault,
      often: 1,
      rules: rules(fault, 1),
      ends: isSearch ? "valid" : fault === forbidden ? "caa" : "serverInternal",
      most: 1,
      orders: isSearch ? 2 : 1
    }))
  ]
}

/** Returns the plays for a revocation. */
const revocationPlays = (often: ReadonlyArray<Often>): ReadonlyArray<Play> => [
  // The answer to a revocation has no body that could be cut off.
  ...passing.filter(({ fault }) => !hangs(fault) && fault.damage !== "cut").flatMap(({ fault, waits }) =>
    often.map((often): Play => ({
      at: "revokeCert",
      fault,
      often,
      rules: [{ at: "revokeCert", fault, times: times(often) }],
      ends: often === "for ever" ? "serverInternal" : "revoked",
      orders: 1,
      ...waits === undefined ? {} : { waits }
    }))
  ),
  ...["badRevocationReason", "unauthorized", "malformed", "alreadyRevoked"].map((type): Play => {
    const fault = problem(type, 400, type)
    return {
      at: "revokeCert",
      fault,
      often: 1,
      rules: [{ at: "revokeCert", fault, times: 1 }],
      ends: type === "alreadyRevoked" ? "revoked" : type === "badRevocationReason" ? type : "serverInternal",
      most: 1,
      orders: 1
    }
  })
]

/** The faults of the short run. */
const some: ReadonlySet<string> = new Set([
  "429, wait 2 s",
  "429, wait 1 h",
  "500, a page",
  "answer lost",
  "answer cut",
  "caa"
])
const few: ReadonlySet<string> = new Set(["429, wait 1 h", "500, a page", "answer lost"])

/** Returns every play at an upstream, or only the plays of the gate, which end within a minute. */
export const playsOf = (
  isFull: boolean,
  { isReference, lists }: Pick<Upstream, "isReference" | "lists">
): ReadonlyArray<Play> => {
  const often: ReadonlyArray<Often> = isFull ? [1, 2, "for ever"] : [1]
  const all = [
    ...ofOrders.flatMap((at) => orderPlays(at, often, lists)),
    ...lists === "whole" ? ofSearch.flatMap((at) => orderPlays(at, isFull ? [1, "for ever"] : [1], lists)) : [],
    ...orderPlays("newNonce", often, lists),
    ...revocationPlays(often)
  ]
  if (isFull) return all
  const chosen = isReference ? some : few
  return all.filter(({ at, fault, orders }) =>
    at === "revokeCert"
      ? ["500, a page", "badRevocationReason"].includes(fault.name)
      : at === "newNonce"
      ? fault.name === "503, wait 2 s"
      // If no list can be read, the relay looks for a lost order for half a minute.
      : chosen.has(fault.name) && (lists !== "none" || orders === 1)
  )
}
