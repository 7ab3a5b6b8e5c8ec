import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import type { DnsName } from "../../domain/Identifier.ts"
import { emit } from "../../domain/words/Log.ts"
import { exhausted, isExhaustion } from "../../engine/host/Exhausted.ts"
import type { IpAddress } from "../../engine/net/Address.ts"
import { candidates, familyOf, makeAddressPolicy, maxCandidates, parseAddress } from "../../engine/net/Address.ts"
import type { ConnectFailed } from "../../engine/net/Connect.ts"
import type { Resolver } from "../../engine/net/Resolver.ts"
import { oncePer } from "../../engine/OncePer.ts"
import { lifeMillis } from "../../engine/Time.ts"
import type { ChallengeAttempt, ChallengeRefused, Waiting } from "./Attempt.ts"
import { ChallengePostponed, stalled, unlessOwn, unreachable } from "./Attempt.ts"

/**
 * How one attempt resolves and dials hosts. A host is resolved once, and only checked addresses are dialled
 * (docs/reference/protocol.md, "Addresses").
 */
export interface Dial {
  /**
   * Returns the addresses of a host that may be dialled, in order. The host is a name, or an address literal in URL
   * syntax.
   */
  readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<IpAddress>, ChallengeRefused | ChallengePostponed>
  /**
   * Tries the addresses one after the other. Each address has its share of the remaining time; the last address may use
   * all of it. After the first established connection, no other address is tried, whatever the outcome.
   */
  readonly inTurn: <A>(
    addresses: ReadonlyArray<IpAddress>,
    port: number,
    attempt: (
      address: IpAddress,
      connectMillis: number | undefined
    ) => Effect.Effect<A, ChallengeRefused | ChallengePostponed | ConnectFailed>
  ) => Effect.Effect<A, ChallengeRefused | ChallengePostponed>
}

/** Returns the destination of a connection, for the log. */
export const dialled = (address: IpAddress, port: number): string => `${address} port ${port}`

/**
 * How many addresses of each family are considered at most. The owner of the zone decides how many exist, so there must
 * be a limit.
 */
const mostAddresses = 64

/**
 * The address policy of each section of the configuration. Each is made once, because making it takes longer than
 * checking an address.
 */
const policyOf = oncePer(({ allowed_addresses, denied_addresses }: ChallengeAttempt["challenge"]) =>
  makeAddressPolicy({ denied: denied_addresses, allowed: allowed_addresses })
)

/**
 * Makes a {@link Dial}. `safe` makes remote text safe for a record. `started` is the time at which the attempt began,
 * in milliseconds since the start of the process.
 */
export const makeDial = (options: {
  readonly resolver: Pick<Resolver["Service"], "addresses">
  readonly identifier: DnsName
  readonly challenge: ChallengeAttempt["challenge"]
  readonly started: number
  readonly safe: (text: string) => string
  readonly waiting: Waiting
}): Dial => {
  const { challenge, identifier, resolver, safe, started, waiting } = options
  const deadline = started + challenge.timeout_ms
  const policy = policyOf(challenge)

  const resolve = Effect.fnUntraced(function*(host: string) {
    yield* Ref.set(waiting, safe(`the addresses of ${host} were not answered`))
    const literal = parseAddress(host.replace(/^\[(.*)\]$/, "$1"))
    const addresses = Option.isSome(literal) ? [literal.value] : yield* resolver.addresses(host).pipe(
      Effect.mapError(({ code }) => unlessOwn(code, unreachable("resolve_failed", safe(`${host}: ${code}`))))
    )
    if (addresses.length === 0) return yield* unreachable("no_address", safe(`${host} has no address`))
    const looked = ([6, 4] as const).flatMap((family) =>
      [...new Set(addresses)].filter((address) => familyOf(address) === family).slice(0, mostAddresses)
    )
    const [passed, denied] = Array.partition(looked, (address) => {
      const rule = policy.check(address)
      return rule === undefined ? Result.succeed(address) : Result.fail({ address, rule })
    })
    // no more records than possible connections
    yield* Effect.forEach(
      denied.slice(0, maxCandidates),
      ({ address, rule }) => emit("challenge_address_denied", { identifier, address, rule }),
      { discard: true }
    )
    if (passed.length === 0) {
      const by = denied.slice(0, maxCandidates).map(({ address, rule }) => `${address} (${rule})`)
      return yield* unreachable("address_denied", safe(`every address of ${host} is denied: ${by.join(", ")}`))
    }
    return candidates(passed)
  })

  const inTurn: Dial["inTurn"] = (addresses, port, attempt) => {
    const from = (at: number, failures: ReadonlyArray<string>): ReturnType<typeof inTurn<Attempted>> => {
      const address = addresses[at]
      if (address === undefined) return unreachable("connect_failed", safe(failures.join("; ")))
      const left = addresses.length - at
      const where = dialled(address, port)
      const noted = Effect.andThen(Ref.set(waiting, `${where} did not answer`), lifeMillis)
      return Effect.flatMap(noted, (life) => {
        const connectMillis = left === 1 ? undefined : Math.max(1, Math.floor((deadline - life) / left))
        return Effect.catchTag(
          attempt(address, connectMillis),
          "ConnectFailed",
          ({ code, detail }) =>
            Effect.flatMap(lifeMillis, (now): ReturnType<typeof inTurn<Attempted>> =>
              isExhaustion(code)
                ? new ChallengePostponed({ detail: exhausted(code) })
                : stalled(connectMillis === undefined ? 0 : now - life - connectMillis) ??
                  from(at + 1, [...failures, `${where}: ${detail}`]))
        )
      })
    }
    type Attempted = Effect.Success<ReturnType<typeof attempt>>
    return from(0, [])
  }
  return { resolve, inTurn }
}
