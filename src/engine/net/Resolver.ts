import * as Array from "effect/Array"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Dns from "node:dns"
import { isExhaustion } from "../host/Exhausted.ts"
import { traced } from "../telemetry/Tracing.ts"
import type { Comparable, IpAddress, Nameserver } from "./Address.ts"
import { familyOf, parseAddress, parseNameserver, pointerName } from "./Address.ts"
import type { Question, Reply } from "./Lookup.ts"
import { makeLookups } from "./Lookup.ts"

/**
 * The DNS returned no records: SERVFAIL, a refusal, no server, no reply or, where this matters, no such name. `code` is
 * the resolver's code (`ESERVFAIL`, `ETIMEOUT`, ...), for the log. If this host could not send the query, `code` is the
 * system's code.
 */
export class ResolveFailed extends Data.TaggedError("ResolveFailed")<{
  readonly name: string
  readonly code: string
}> {}

/**
 * The addresses of a name, and for how many seconds they may be cached. That number of seconds is the smallest TTL of
 * the records, or 0 if there are none.
 */
export interface TimedAddresses {
  readonly addresses: ReadonlyArray<IpAddress>
  readonly seconds: number
}

/** How many aliases are followed if a name has aliases but no record. */
const longestChain = 16

/** How long, in ms, the query for the second address family may take after the first has returned addresses. */
const grace = 1000

/** Returns whether a name server reported that the name does not exist. A missing answer does not count. */
export const noSuchName = ({ code }: ResolveFailed) => code === Dns.NOTFOUND

/**
 * By RFC 6761 section 6.3, `localhost` and every name below it mean the loopback interface. No server is queried for
 * these names.
 */
const isLocalhost = (name: string) => /(?:^|\.)localhost\.?$/i.test(name)
const loopback = Array.getSomes(Array.map(["::1", "127.0.0.1"], parseAddress))

const hasAnswers = ({ answers }: Reply<unknown>) => answers.length > 0
const never = () => false

const make = (server: Option.Option<Nameserver>): Resolver["Service"] => {
  const lookups = makeLookups(server)

  /**
   * Sends one query again and again for minutes, so the caller must set a time limit. If there is no record of the
   * type, the result is an empty list.
   */
  const query = <A>(name: string, question: Question<A>): Effect.Effect<ReadonlyArray<A>, ResolveFailed> =>
    Effect.suspend(() => {
      const lookup = lookups([question])
      return lookup.until(never).pipe(
        Effect.ensuring(Effect.sync(lookup.end)),
        Effect.flatMap(() => {
          const [reply] = lookup.replies
          return reply?.code === undefined
            ? Effect.succeed(reply?.answers ?? [])
            : new ResolveFailed({ name, code: reply.code })
        })
      )
    })
  const ofFamily = (name: string, family: 4 | 6): Question<Dns.RecordWithTtl> => (resolver, reply) =>
    family === 6 ? resolver.resolve6(name, { ttl: true }, reply) : resolver.resolve4(name, { ttl: true }, reply)
  const literals = (records: ReadonlyArray<Dns.RecordWithTtl>) =>
    Array.getSomes(records.map(({ address }) => parseAddress(address)))

  const timedAddresses: Resolver["Service"]["timedAddresses"] = (name, family) =>
    isLocalhost(name)
      ? Effect.succeed({ addresses: loopback.filter((ip) => familyOf(ip) === family), seconds: 0 })
      : query(name, ofFamily(name, family)).pipe(
        Effect.catchIf(noSuchName, () => Effect.succeed([])),
        Effect.map((records) => ({
          addresses: literals(records),
          seconds: records.length === 0 ? 0 : Math.min(...records.map(({ ttl }) => ttl))
        }))
      )

  const addresses = (name: string): Effect.Effect<ReadonlyArray<IpAddress>, ResolveFailed> =>
    isLocalhost(name) ? Effect.succeed(loopback) : Effect.suspend(() => {
      const lookup = lookups([ofFamily(name, 6), ofFamily(name, 4)])
      const rest = Effect.suspend(() =>
        lookup.isOver() ? Effect.void : Effect.asVoid(Effect.timeoutOption(lookup.until(never), grace))
      )
      return Effect.andThen(lookup.until(hasAnswers), rest).pipe(
        Effect.ensuring(Effect.sync(lookup.end)),
        Effect.flatMap(() => {
          const list = literals(lookup.replies.flatMap((reply) => reply?.answers ?? []))
          if (list.length > 0) return Effect.succeed(list)
          const codes = lookup.replies.map((reply) => reply?.code).filter((code) => code !== Dns.NOTFOUND)
          const code = codes.find(isExhaustion) ?? codes.find((one) => one !== undefined)
          return code === undefined ? Effect.succeed(list) : new ResolveFailed({ name, code })
        })
      )
    })

  const pointers = (ip: Comparable) =>
    query<string>(pointerName(ip), (resolver, reply) => resolver.resolvePtr(pointerName(ip), reply)).pipe(
      Effect.catchIf(noSuchName, () => Effect.succeed([]))
    )

  /** Returns whether the aliases of a name form a loop, so that no server can find their end. */
  const isLoop = Effect.fnUntraced(function*(name: string) {
    const seen = new Set<string>()
    let at: string | undefined = name.toLowerCase()
    while (at !== undefined && seen.size < longestChain) {
      if (seen.has(at)) return true
      seen.add(at)
      const alias: string = at
      const [next]: ReadonlyArray<string> = yield* query<string>(
        alias,
        (resolver, reply) => resolver.resolveCname(alias, reply)
      ).pipe(Effect.catchIf(noSuchName, () => Effect.succeed([])))
      at = next?.toLowerCase()
    }
    return at !== undefined
  })

  const texts = Effect.fnUntraced(function*(name: string) {
    const records = yield* query<ReadonlyArray<string>>(name, (resolver, reply) => resolver.resolveTxt(name, reply))
    if (records.length === 0 && (yield* isLoop(name))) return yield* new ResolveFailed({ name, code: "alias loop" })
    return records.map((strings) => strings.join(""))
  })
  const asked = (type: string, name: string) => <A, E>(self: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    traced(`DNS ${type}`, () => ({ "dns.question.name": name }), self)
  return {
    addresses: (name) => asked("A, AAAA", name)(addresses(name)),
    timedAddresses: (name, family) => asked(family === 4 ? "A" : "AAAA", name)(timedAddresses(name, family)),
    pointers: (ip) => asked("PTR", ip.text)(pointers(ip)),
    texts: (name) => asked("TXT", name)(texts(name))
  }
}

/** DNS look-ups for validators, policy checks and reports. */
export class Resolver extends Context.Service<Resolver, {
  /**
   * Returns the A and AAAA records of exactly this name (without a search list), AAAA first. The result is empty if the
   * name has no such records. Fails only if a query failed and neither family returned an address. There is no timeout.
   * An interruption cancels the queries.
   */
  readonly addresses: (name: string) => Effect.Effect<ReadonlyArray<IpAddress>, ResolveFailed>
  /**
   * Returns the addresses of one family, and for how long they may be cached. In all other respects this is like
   * {@link addresses}.
   */
  readonly timedAddresses: (name: string, family: 4 | 6) => Effect.Effect<TimedAddresses, ResolveFailed>
  /**
   * Returns the names in the PTR records of an address, or an empty list if it has none. In all other respects this is
   * like {@link addresses}.
   */
  readonly pointers: (ip: Comparable) => Effect.Effect<ReadonlyArray<string>, ResolveFailed>
  /**
   * Returns the TXT records of exactly this name. The strings of each record are joined. The name server follows
   * aliases. The result is empty if the name has no such records. If the name does not exist, this fails with
   * `ENOTFOUND`. In all other respects this is like {@link addresses}.
   */
  readonly texts: (name: string) => Effect.Effect<ReadonlyArray<string>, ResolveFailed>
}>()("acme/engine/net/Resolver") {
  /** Queries the server in dns.resolver, or the name servers of the system if that key is empty. */
  static readonly layer = (resolver: string): Layer.Layer<Resolver> => {
    if (resolver === "") return Layer.sync(this, () => make(Option.none()))
    return Option.match(parseNameserver(resolver), {
      onNone: () => Layer.effect(this, Effect.die(new Error(`dns.resolver is not an address: ${resolver}`))),
      onSome: (server) => Layer.sync(this, () => make(Option.some(server)))
    })
  }

  /**
   * Returns records from tables. Addresses may be cached for 0 seconds. A name that is missing in the first table has
   * no addresses. A name that is missing in the second table does not exist. An address that is missing in the third
   * table has no name.
   */
  static readonly layerStatic = (
    zone: { readonly [name: string]: ReadonlyArray<string> | ResolveFailed },
    txt: { readonly [name: string]: ReadonlyArray<string> | ResolveFailed } = {},
    ptr: { readonly [address: string]: ReadonlyArray<string> | ResolveFailed } = {}
  ): Layer.Layer<Resolver> => {
    const look = (entry: ReadonlyArray<string> | ResolveFailed) =>
      entry instanceof ResolveFailed ? entry : Effect.succeed(entry)
    const addresses = (name: string) =>
      Effect.map(look(zone[name] ?? []), (texts) => Array.getSomes(texts.map(parseAddress)))
    return Layer.succeed(this, {
      addresses,
      timedAddresses: (name, family) =>
        Effect.map(addresses(name), (found) => ({
          addresses: found.filter((ip) => familyOf(ip) === family),
          seconds: 0
        })),
      pointers: ({ text }) => look(ptr[text] ?? []),
      texts: (name) => look(txt[name] ?? new ResolveFailed({ name, code: Dns.NOTFOUND }))
    })
  }
}
