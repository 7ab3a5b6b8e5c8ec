import { Array, Context, Data, Deferred, Effect, Layer, Option } from "effect"
import * as Dns from "node:dns"
import type { IpAddress, Nameserver } from "../../domain/Address.ts"
import { familyOf, parseAddress, parseNameserver } from "../../domain/Address.ts"

/**
 * The DNS did not answer: SERVFAIL, a refusal, no server, or no reply. A name that does not exist is no failure.
 * `code` is the resolver's word (`ESERVFAIL`, `ETIMEOUT`, ...), for logs only.
 */
export class ResolveFailed extends Data.TaggedError("ResolveFailed")<{
  readonly name: string
  readonly code: string
}> {}

/** How long the second address family may take once the first has given addresses, in ms. */
const grace = 1000

/**
 * One question and its answers; no such name and no such record are an empty list. Every question has a resolver object
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
  Effect.async((resume) => {
    const resolver = new Dns.Resolver({ timeout: 1000, tries: 8 })
    if (Option.isSome(server)) {
      const { address, port } = server.value
      resolver.setServers([familyOf(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`])
    }
    question(resolver, (error, answers) => {
      if (error === null) return resume(Effect.succeed(answers ?? []))
      const code = error.code ?? "unknown"
      resume(code === Dns.NOTFOUND || code === Dns.NODATA ? Effect.succeed([]) : new ResolveFailed({ name, code }))
    })
    return Effect.sync(() => resolver.cancel())
  })

/** RFC 6761 §6.3: `localhost` and everything below it is the loopback interface, whatever a server might say. */
const isLocalhost = (name: string) => /(?:^|\.)localhost\.?$/i.test(name)
const loopback = Array.filterMap(["::1", "127.0.0.1"], parseAddress)

const make = (server: Option.Option<Nameserver>): Resolver["Type"] => {
  const query = ask(server)
  const addresses = Effect.fnUntraced(function*(name: string) {
    if (isLocalhost(name)) return loopback
    const answered = yield* Deferred.make<void>()
    const tooLate = Deferred.await(answered).pipe(
      Effect.zipRight(Effect.sleep(grace)),
      Effect.zipRight(new ResolveFailed({ name, code: "second family unanswered" }))
    )
    const family = (question: Parameters<typeof query<string>>[1]) =>
      query(name, question).pipe(
        Effect.tap((found) => found.length > 0 ? Deferred.succeed(answered, undefined) : Effect.void),
        Effect.raceFirst(tooLate),
        Effect.either
      )
    const [failures, found] = Array.partitionMap(
      yield* Effect.all([
        family((resolver, reply) => resolver.resolve6(name, reply)),
        family((resolver, reply) => resolver.resolve4(name, reply))
      ], { concurrency: "unbounded" }),
      (answer) => answer
    )
    const list = Array.filterMap(found.flat(), parseAddress)
    const [failure] = failures
    if (list.length === 0 && failure !== undefined) return yield* failure
    return list
  })
  return { addresses }
}

/** The DNS as validators, policy checks and reports see it. */
export class Resolver extends Context.Tag("acme/subsystems/outside/Resolver")<Resolver, {
  /**
   * A and AAAA records of exactly this name (no search list), AAAA first. Empty when the name has none. Fails only when
   * neither family gave an address. No timeout of its own; interruption cancels the queries.
   */
  readonly addresses: (name: string) => Effect.Effect<ReadonlyArray<IpAddress>, ResolveFailed>
}>() {
  /** Asks the server of dns.resolver, or the system's name servers when it is empty. */
  static readonly layer = (resolver: string): Layer.Layer<Resolver> => {
    if (resolver === "") return Layer.sync(this, () => make(Option.none()))
    return Option.match(parseNameserver(resolver), {
      onNone: () => Layer.die(`dns.resolver is no address: ${resolver}`),
      onSome: (server) => Layer.sync(this, () => make(Option.some(server)))
    })
  }

  /** Answers from a table; a name that is not in it has no addresses. */
  static readonly layerStatic = (
    zone: { readonly [name: string]: ReadonlyArray<string> | ResolveFailed }
  ): Layer.Layer<Resolver> =>
    Layer.succeed(this, {
      addresses: (name) => {
        const entry = zone[name] ?? []
        return entry instanceof ResolveFailed ? entry : Effect.succeed(Array.filterMap(entry, parseAddress))
      }
    })
}
