import { Clock, Effect } from "effect"
import type { UpstreamAnswer } from "./AcmeClient.ts"
import { plain, problemIn } from "./AcmeClient.ts"
import type { Conversation, Upstream } from "./Conversation.ts"
import { converse } from "./Conversation.ts"
import { authorize, clearAt } from "./UpstreamAuthorization.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { broken, hasNames, identifiersOf, listIn, listOf, objectOf, textIn, untrusted } from "./UpstreamObjects.ts"
import type { Members } from "./UpstreamObjects.ts"

/* One order at the upstream, from wherever it stands to its certificate: what is stored is continued, never begun again. */

/** Where the upstream's order is, as far as is known. */
export interface StoredUpstreamOrder {
  readonly orderUrl: string | undefined
  readonly finalizeUrl: string | undefined
  readonly certificateUrl: string | undefined
  /** How many times it was asked to open one without an answer that says where that is. */
  readonly asks: number
  /** Epoch seconds of the last of these. */
  readonly askedAt: number | undefined
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
  /** Kept before the upstream is asked to open an order, lest an answer that is lost be forgotten: see {@link StoredUpstreamOrder}. */
  readonly asked: (asks: number) => Effect.Effect<void, E>
  /** Answers whether the upstream's order is this one's: an upstream may give the same to two that are alike. */
  readonly opened: (orderUrl: string, finalizeUrl: string | undefined) => Effect.Effect<boolean, E>
  readonly issued: (certificateUrl: string) => Effect.Effect<void, E>
  /** Of upstream orders, the ones no order here has for its own. */
  readonly unclaimed: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, E>
}

const otherNames = untrusted("the upstream's order has other names")

/** Names are proved so many at a time: a hundred of them one after the other would take longer than anybody waits. */
const atOnce = 10

/** In the search for a lost order, the lists and orders that are read. */
const mostReads = 300

/** How long after it was asked an upstream may still be about to open an order: until then a list without it proves nothing. */
const settlingMillis = 10_000

/** Where an upstream lists no orders, how many may be asked for while none has answered. */
const mostAsks = 2

/** An order nobody here has for its own, as far as it was read: `undefined` when the upstream refuses to tell of it. */
const readOrder = ({ ask, client }: Conversation, url: string) =>
  Effect.flatMap(client.checked(url, "an order"), (checked) => ask(checked)).pipe(
    Effect.flatMap((answer) => objectOf(answer, "an order")),
    Effect.catchTag("UpstreamRefused", () => Effect.succeed(undefined))
  )

/** What is only opened and for just these names may be continued: had anybody finalized it, its URL would be known. */
const isOpenFor = (members: Members | undefined, names: ReadonlyArray<string>): members is Members =>
  members !== undefined && ["pending", "ready"].includes(textIn(members, "status")) && hasNames(members, names)

/** Whether an upstream does not tell at all what it was asked for, as opposed to not telling now. */
const isUntold = (error: unknown): boolean =>
  error instanceof UpstreamRefused
    ? error.type !== "accountDoesNotExist"
    : error instanceof UpstreamUnavailable && (error.status === 404 || error.status === 405)

/**
 * Looks in the account's list for an order that an attempt before opened and whose URL never came. `none` only when the whole
 * list was read; `unlisted` where there is none, or one too long to be read.
 */
const search = <E>(talk: Conversation, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    const { ask, client, kid, names } = talk
    let page: unknown = (yield* objectOf(yield* ask(kid), "an account"))["orders"]
    if (page === undefined) return "unlisted"
    let reads = 0
    while (page !== undefined) {
      if (++reads > mostReads) return "unlisted"
      const listed: UpstreamAnswer = yield* ask(yield* client.checked(page, "a list of orders"))
      const urls = yield* listOf(yield* objectOf(listed, "a list of orders"), "orders")
      for (const url of yield* keeper.unclaimed(urls.filter((url): url is string => typeof url === "string"))) {
        if (++reads > mostReads) return "unlisted"
        const members = yield* readOrder(talk, url)
        if (isOpenFor(members, names)) return { url, members }
      }
      page = listed.next
    }
    return "none"
  }).pipe(Effect.catchIf(isUntold, () => Effect.succeed("unlisted" as const)))

/** Whether an order was surely not opened by a request that failed so. */
const opensNone = (error: unknown): boolean =>
  error instanceof UpstreamRefused ||
  (error instanceof UpstreamUnavailable && (error.unsent === true || error.status === 429 || error.status === 503))

const unanswered = new UpstreamUnavailable({
  detail:
    `the upstream was asked ${mostAsks} times for this order and its answers were lost on the way; it lists no orders, ` +
    "so that another would be one too many: see upstream_request_failed in the log, and what lies between here and it",
  status: undefined
})

/** What is found of an order that may have been opened, else how many may be there that nobody can find. */
const found = <E>(talk: Conversation, { askedAt = 0, asks }: StoredUpstreamOrder, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    if (!talk.wasBegun) return asks
    // Of a clock that was wrong meanwhile as much is waited as of a right one.
    const settled = Math.min((askedAt + 1) * 1000, yield* Clock.currentTimeMillis) + settlingMillis
    for (;;) {
      const begun = yield* Clock.currentTimeMillis
      const searched = yield* search(talk, keeper)
      if (searched === "unlisted") return asks
      if (searched !== "none") return searched
      if (asks === 0 || begun >= settled) return 0
      yield* talk.pause("it may be about to open the order it was asked for")
    }
  })

const open = <E>(
  talk: Conversation,
  stored: StoredUpstreamOrder,
  keeper: Keeper<E>
): Effect.Effect<{ readonly url: string; readonly isRead: boolean }, UpstreamFailed | E> =>
  Effect.gen(function*() {
    const { ask, client, names } = talk
    const keep = Effect.fnUntraced(function*(url: string, members: Members | undefined) {
      const finalize = members && (yield* client.checked(members["finalize"], "a finalize"))
      if (yield* keeper.opened(url, finalize)) return { url, isRead: members !== undefined }
      return yield* broken("an order that another one here has already")
    })
    const known = yield* found(talk, stored, keeper)
    if (typeof known !== "number") return yield* keep(known.url, known.members)
    if (known >= mostAsks) return yield* unanswered
    const { newOrder } = yield* client.directory
    yield* keeper.asked(known + 1)
    const answer = yield* Effect.tapError(
      ask(newOrder, { identifiers: identifiersOf(names) }),
      (error) => opensNone(error) ? keeper.asked(known) : Effect.void
    )
    // Where it is, is worth keeping even when what it says was cut off: that can be read again.
    const { json: members, location } = answer
    if (location === undefined) return yield* broken("an order without a location")
    if (members !== undefined && !hasNames(members, names)) return yield* otherNames
    return yield* keep(location, members)
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
    const { isRead, url } = stored.orderUrl === undefined
      ? yield* open(talk, stored, keeper)
      : { url: stored.orderUrl, isRead: stored.finalizeUrl !== undefined }
    let [isAuthorized, isFinalized, mayBeUnclear] = [false, false, wasBegun]
    for (;;) {
      const answer = yield* ask(url)
      const members = yield* objectOf(answer, "an order")
      const status = textIn(members, "status")
      if (!isRead && !hasNames(members, talk.names)) return yield* otherNames
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
      yield* talk.pause(`its order is ${status}`, answer)
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
