import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import { labelGlob } from "../../domain/policy/Glob.ts"
import type { Comparable, IpAddress } from "../../kernel/net/Address.ts"
import type { ResolveFailed, Resolver } from "../../kernel/net/Resolver.ts"
import { currentMillis } from "../../kernel/Time.ts"
import type { Check, CheckAnswer, CheckConfig } from "./Check.ts"
import { passed, refused, undecided } from "./Check.ts"
import { listsOf } from "./Lists.ts"

const longestCached = 300
const mostCached = 10_000
/** The names whose addresses are looked up: the zone's owner decides how many there are. */
const mostConfirmed = 16
const confirmedAtOnce = 4
const usualTimeout = 2000

const nameless = refused("the client address has no name that counts")
const denied = refused("the client address has a name that is not allowed")

/** The addresses of a name, of one family; valid for as long as their records say, and at most 300 s. */
export type Forward = (name: string, family: 4 | 6) => Effect.Effect<ReadonlyArray<IpAddress>, ResolveFailed>

/** A separate cache: no other part of the service keeps answers of the DNS. PTR answers come without their TTL. */
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

/** `reverse_dns`: the names of the client's address in the DNS. */
export const reverseDns = (config: CheckConfig, resolver: Resolver["Service"], forward: Forward): Check => {
  const { allow, deny } = listsOf(config, labelGlob)
  const timeout = config.timeout_ms ?? usualTimeout
  const judge = Effect.fnUntraced(function*(client: Comparable): Effect.fn.Return<CheckAnswer, ResolveFailed> {
    const pointers = yield* resolver.pointers(client)
    const names = pointers.map((name) => name.toLowerCase().replace(/\.$/, ""))
    if (names.some(deny.matches)) return denied
    const wanted = allow.isEmpty ? names : names.filter(allow.matches)
    if (!config.require_forward_confirm || wanted.length === 0) return wanted.length === 0 ? nameless : passed
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
      : nameless
  })
  return {
    _tag: "Looking",
    ask: ({ client }) =>
      client === undefined ? Effect.succeed(nameless) : judge(client).pipe(
        Effect.catch(({ code, name }) => Effect.succeed(undecided(`${name}: ${code}`))),
        Effect.timeoutOrElse({
          duration: timeout,
          orElse: () => Effect.succeed(undecided(`no answer within ${timeout} ms`))
        })
      )
  }
}
