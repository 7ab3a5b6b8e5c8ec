import * as Effect from "effect/Effect"
import { currentMillis, lifeMillis } from "../../../kernel/Time.ts"
import type { UpstreamAnswer } from "./AcmeClient.ts"
import { plain, problemIn } from "./AcmeClient.ts"
import type { Conversation, Upstream } from "./Conversation.ts"
import { converse } from "./Conversation.ts"
import { authorize, clearAt } from "./UpstreamAuthorization.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { broken, hasNames, identifiersOf, listIn, listOf, objectOf, textIn, untrusted } from "./UpstreamObjects.ts"
import type { Members } from "./UpstreamObjects.ts"

/* Takes one order at the upstream from any state to its certificate: a stored order is continued, never begun again. */

/** What is known about the upstream's order. */
export interface StoredUpstreamOrder {
  readonly orderUrl: string | undefined
  readonly finalizeUrl: string | undefined
  readonly certificateUrl: string | undefined
  /** How many times the upstream was asked to open the order and did not answer with its URL. */
  readonly asks: number
  /** Epoch seconds of the last such request. */
  readonly askedAt: number | undefined
}

/** The order to fulfil. */
export interface Wanted {
  /** In the order's form: wildcards with their `*.`. */
  readonly names: ReadonlyArray<string>
  readonly csr: Uint8Array
  readonly stored: StoredUpstreamOrder
  /** Whether an attempt before this one may have opened an order whose URL was never written down. */
  readonly wasBegun: boolean
  /** Epoch milliseconds at which the order is given up. */
  readonly deadline: number
}

/** Stores what outlives an attempt. */
export interface Keeper<E> {
  /** Called before the upstream is asked for an order, so that a lost answer is not forgotten: {@link StoredUpstreamOrder}. */
  readonly asked: (asks: number) => Effect.Effect<void, E>
  /** Answers whether the upstream's order belongs to this order: an upstream may give one to two equal requests. */
  readonly opened: (orderUrl: string, finalizeUrl: string | undefined) => Effect.Effect<boolean, E>
  readonly issued: (certificateUrl: string) => Effect.Effect<void, E>
  /** Which of these upstream orders belong to no order here. */
  readonly unclaimed: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, E>
}

const otherNames = untrusted("the upstream's order has other names")

/** How many names are proved at a time: a hundred names one after the other would take longer than anybody waits. */
const atOnce = 10

/** How many lists and orders are read in the search for a lost order. */
const mostReads = 300

/** How long after a request an upstream may still open the order: until then a list without the order proves nothing. */
const settlingMillis = 10_000

/** How many requests for an order may remain unanswered at an upstream that lists no orders. */
const mostAsks = 2

/** Reads an upstream order that belongs to no order here; `undefined` when the upstream refuses to show it. */
const readOrder = ({ ask, client }: Conversation, url: string) =>
  Effect.flatMap(client.checked(url, "an order"), (checked) => ask(checked)).pipe(
    Effect.flatMap((answer) => objectOf(answer, "an order")),
    Effect.catchTag("UpstreamRefused", () => Effect.succeed(undefined))
  )

/** An order that is only opened, and for exactly these names, may be continued: if finalized, its URL would be known. */
const isOpenFor = (members: Members | undefined, names: ReadonlyArray<string>): members is Members =>
  members !== undefined && ["pending", "ready"].includes(textIn(members, "status")) && hasNames(members, names)

/** Whether an upstream never answers the question, as opposed to not answering it now. */
const isUntold = (error: unknown): boolean =>
  error instanceof UpstreamRefused
    ? error.type !== "accountDoesNotExist"
    : error instanceof UpstreamUnavailable && (error.status === 404 || error.status === 405)

/**
 * Looks in the account's list for an order that an earlier attempt opened and whose URL never arrived. `none` means that the
 * whole list was read. `unlisted` means that there is no list, or that it is too long to be read.
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

/** Whether a request with this failure certainly opened no order. */
const opensNone = (error: unknown): boolean =>
  error instanceof UpstreamRefused ||
  (error instanceof UpstreamUnavailable && (error.unsent === true || error.status === 429 || error.status === 503))

const unanswered = new UpstreamUnavailable({
  detail:
    `the upstream was asked ${mostAsks} times for this order and its answers were lost on the way; it lists no orders, ` +
    "so that another request could open one order too many: see upstream_request_failed in the log, and check what " +
    "lies between this service and the upstream",
  status: undefined
})

/** The order that may have been opened, if it is found; otherwise how many orders may exist that cannot be found. */
const found = <E>(talk: Conversation, { askedAt = 0, asks }: StoredUpstreamOrder, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    if (!talk.wasBegun) return asks
    // If the clock was wrong in the meantime, the wait is as long as with a right clock.
    const settled = (yield* lifeMillis) + Math.min((askedAt + 1) * 1000 - (yield* currentMillis), 0) + settlingMillis
    for (;;) {
      const begun = yield* lifeMillis
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
    const keep = Effect.fnUntraced(function*(
      url: string,
      members: Members | undefined,
      ifTaken: Effect.Effect<void, E> = Effect.void
    ) {
      const finalize = members && (yield* client.checked(members["finalize"], "a finalize"))
      if (yield* keeper.opened(url, finalize)) return { url, isRead: members !== undefined }
      yield* ifTaken
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
    // The URL is worth storing even when the body was cut off: the body can be read again.
    const { json: members, location } = answer
    if (location === undefined) return yield* broken("an order without a location")
    if (members !== undefined && !hasNames(members, names)) return yield* otherNames
    // If another one here has the order, this request opened none, and its answer was not lost.
    return yield* keep(location, members, keeper.asked(known))
  })

const authorizationsIn = (members: Members, { names }: Conversation) =>
  listIn(members, "authorizations").slice(0, 2 * names.length)

const download = <E>({ ask, client }: Conversation, members: Members, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    const certificate = yield* client.checked(members["certificate"], "a certificate")
    yield* keeper.issued(certificate)
    return (yield* ask(certificate)).text
  })

/** The certificate of an order that the upstream has finished, PEM; `undefined` when the upstream has not finished it. */
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

/** Fulfils an order; answers its certificate, PEM. */
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
        // The request of an interrupted attempt may have arrived since. The order itself says its state.
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

/** Removes what attempts may have left in place for an order that is not continued; failures are ignored. */
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
