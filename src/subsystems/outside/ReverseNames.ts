import { Clock, Context, Effect, Layer, Option } from "effect"
import { comparable, makeAddressSet } from "../../domain/Address.ts"
import { emit } from "../log/EventLog.ts"
import { Resolver } from "./Resolver.ts"

const isLoopback = makeAddressSet(["127.0.0.0/8", "::1"])
const longestName = 253
const restMillis = 60_000
const mostResting = 10_000

/** The names clients' addresses have in the DNS, as they are stamped into rows (`audit.reverse_dns`). */
export class ReverseNames extends Context.Tag("acme/subsystems/outside/ReverseNames")<ReverseNames, {
  /**
   * The first PTR name of an address; `undefined` when it has none or none could be found in time. Nothing is kept, but
   * an address whose name server does not answer is left alone for a minute, lest every request waits for it.
   */
  readonly of: (ip: string | undefined) => Effect.Effect<string | undefined>
}>() {
  static readonly layer = (
    settings: { readonly reverse_dns: boolean; readonly reverse_dns_timeout_ms: number }
  ): Layer.Layer<ReverseNames, never, Resolver> => {
    if (!settings.reverse_dns) return this.layerNone
    return Layer.effect(
      this,
      Effect.map(Resolver, ({ pointers }) => {
        const restingUntil = new Map<string, number>()
        const rest = (address: string) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            const [oldest] = restingUntil.keys()
            if (oldest !== undefined && restingUntil.size >= mostResting) restingUntil.delete(oldest)
            restingUntil.set(address, now + restMillis)
          })
        const look = Effect.fnUntraced(function*(ip: string) {
          const address = comparable(ip)
          if (address === undefined || isLoopback(address)) return undefined
          const now = yield* Clock.currentTimeMillis
          if ((restingUntil.get(address.text) ?? 0) > now) return undefined
          const found = yield* Effect.either(Effect.timeoutOption(pointers(address), settings.reverse_dns_timeout_ms))
          if (found._tag === "Left") {
            yield* emit("audit_reverse_dns_failed", { address: address.text })
            return undefined
          }
          if (Option.isSome(found.right)) return found.right.value[0]?.slice(0, longestName)
          yield* rest(address.text)
          yield* emit("audit_reverse_dns_timeout", { address: address.text })
          return undefined
        })
        return { of: (ip) => ip === undefined ? Effect.succeed(undefined) : look(ip) }
      })
    )
  }

  /** Knows no names. */
  static readonly layerNone: Layer.Layer<ReverseNames> = Layer.succeed(this, { of: () => Effect.succeed(undefined) })
}
