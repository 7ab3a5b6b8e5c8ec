import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { mostAlternates } from "../../../domain/AlternateChain.ts"
import type { Conversation, Upstream } from "./Conversation.ts"
import { converse } from "./Conversation.ts"
import * as LostOrder from "./LostOrder.ts"
import type { Members, UpstreamAnswer } from "./UpstreamAnswer.ts"
import { plain, problemIn } from "./UpstreamAnswer.ts"
import { authorize, clearAt } from "./UpstreamAuthorization.ts"
import type { Directory } from "./UpstreamDirectory.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import type { WantedValidity } from "./UpstreamObjects.ts"
import {
  broken,
  datesOf,
  hasNames,
  identifiersOf,
  isOfUpstream,
  listIn,
  objectOf,
  textIn,
  untrusted
} from "./UpstreamObjects.ts"
import type { Keeper, RelayedCertificate, StoredUpstreamOrder } from "./UpstreamRecord.ts"

/*
 * Processes one order at the upstream, from any state to its certificate. If an order is already stored, it is
 * continued, and no other order is opened.
 */

/** The order to fulfil. */
export interface Wanted {
  /** The names in the form of the order: a wildcard begins with `*.`. */
  readonly names: ReadonlyArray<string>
  readonly validity: WantedValidity
  /** The latest `notAfter` that the credential of the account permits. Absent if the client requested a `notAfter`. */
  readonly latest?: number | undefined
  /** The certificate profile to request from the upstream. Empty if the upstream chooses. */
  readonly upstreamProfile: string
  readonly replaced?: RelayedCertificate | undefined
  readonly csr: Uint8Array
  readonly stored: StoredUpstreamOrder
  /** Whether there were attempts before this one. They may have left proofs behind. */
  readonly wasBegun: boolean
  /** When the order is given up, in milliseconds since the start of the process. */
  readonly deadline: number
}

const otherNames = untrusted("the upstream's order has other names")

/** How many names are proved at the same time. A hundred names, proved one after the other, would take too long. */
const atOnce = 10

/** How many requests for an order may stay unanswered at an upstream without a list of orders. */
const mostAsks = 2

/** Returns whether a request that failed in this way certainly opened no order. */
const opensNone = (error: unknown): boolean =>
  error instanceof UpstreamRefused ||
  (error instanceof UpstreamUnavailable &&
    (error.unsent === true || error.type !== undefined || error.status === 429 || error.status === 503))

const unanswered = new UpstreamUnavailable({
  detail:
    `the upstream was asked ${mostAsks} times for this order and its answers were lost on the way; it lists no orders, ` +
    "so that another request could open one order too many: see upstream_request_failed in the log, and check what " +
    "lies between this service and the upstream",
  status: undefined
})

/**
 * Returns the `replaces` member of newOrder. Returns no member if another upstream issued the certificate, or if this
 * upstream offers no renewal information.
 */
const replacesOf = (
  { newOrder, renewalInfo }: Directory,
  replaced: RelayedCertificate | undefined
): { replaces?: string } =>
  replaced !== undefined && renewalInfo !== undefined && isOfUpstream(replaced.orderUrl, newOrder)
    ? { replaces: replaced.certId }
    : {}

/** Returns whether the detail of a refusal concerns dates. */
export const isAboutDates = (detail: string): boolean => /not[\s_-]?(?:before|after)|validity/i.test(detail)

/**
 * Requests an order with `latest` as its `notAfter`. Some upstreams accept no dates. Such an upstream gets the order
 * without the date, because its certificates may have a permitted lifetime even so. The lifetime of the certificate is
 * checked later.
 */
const askFor = <E>(
  talk: Conversation,
  { latest, replaced }: Pick<Wanted, "latest" | "replaced">,
  keeper: Keeper<E>
) =>
  latest === undefined
    ? askWith(talk, talk.validity, replaced, keeper)
    : Effect.catchIf(
      askWith(talk, { ...talk.validity, notAfter: latest }, replaced, keeper),
      (error) => error instanceof UpstreamRefused && isAboutDates(error.detail),
      () => askWith(talk, talk.validity, replaced, keeper)
    )

/**
 * Requests an order. If the upstream refuses the order because of `replaces`, requests it again without this member,
 * because the renewal itself matters more.
 */
const askWith = <E>(
  { ask, client, names, upstreamProfile }: Conversation,
  validity: WantedValidity,
  replaced: RelayedCertificate | undefined,
  keeper: Keeper<E>
) =>
  Effect.gen(function*() {
    const directory = yield* client.directory
    const profile = upstreamProfile === "" ? {} : { profile: upstreamProfile }
    const plain = { identifiers: identifiersOf(names), ...datesOf(validity), ...profile }
    const replaces = replacesOf(directory, replaced)
    const asked = ask("newOrder", directory.newOrder, { ...plain, ...replaces })
    if (replaces.replaces === undefined) return yield* asked
    return yield* Effect.catchTag(
      asked,
      "UpstreamRefused",
      ({ detail }) => Effect.tap(ask("newOrder", directory.newOrder, plain), keeper.notReplaced(detail))
    )
  })

const open = <E>(
  talk: Conversation,
  { latest, replaced, stored }: Pick<Wanted, "latest" | "replaced" | "stored">,
  keeper: Keeper<E>
): Effect.Effect<{ readonly url: string; readonly shown: Members | undefined }, UpstreamFailed | E> =>
  Effect.gen(function*() {
    const { client, names } = talk
    const keep = Effect.fnUntraced(function*(
      url: string,
      members: Members | undefined,
      ifTaken: Effect.Effect<void, E> = Effect.void
    ) {
      const finalize = members && (yield* client.checked(members["finalize"], "a finalize"))
      if (yield* keeper.opened(url, finalize)) return { url, shown: members }
      yield* ifTaken
      return yield* broken("an order that another one here has already")
    })
    const known = yield* LostOrder.find(talk, stored, keeper)
    if (typeof known !== "number") return yield* keep(known.url, known.members)
    // An upstream with step-ca is run by the organisation itself. step-ca does not limit orders, and ends unfinished
    // orders by itself. So another request does no harm.
    if (known >= mostAsks && !LostOrder.isStepCa(talk.kid)) return yield* unanswered
    yield* client.directory
    yield* keeper.asked(known + 1)
    const answer = yield* Effect.tapError(
      askFor(talk, { latest, replaced }, keeper),
      (error) => opensNone(error) ? keeper.asked(known) : Effect.void
    )
    // The URL is stored even if the body was cut off, because the body can be read again from this URL.
    const { json: members, location } = answer
    if (location === undefined) return yield* broken("an order without a location")
    if (members !== undefined && !hasNames(members, names)) return yield* otherNames
    // If another local order already has this upstream order, the request opened no new order. So it does not count as
    // unanswered.
    return yield* keep(location, members, keeper.asked(known))
  })

const authorizationsIn = (members: Members, { names }: Conversation) =>
  listIn(members, "authorizations").slice(0, 2 * names.length)

const download = <E>({ ask, client }: Conversation, members: Members, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    const certificate = yield* client.checked(members["certificate"], "a certificate")
    yield* keeper.issued(certificate)
    const read = ask("certificate", certificate)
    const { alternates, text: chain } = yield* read
    const others: Array<string> = []
    // The usual chain is enough, so an alternate chain that cannot be read is left out. If the upstream does not answer,
    // the order does not wait for further chains.
    for (const url of alternates.slice(0, mostAlternates)) {
      const asked = Effect.flatMap(client.checked(url, "a chain"), (checked) => ask("certificate", checked))
      const other = yield* Effect.result(asked)
      if (Result.isSuccess(other)) others.push(other.success.text)
      else if (other.failure._tag === "UpstreamUnavailable") break
    }
    return { chain, alternates: others, again: Effect.map(read, ({ text }) => text) }
  })

/** A certificate that an upstream issued, as PEM, and how to download it again. */
export interface Downloaded {
  readonly chain: string
  /** Other chains for the same certificate, as PEM, not yet checked. */
  readonly alternates: ReadonlyArray<string>
  readonly again: Effect.Effect<string, UpstreamFailed>
}

/** Returns the certificate of an order that the upstream has finished, or `undefined` if the order is not finished. */
export const finished = <E>(
  upstream: Upstream,
  { stored: { orderUrl }, ...about }: Wanted,
  keeper: Keeper<E>
): Effect.Effect<Downloaded | undefined, UpstreamFailed | E> =>
  Effect.gen(function*() {
    if (orderUrl === undefined) return undefined
    const talk = converse(upstream, about)
    const members = yield* objectOf(yield* talk.ask("order", orderUrl), "an order")
    return textIn(members, "status") === "valid" ? yield* download(talk, members, keeper) : undefined
  })

/**
 * Returns whether the answer to finalize shows the final state of the order. If the answer says `processing`, the order
 * must be read again.
 */
const isShown = ({ json = {} }: Pick<UpstreamAnswer, "json">): boolean =>
  textIn(json, "status") === "invalid" || (textIn(json, "status") === "valid" && textIn(json, "certificate") !== "")

/**
 * Returns the certificate of an order that is not continued here, as PEM. Returns `undefined` if the upstream issued no
 * certificate and never will. Fails while the upstream is still processing the order.
 */
export const leftOver = (
  { client, kid }: Pick<Upstream, "client" | "kid">,
  orderUrl: string
): Effect.Effect<string | undefined, UpstreamFailed> =>
  Effect.gen(function*() {
    const read = (operation: "order" | "certificate", url: string) => client.post(operation, url, "", { kid })
    const url = yield* client.checked(orderUrl, "an order")
    const members = yield* objectOf(yield* read("order", url), "an order")
    const status = textIn(members, "status")
    if (status === "processing") {
      return yield* new UpstreamUnavailable({ detail: "its order is still processing", status: undefined })
    }
    if (status !== "valid") return undefined
    return (yield* read("certificate", yield* client.checked(members["certificate"], "a certificate"))).text
  })

/** Fulfils an order, and returns its certificate. */
export const fulfil = <E>(
  upstream: Upstream,
  { csr, latest, replaced, stored, ...about }: Wanted,
  keeper: Keeper<E>
): Effect.Effect<Downloaded, UpstreamFailed | E> =>
  Effect.gen(function*() {
    const talk = converse(upstream, about)
    const { ask, client, wasBegun } = talk
    const { shown, url } = stored.orderUrl === undefined
      ? yield* open(talk, { latest, replaced, stored }, keeper)
      : { url: stored.orderUrl, shown: undefined }
    // The answers to newOrder and finalize contain the order, so the order need not be read after them.
    let next: Pick<UpstreamAnswer, "json" | "retryAfter"> = { json: shown, retryAfter: undefined }
    let isRead = shown !== undefined || stored.finalizeUrl !== undefined
    let [isAuthorized, isFinalized, isNotReady, mayBeUnclear] = [false, false, false, wasBegun]
    for (;;) {
      const answer = next.json === undefined ? yield* ask("order", url) : next
      next = { json: undefined, retryAfter: undefined }
      const members = yield* objectOf(answer, "an order")
      const status = textIn(members, "status")
      if (!isRead && !hasNames(members, talk.names)) return yield* otherNames
      isRead = true
      if (mayBeUnclear && status !== "pending") {
        yield* Effect.forEach(authorizationsIn(members, talk), (one) => clearAt(talk, one), { concurrency: atOnce })
      }
      mayBeUnclear = false
      if (status === "pending" && !isAuthorized) {
        yield* Effect.forEach(authorizationsIn(members, talk), (one) => authorize(talk, one), { concurrency: atOnce })
        isAuthorized = true
        continue
      } else if (status === "ready" && !isFinalized) {
        if (isNotReady) yield* talk.pause("its order is ready, and is not finalized", answer)
        const finalize = yield* client.checked(members["finalize"], "a finalize")
        // The upstream may refuse because an earlier attempt has already finalized the order, or because the order is
        // not ready yet. The order itself shows which of the two is the case.
        const finalized = yield* Effect.catchIf(
          ask("finalize", finalize, { csr: Buffer.from(csr).toString("base64url") }),
          (error) => error instanceof UpstreamRefused && error.type === "orderNotReady",
          () => Effect.succeed(undefined)
        )
        isFinalized = finalized !== undefined
        isNotReady = !isFinalized
        if (finalized !== undefined) {
          if (isShown(finalized)) next = finalized
          else if ((finalized.retryAfter ?? 0) > 0) yield* talk.pause("its order is finalized", finalized)
        }
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

/** Removes what attempts may have left behind for an order that is not continued. Ignores failures. */
export const clear = (upstream: Upstream, names: ReadonlyArray<string>, orderUrl: string): Effect.Effect<void> => {
  if (upstream.strategy.clear === undefined) return Effect.void
  const validity = { notBefore: undefined, notAfter: undefined }
  const talk = converse(upstream, { names, validity, upstreamProfile: "", wasBegun: true, deadline: 0 })
  return talk.ask("order", orderUrl).pipe(
    Effect.flatMap(({ json = {} }) =>
      Effect.forEach(authorizationsIn(json, talk), (one) => clearAt(talk, one), { concurrency: atOnce, discard: true })
    ),
    Effect.ignore
  )
}
