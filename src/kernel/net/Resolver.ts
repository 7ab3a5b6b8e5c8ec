import { Array, Context, Data, Deferred, Effect, Layer, Option } from "effect"
import * as Dns from "node:dns"
import { exhaustion, isExhaustion } from "../host/Exhausted.ts"
import { traced } from "../telemetry/Tracing.ts"
import type { Comparable, IpAddress, Nameserver } from "./Address.ts"
import { familyOf, parseAddress, parseNameserver, pointerName } from "./Address.ts"

/**
 * The DNS did not answer with records: SERVFAIL, a refusal, no server, no reply, or no such name where that matters.
 * `code` is the resolver's word (`ESERVFAIL`, `ETIMEOUT`, ...), for logs; or the system's, where this host could not ask.
 */
export class ResolveFailed extends Data.TaggedError("ResolveFailed")<{
  readonly name: string
  readonly code: string
}> {}

/** Addresses of a name and how many seconds they may be kept: the least any of the records says, 0 without records. */
export interface TimedAddresses {
  readonly addresses: ReadonlyArray<IpAddress>
  readonly seconds: number
}

/** Aliases followed when a name has them and no record. */
const longestChain = 16

/** How long the second address family may take once the first has given addresses, in ms. */
const grace = 1000

/**
 * One question and its answers; no record of the type is an empty list. Every question has a resolver object
 * of its own: nothing is cached, interruption cancels it, and no thread of the pool waits (c-ares, never getaddrinfo,
 * so neither hosts file nor search list is read). Retransmission goes on for minutes: the caller's budget is the bound.
 */
const ask = (server: Option.Option<Nameserver>) =>
<A>(
  name: string,
  question: (
    resolver: Dns.Resolver,
    reply: (error: NodeJS.ErrnoException | null, answers: ReadonlyArray<A> | undefined) => void
  ) => void
): Effect.Effect<ReadonlyArray<A>, ResolveFailed> =>
  Effect.async<ReadonlyArray<A>, ResolveFailed>((resume) => {
    const resolver = new Dns.Resolver({ timeout: 1000, tries: 8 })
    if (Option.isSome(server)) {
      const { address, port } = server.value
      resolver.setServers([familyOf(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`])
    }
    question(resolver, (error, answers) => {
      if (error === null) return resume(Effect.succeed(answers ?? []))
      const code = (unanswered.has(error.code) ? exhaustion() : undefined) ?? error.code ?? "unknown"
      resume(code === Dns.NODATA ? Effect.succeed([]) : new ResolveFailed({ name, code }))
    })
    return Effect.sync(() => resolver.cancel())
  }).pipe(
    // What there was none of a moment ago may be there again, and then nothing else would tell the two apart.
    Effect.retry({ times: 1, while: (error: ResolveFailed) => error.code === Dns.CONNREFUSED })
  )

/** No server has said anything; the resolver says so as well when it could not open a socket to ask. */
const unanswered: ReadonlySet<string | undefined> = new Set([Dns.CONNREFUSED, Dns.TIMEOUT, Dns.NOMEM, Dns.FILE])

const noSuchName = ({ code }: ResolveFailed) => code === Dns.NOTFOUND

/** RFC 6761 section 6.3: `localhost` and everything below it is the loopback interface, whatever a server might say. */
const isLocalhost = (name: string) => /(?:^|\.)localhost\.?$/i.test(name)
const loopback = Array.filterMap(["::1", "127.0.0.1"], parseAddress)

const make = (server: Option.Option<Nameserver>): Resolver["Type"] => {
  const query = ask(server)
  const ofFamily = (name: string, family: 4 | 6) =>
    query<Dns.RecordWithTtl>(name, (resolver, reply) => {
      if (family === 6) resolver.resolve6(name, { ttl: true }, reply)
      else resolver.resolve4(name, { ttl: true }, reply)
    }).pipe(Effect.catchIf(noSuchName, () => Effect.succeed([])))
  const literals = Array.filterMap(({ address }: Dns.RecordWithTtl) => parseAddress(address))

  const timedAddresses: Resolver["Type"]["timedAddresses"] = (name, family) =>
    isLocalhost(name)
      ? Effect.succeed({ addresses: loopback.filter((ip) => familyOf(ip) === family), seconds: 0 })
      : Effect.map(ofFamily(name, family), (records) => ({
        addresses: literals(records),
        seconds: records.length === 0 ? 0 : Math.min(...records.map(({ ttl }) => ttl))
      }))

  const addresses = Effect.fnUntraced(
    function*(name: string): Effect.fn.Return<ReadonlyArray<IpAddress>, ResolveFailed> {
      if (isLocalhost(name)) return loopback
      const answered = yield* Deferred.make<void>()
      const tooLate = Deferred.await(answered).pipe(
        Effect.zipRight(Effect.sleep(grace)),
        Effect.zipRight(new ResolveFailed({ name, code: "second family unanswered" }))
      )
      const family = (version: 4 | 6) =>
        ofFamily(name, version).pipe(
          Effect.tap((found) => found.length > 0 ? Deferred.succeed(answered, undefined) : Effect.void),
          Effect.raceFirst(tooLate),
          Effect.either
        )
      const [failures, found] = Array.partitionMap(
        yield* Effect.all([family(6), family(4)], { concurrency: "unbounded" }),
        (answer) => answer
      )
      const list = literals(found.flat())
      const failure = failures.find(({ code }) => isExhaustion(code)) ?? failures[0]
      return list.length === 0 && failure !== undefined ? yield* failure : list
    }
  )

  const pointers = (ip: Comparable) =>
    query<string>(pointerName(ip), (resolver, reply) => resolver.resolvePtr(pointerName(ip), reply)).pipe(
      Effect.catchIf(noSuchName, () => Effect.succeed([]))
    )

  /** Whether the aliases of a name lead back to one of them, so that no server can say what is at their end. */
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

/** The DNS as validators, policy checks and reports see it. */
export class Resolver extends Context.Tag("acme/kernel/net/Resolver")<Resolver, {
  /**
   * A and AAAA records of exactly this name (no search list), AAAA first. Empty when the name has none. Fails only when
   * neither family gave an address. No timeout of its own; interruption cancels the queries.
   */
  readonly addresses: (name: string) => Effect.Effect<ReadonlyArray<IpAddress>, ResolveFailed>
  /** The addresses of one family, with the time they may be kept. Otherwise as {@link addresses}. */
  readonly timedAddresses: (name: string, family: 4 | 6) => Effect.Effect<TimedAddresses, ResolveFailed>
  /** Names an address has by its PTR records; empty when it has none. Otherwise as {@link addresses}. */
  readonly pointers: (ip: Comparable) => Effect.Effect<ReadonlyArray<string>, ResolveFailed>
  /**
   * TXT records of exactly this name, aliases followed by the server asked, the strings of a record joined. Empty when
   * the name has none; a name that does not exist is a failure, `ENOTFOUND`. Otherwise as {@link addresses}.
   */
  readonly texts: (name: string) => Effect.Effect<ReadonlyArray<string>, ResolveFailed>
}>() {
  /** Asks the server of dns.resolver, or the system's name servers when it is empty. */
  static readonly layer = (resolver: string): Layer.Layer<Resolver> => {
    if (resolver === "") return Layer.sync(this, () => make(Option.none()))
    return Option.match(parseNameserver(resolver), {
      onNone: () => Layer.die(`dns.resolver is no address: ${resolver}`),
      onSome: (server) => Layer.sync(this, () => make(Option.some(server)))
    })
  }

  /**
   * Answers from tables, which keep for no time; a name that is not in the first has no addresses, one not in the second
   * does not exist, and an address not in the third has no name.
   */
  static readonly layerStatic = (
    zone: { readonly [name: string]: ReadonlyArray<string> | ResolveFailed },
    txt: { readonly [name: string]: ReadonlyArray<string> | ResolveFailed } = {},
    ptr: { readonly [address: string]: ReadonlyArray<string> | ResolveFailed } = {}
  ): Layer.Layer<Resolver> => {
    const look = (entry: ReadonlyArray<string> | ResolveFailed) =>
      entry instanceof ResolveFailed ? entry : Effect.succeed(entry)
    const addresses = (name: string) => Effect.map(look(zone[name] ?? []), Array.filterMap(parseAddress))
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
