import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import { shownName } from "../../crypto/Character.ts"
import { labelGlob } from "../../domain/policy/Glob.ts"
import type { Comparable, IpAddress } from "../../engine/net/Address.ts"
import type { ResolveFailed, Resolver } from "../../engine/net/Resolver.ts"
import { currentMillis } from "../../engine/Time.ts"
import type { Check, CheckAnswer, CheckConfig } from "./Check.ts"
import { addressUnknown, passed, refused, undecided } from "./Check.ts"
import { listsOf } from "./PolicyLists.ts"

const longestCached = 300
const mostCached = 10_000
/**
 * How many names of an address are looked up, to confirm that they have the address. The owner of the reverse zone
 * chooses the names, so an address may have more.
 */
const mostConfirmed = 16
const confirmedAtOnce = 4
const usualTimeout = 2000

/** How many names a refusal lists. */
const mostTold = 3

/**
 * Returns the names of an address for a refusal, in a form that is safe to show, because the owner of the reverse zone
 * chooses them.
 */
const listed = (names: ReadonlyArray<string>): string => {
  const told = names.slice(0, mostTold).map(shownName).join(", ")
  return names.length > mostTold ? `${told} and ${names.length - mostTold} more` : told
}

/**
 * Looks up the addresses of a name in one family. The addresses are kept as long as their records allow, but for at
 * most 300 s.
 */
export type Forward = (name: string, family: 4 | 6) => Effect.Effect<ReadonlyArray<IpAddress>, ResolveFailed>

/**
 * Makes a look-up with a cache of its own, because no other part of the service caches DNS answers. Answers to PTR
 * queries are not cached, because they come without a TTL.
 */
export const cachedForward = (resolver: Resolver["Service"]): Forward => {
  const cache = new Map<string, { readonly until: number; readonly addresses: ReadonlyArray<IpAddress> }>()
  return Effect.fnUntraced(function*(name, family) {
    const now = yield* currentMillis
    const key = `${family} ${name}`
    const known = cache.get(key)
    if (known !== undefined && now < known.until) return known.addresses
    const { addresses, seconds } = yield* resolver.timedAddresses(name, family)
    if (seconds === 0) return addresses
    const [oldest] = cache.keys()
    if (oldest !== undefined && cache.size >= mostCached) cache.delete(oldest)
    cache.set(key, { addresses, until: now + Math.min(seconds, longestCached) * 1000 })
    return addresses
  })
}

/** Makes a check of type `reverse_dns`, which judges the names that the client's address has in the DNS. */
export const reverseDns = (config: CheckConfig, resolver: Resolver["Service"], forward: Forward): Check => {
  const { allow, deny } = listsOf(config, labelGlob)
  const timeout = config.timeout_ms ?? usualTimeout
  const judge = Effect.fnUntraced(function*(client: Comparable): Effect.fn.Return<CheckAnswer, ResolveFailed> {
    const pointers = yield* resolver.pointers(client)
    const names = pointers.map((name) => name.toLowerCase().replace(/\.$/, ""))
    const address = `the client address ${client.text}`
    if (names.length === 0) return refused(`${address} has no name in the DNS`)
    const denied = names.find(deny.matches)
    if (denied !== undefined) return refused(`${address} has the name ${shownName(denied)}, which is denied`)
    const wanted = allow.isEmpty ? names : names.filter(allow.matches)
    if (wanted.length === 0) return refused(`${address} has no name that is among those allowed: ${listed(names)}`)
    if (!config.require_forward_confirm) return passed
    const family = client.width === 32 ? 4 : 6
    const [found, [failure]] = Array.separate(
      yield* Effect.forEach(wanted.slice(0, mostConfirmed), (name) => Effect.result(forward(name, family)), {
        concurrency: confirmedAtOnce
      })
    )
    if (found.some((addresses) => addresses.includes(client.text))) return passed
    if (failure !== undefined) return yield* failure
    return wanted.length > mostConfirmed
      ? undecided(`${client.text} has ${wanted.length} names; the first ${mostConfirmed} do not have the address`)
      : refused(`${address} is not an address of its name: ${listed(wanted)}`)
  })
  return {
    _tag: "Looking",
    ask: ({ client }) =>
      client === undefined ? Effect.succeed(addressUnknown) : judge(client).pipe(
        Effect.catch(({ code, name }) => Effect.succeed(undecided(`${name}: ${code}`))),
        Effect.timeoutOrElse({
          duration: timeout,
          orElse: () => Effect.succeed(undecided(`no answer about ${client.text} within ${timeout} ms`))
        })
      )
  }
}
