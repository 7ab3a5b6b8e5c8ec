import { Clock, Effect } from "effect"
import type { AcmeClient, UpstreamAnswer } from "./AcmeClient.ts"
import { plain, problemIn } from "./AcmeClient.ts"
import type { Strategy, UpstreamChallenge } from "./Strategy.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"

/* One order at the upstream, from wherever it stands to its certificate: what is stored is continued, never begun again. */

/** Where the upstream's order is, as far as is known. */
export interface StoredUpstreamOrder {
  readonly orderUrl: string | undefined
  readonly finalizeUrl: string | undefined
  readonly certificateUrl: string | undefined
}

/** What is to be had. */
export interface Wanted {
  /** In the order's form: wildcards with their `*.`. */
  readonly names: ReadonlyArray<string>
  readonly csr: Uint8Array
  readonly stored: StoredUpstreamOrder
  /** Whether an attempt before this one may have opened an order whose URL was never written down. */
  readonly wasBegun: boolean
  /** Epoch milliseconds at which it is given up. */
  readonly deadline: number
}

/** What outlives an attempt. */
export interface Keeper<E> {
  readonly opened: (orderUrl: string, finalizeUrl: string) => Effect.Effect<void, E>
  readonly issued: (certificateUrl: string) => Effect.Effect<void, E>
  /** Of upstream orders, the one no order here has for its own. */
  readonly unclaimed: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, E>
}

/** Milliseconds between looks: the configured ones at least, and what the upstream asks for within bounds. */
const longestPause = 30_000

type Members = { readonly [member: string]: unknown }

const broken = (what: string) =>
  new UpstreamUnavailable({ detail: `the upstream answers with ${what}`, status: undefined })

const objectOf = ({ json }: UpstreamAnswer, what: string): Effect.Effect<Members, UpstreamUnavailable> =>
  json === undefined ? broken(`${what} that is no JSON object`) : Effect.succeed(json)

const textIn = (members: Members, name: string): string => {
  const value = members[name]
  return typeof value === "string" ? value : ""
}

const challengesIn = (members: Members): ReadonlyArray<UpstreamChallenge & { readonly error: unknown }> =>
  Array.isArray(members["challenges"])
    ? (members["challenges"] as ReadonlyArray<unknown>).flatMap((one) => {
      if (typeof one !== "object" || one === null) return []
      const { error, status, token, type, url } = one as Members
      return [{
        type: typeof type === "string" ? type : "",
        url,
        token: typeof token === "string" && /^[\w-]{1,512}$/.test(token) ? token : undefined,
        status: typeof status === "string" ? status : "",
        error
      }]
    })
    : []

const identifiersOf = (names: ReadonlyArray<string>) => names.map((value) => ({ type: "dns", value }))

const sameNames = (members: Members, names: ReadonlyArray<string>): boolean => {
  const listed = Array.isArray(members["identifiers"]) ? members["identifiers"] as ReadonlyArray<unknown> : []
  const values = listed.map((one) => textIn((one ?? {}) as Members, "value").toLowerCase()).sort()
  return values.length === names.length && [...names].sort().every((name, index) => name === values[index])
}

/** Takes an order to its certificate, PEM. */
export const fulfil = <E>(
  { client, kid, pollMillis, strategy }: {
    readonly client: AcmeClient
    readonly kid: string
    readonly strategy: Strategy
    readonly pollMillis: number
  },
  { csr, deadline, names, stored, wasBegun }: Wanted,
  keeper: Keeper<E>
): Effect.Effect<string, UpstreamFailed | E> => {
  const ask = (url: string, payload: object | "" = "") => client.post(url, payload, { kid })

  const pause = ({ retryAfter }: UpstreamAnswer) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const wanted = Math.min(Math.max(pollMillis, (retryAfter ?? 0) * 1000), Math.max(pollMillis, longestPause))
      return now + wanted >= deadline
        ? Effect.sleep(Math.max(0, deadline - now))
        : Effect.sleep(wanted)
    })

  const isLate = Effect.map(Clock.currentTimeMillis, (now) => now >= deadline)
  const late = new UpstreamUnavailable({ detail: "the upstream was not done in time", status: undefined })

  /** An order with these names that an attempt before opened and did not live to write down. */
  const lost = Effect.gen(function*() {
    const account = yield* ask(kid, {})
    const list = account.json?.["orders"]
    if (typeof list !== "string") return undefined
    const listed = yield* ask(yield* client.checked(list, "a list of orders"))
    const urls = Array.isArray(listed.json?.["orders"])
      ? (listed.json["orders"] as ReadonlyArray<unknown>).filter((url) => typeof url === "string")
      : []
    const candidates = yield* keeper.unclaimed(urls.slice(0, 50) as ReadonlyArray<string>)
    for (const url of candidates) {
      const members = (yield* ask(yield* client.checked(url, "an order"))).json ?? {}
      if (textIn(members, "status") !== "invalid" && sameNames(members, names)) return { url, members }
    }
    return undefined
  })

  const open = Effect.gen(function*() {
    const found = wasBegun ? yield* Effect.orElseSucceed(lost, () => undefined) : undefined
    if (found !== undefined) {
      yield* keeper.opened(found.url, yield* client.checked(found.members["finalize"], "a finalize"))
      return found.url
    }
    const { newOrder } = yield* client.directory
    const answer = yield* ask(newOrder, { identifiers: identifiersOf(names) })
    const members = yield* objectOf(answer, "an order")
    if (answer.location === undefined) return yield* broken("an order without a location")
    if (!sameNames(members, names)) {
      return yield* new UpstreamRefused({
        detail: "the upstream's order has other names",
        status: undefined,
        type: "untrusted"
      })
    }
    yield* keeper.opened(answer.location, yield* client.checked(members["finalize"], "a finalize"))
    return answer.location
  })

  const authorize = (url: string): Effect.Effect<void, UpstreamFailed> =>
    Effect.scoped(Effect.gen(function*() {
      const first = yield* objectOf(yield* ask(url), "an authorization")
      if (textIn(first, "status") === "valid") return
      const name = textIn((first["identifier"] ?? {}) as Members, "value").toLowerCase()
      const isWildcard = first["wildcard"] === true
      if (!names.includes(isWildcard ? `*.${name}` : name)) {
        return yield* new UpstreamRefused({
          detail: "the upstream wants a name proved that nobody ordered",
          status: undefined,
          type: "untrusted"
        })
      }
      const offered = challengesIn(first)
      const chosen = yield* strategy.choose(name, isWildcard, offered)
      const challengeUrl = yield* client.checked(chosen.url, "a challenge")
      const { token = "" } = chosen
      const keyAuthorization = `${token}.${client.thumbprint}`
      yield* strategy.prepare({ name, isWildcard, token, keyAuthorization })
      if (chosen.status === "pending") yield* ask(challengeUrl, {})
      for (;;) {
        const answer = yield* ask(url)
        const members = yield* objectOf(answer, "an authorization")
        const status = textIn(members, "status")
        if (status === "valid") return
        if (status !== "pending") {
          const failed = challengesIn(members).find(({ error }) => error !== undefined)
          const { detail, type } = problemIn(failed?.error, undefined)
          return yield* new UpstreamRefused({
            detail: plain(`${name}: ${failed === undefined ? `the authorization is ${status}` : detail}`),
            status: undefined,
            type
          })
        }
        if (yield* isLate) return yield* late
        yield* pause(answer)
      }
    }))

  return Effect.gen(function*() {
    const url = stored.orderUrl ?? (yield* open)
    let [isAuthorized, isFinalized] = [false, false]
    for (;;) {
      const answer = yield* ask(url)
      const members = yield* objectOf(answer, "an order")
      const status = textIn(members, "status")
      if (status === "pending") {
        const urls = Array.isArray(members["authorizations"]) ? members["authorizations"] as ReadonlyArray<unknown> : []
        // One after the other: names that share a record would else take it from one another.
        for (const one of urls.slice(0, 2 * names.length)) {
          yield* authorize(yield* client.checked(one, "an authorization"))
        }
        if (!isAuthorized) {
          isAuthorized = true
          continue
        }
      } else if (status === "ready" && !isFinalized) {
        const finalize = yield* client.checked(members["finalize"], "a finalize")
        yield* ask(finalize, { csr: Buffer.from(csr).toString("base64url") })
        isFinalized = true
        continue
      } else if (status === "valid") {
        const certificate = yield* client.checked(members["certificate"], "a certificate")
        yield* keeper.issued(certificate)
        return (yield* ask(certificate)).text
      } else if (status === "invalid") {
        return yield* new UpstreamRefused({ ...problemIn(members["error"], undefined), status: undefined })
      } else if (status !== "processing" && status !== "ready") {
        return yield* broken(`an order that is ${plain(status).slice(0, 40)}`)
      }
      if (yield* isLate) return yield* late
      yield* pause(answer)
    }
  })
}
