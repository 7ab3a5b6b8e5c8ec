import { Effect } from "effect"
import { plain, problemIn } from "./AcmeClient.ts"
import type { Conversation, Upstream } from "./Conversation.ts"
import { converse } from "./Conversation.ts"
import { authorize, clearAt } from "./UpstreamAuthorization.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused } from "./UpstreamFailed.ts"
import { broken, hasNames, identifiersOf, listIn, objectOf, textIn, untrusted } from "./UpstreamObjects.ts"
import type { Members } from "./UpstreamObjects.ts"

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
  /** Answers whether the upstream's order is this one's: an upstream may give the same to two that are alike. */
  readonly opened: (orderUrl: string, finalizeUrl: string) => Effect.Effect<boolean, E>
  readonly issued: (certificateUrl: string) => Effect.Effect<void, E>
  /** Of upstream orders, the ones no order here has for its own. */
  readonly unclaimed: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, E>
}

/** Names are proved so many at a time: a hundred of them one after the other would take longer than anybody waits. */
const atOnce = 10

/** Of an account's orders, the pages that are looked at in the search for a lost one. */
const mostPages = 20

/** An order with these names that an attempt before opened and did not live to write down. */
const lost = <E>({ ask, client, kid, names }: Conversation, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    let page: unknown = (yield* ask(kid)).json?.["orders"]
    for (let pages = 0; typeof page === "string" && pages < mostPages; pages++) {
      const listed = yield* ask(yield* client.checked(page, "a list of orders"))
      const urls = listIn(listed.json ?? {}, "orders").filter((url): url is string => typeof url === "string")
      for (const url of yield* keeper.unclaimed(urls)) {
        const members = (yield* ask(yield* client.checked(url, "an order"))).json ?? {}
        if (textIn(members, "status") !== "invalid" && hasNames(members, names)) return { url, members }
      }
      page = listed.next
    }
    return undefined
  })

const open = <E>(talk: Conversation, keeper: Keeper<E>): Effect.Effect<string, UpstreamFailed | E> =>
  Effect.gen(function*() {
    const { ask, client, names, wasBegun } = talk
    const keep = (url: string, members: Members) =>
      client.checked(members["finalize"], "a finalize").pipe(
        Effect.flatMap((finalize) => keeper.opened(url, finalize)),
        Effect.filterOrFail((isOurs) => isOurs, () => broken("an order that another one here has already")),
        Effect.as(url)
      )
    // An upstream need not list orders; one that does not answer now is asked again before another order is opened.
    const found = wasBegun
      ? yield* Effect.catchIf(lost(talk, keeper), (error) => error instanceof UpstreamRefused, () => Effect.void)
      : undefined
    if (found !== undefined) return yield* keep(found.url, found.members)
    const { newOrder } = yield* client.directory
    const answer = yield* ask(newOrder, { identifiers: identifiersOf(names) })
    const members = yield* objectOf(answer, "an order")
    if (answer.location === undefined) return yield* broken("an order without a location")
    if (!hasNames(members, names)) return yield* untrusted("the upstream's order has other names")
    return yield* keep(answer.location, members)
  })

const authorizationsIn = (members: Members, { names }: Conversation) =>
  listIn(members, "authorizations").slice(0, 2 * names.length)

const download = <E>({ ask, client }: Conversation, members: Members, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    const certificate = yield* client.checked(members["certificate"], "a certificate")
    yield* keeper.issued(certificate)
    return (yield* ask(certificate)).text
  })

/** The certificate of an order that the upstream has finished, PEM; `undefined` when it has not. */
export const finished = <E>(
  upstream: Upstream,
  { stored: { orderUrl }, ...about }: Wanted,
  keeper: Keeper<E>
): Effect.Effect<string | undefined, UpstreamFailed | E> =>
  Effect.gen(function*() {
    if (orderUrl === undefined) return undefined
    const talk = converse(upstream, about)
    const members = yield* objectOf(yield* talk.ask(orderUrl), "an order")
    return textIn(members, "status") === "valid" ? yield* download(talk, members, keeper) : undefined
  })

/** Takes an order to its certificate, PEM. */
export const fulfil = <E>(
  upstream: Upstream,
  { csr, stored, ...about }: Wanted,
  keeper: Keeper<E>
): Effect.Effect<string, UpstreamFailed | E> =>
  Effect.gen(function*() {
    const talk = converse(upstream, about)
    const { ask, client, wasBegun } = talk
    const url = stored.orderUrl ?? (yield* open(talk, keeper))
    let [isAuthorized, isFinalized, mayBeUnclear] = [false, false, wasBegun]
    for (;;) {
      const answer = yield* ask(url)
      const members = yield* objectOf(answer, "an order")
      const status = textIn(members, "status")
      if (mayBeUnclear && status !== "pending") {
        yield* Effect.forEach(authorizationsIn(members, talk), (one) => clearAt(talk, one), { concurrency: atOnce })
      }
      mayBeUnclear = false
      if (status === "pending" && !isAuthorized) {
        yield* Effect.forEach(authorizationsIn(members, talk), (one) => authorize(talk, one), { concurrency: atOnce })
        isAuthorized = true
        continue
      } else if (status === "ready" && !isFinalized) {
        const finalize = yield* client.checked(members["finalize"], "a finalize")
        // What an attempt that was cut off had sent may have arrived since: how far the order is, it says itself.
        yield* Effect.catchIf(
          ask(finalize, { csr: Buffer.from(csr).toString("base64url") }),
          (error) => error instanceof UpstreamRefused && error.type === "orderNotReady",
          () => Effect.void
        )
        isFinalized = true
        continue
      } else if (status === "valid") {
        return yield* download(talk, members, keeper)
      } else if (status === "invalid") {
        return yield* new UpstreamRefused({ ...problemIn(members["error"], undefined), status: undefined })
      } else if (status !== "processing" && status !== "ready" && status !== "pending") {
        return yield* broken(`an order that is ${plain(status).slice(0, 40)}`)
      }
      yield* talk.pause(answer)
    }
  })

/** Takes away what attempts may have left in place for an order that is not gone on with; what cannot be had is left. */
export const clear = (upstream: Upstream, names: ReadonlyArray<string>, orderUrl: string): Effect.Effect<void> => {
  if (upstream.strategy.clear === undefined) return Effect.void
  const talk = converse(upstream, { names, wasBegun: true, deadline: 0 })
  return talk.ask(orderUrl).pipe(
    Effect.flatMap(({ json = {} }) =>
      Effect.forEach(authorizationsIn(json, talk), (one) => clearAt(talk, one), { concurrency: atOnce, discard: true })
    ),
    Effect.ignore
  )
}
