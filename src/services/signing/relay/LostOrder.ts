import * as Effect from "effect/Effect"
import { currentMillis, lifeMillis } from "../../../engine/Time.ts"
import type { Conversation } from "./Conversation.ts"
import type { Members, UpstreamAnswer } from "./UpstreamAnswer.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { broken, hasDates, hasNames, objectOf, textIn } from "./UpstreamObjects.ts"
import type { Keeper, StoredUpstreamOrder } from "./UpstreamRecord.ts"

/*
 * Searches for an order that the upstream was asked to open but whose URL never arrived
 * (docs/contribute/decisions/relays.md).
 */

/** The highest number of lists and orders that are read in the search for a lost order. */
const mostReads = 300

/**
 * For how many milliseconds after a request an upstream may still open the order. Until then, a list that lacks the
 * order proves nothing.
 */
const settlingMillis = 10_000

/**
 * Reads an upstream order to which no local order belongs. Returns `undefined` if the upstream refuses to show the
 * order.
 */
const readOrder = ({ ask, client }: Conversation, url: string) =>
  Effect.flatMap(client.checked(url, "an order"), (checked) => ask("order", checked)).pipe(
    Effect.flatMap((answer) => objectOf(answer, "an order")),
    Effect.catchTag("UpstreamRefused", () => Effect.succeed(undefined))
  )

/**
 * Returns whether an upstream order is the lost order: it is not finalized, and has exactly the wanted names and dates.
 * A finalized order cannot be the lost one, because its URL was stored here before it was finalized.
 */
const isOpenFor = (
  members: Members | undefined,
  { names, validity }: Pick<Conversation, "names" | "validity">
): members is Members =>
  members !== undefined && ["pending", "ready"].includes(textIn(members, "status")) && hasNames(members, names) &&
  hasDates(members, validity)

/** Returns whether the upstream will never answer this request, rather than only failing to answer it now. */
const isUntold = (error: unknown): boolean =>
  error instanceof UpstreamRefused
    ? error.type !== "accountDoesNotExist"
    : error instanceof UpstreamUnavailable &&
      ((error.isTooLong === true && error.status === 200) || [404, 405, 501].includes(error.status ?? 0))

/**
 * Returns the URLs in a page of an account's list, or `undefined` if the upstream has no list in a known form. RFC 8555
 * section 7.1.2.1 requires an object; step-ca and Caddy send a bare array.
 */
const urlsOf = (value: unknown): ReadonlyArray<string> | undefined => {
  const list: unknown = Array.isArray(value) ? value : ((value ?? {}) as Members)["orders"]
  return Array.isArray(list) && list.every((url) => typeof url === "string" && URL.canParse(url))
    ? list as ReadonlyArray<string>
    : undefined
}

/**
 * Returns a JSON value of any kind. Fails if there is no value: the body may have been cut off, and may be complete the
 * next time.
 */
const wholeOf = ({ value }: UpstreamAnswer, what: string): Effect.Effect<unknown, UpstreamUnavailable> =>
  value === undefined ? broken(`${what} that is no JSON`) : Effect.succeed(value)

/**
 * Returns whether an account belongs to step-ca, or to Caddy, which is based on step-ca. The form of the account's URL
 * shows this. The list of orders must not be read from these CAs: reading the list removes every order that is not
 * pending. If the list of an account is then empty, the account can never open an order again, because newOrder fails
 * with a 500. This was seen with smallstep/certificates 0.30.2 and with Caddy 2.11.7. `npm run interop -- --upstreams
 * caddy` shows when this is no longer so.
 */
export const isStepCa = (kid: string): boolean => /\/acme\/[^/]+\/account\/[^/]+$/.test(kid)

/**
 * Searches the account's list for an order that an earlier attempt opened but whose URL never arrived. `none` means
 * that the whole list was read and does not contain the order. `unlisted` means that the list does not exist, has an
 * unknown form, is too long, or must not be read.
 */
const search = <E>(talk: Conversation, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    const { ask, client, kid } = talk
    if (isStepCa(kid)) return "unlisted"
    const account = yield* wholeOf(yield* ask("account", kid), "an account")
    let page: unknown = ((account ?? {}) as Members)["orders"]
    if (page === undefined) return "unlisted"
    let reads = 0
    while (page !== undefined) {
      if (++reads > mostReads) return "unlisted"
      const listed: UpstreamAnswer = yield* ask("orders", yield* client.checked(page, "a list of orders"))
      const urls = urlsOf(yield* wholeOf(listed, "a list of orders"))
      if (urls === undefined) return "unlisted"
      for (const url of yield* keeper.unclaimed(urls)) {
        if (++reads > mostReads) return "unlisted"
        const members = yield* readOrder(talk, url)
        if (isOpenFor(members, talk)) return { url, members }
      }
      page = listed.next
    }
    return "none"
  }).pipe(Effect.catchIf(isUntold, () => Effect.succeed("unlisted" as const)))

/**
 * For how many milliseconds the search continues if the list cannot be read. After that, the list counts as missing.
 */
const searchMillis = 30_000

/**
 * Searches for the order that may have been opened. If the order is not found, returns how many orders may exist that
 * cannot be found.
 */
export const find = <E>(talk: Conversation, { askedAt = 0, asks }: StoredUpstreamOrder, keeper: Keeper<E>) =>
  Effect.gen(function*() {
    if (asks === 0) return 0
    const begun = yield* lifeMillis
    // If the clock was wrong when the request was recorded, the wait must not be longer than with a correct clock.
    const settled = begun + Math.min((askedAt + 1) * 1000 - (yield* currentMillis), 0) + settlingMillis
    const patience = begun + Math.min(searchMillis, (talk.deadline - begun) / 2)
    let failures = 0
    for (;;) {
      const now = yield* lifeMillis
      const searched = yield* Effect.catchIf(
        search(talk, keeper),
        (error) => error instanceof UpstreamUnavailable,
        Effect.succeed
      )
      if (searched instanceof UpstreamUnavailable) {
        const { retryAfter = 0 } = searched
        const life = yield* lifeMillis
        if (life + retryAfter * 1000 > talk.deadline) return yield* searched
        // A single read may take all of this time. So there are always at least two reads.
        if (++failures > 1 && life >= patience) return asks
        yield* talk.pause("the list of its orders cannot be read", searched)
        continue
      }
      if (searched === "unlisted") return asks
      if (searched !== "none") return searched
      if (now >= settled) return 0
      yield* talk.pause("it may be about to open the order it was asked for")
    }
  })
