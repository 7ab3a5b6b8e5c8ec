import * as Cache from "effect/Cache"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { comparable, makeAddressSet } from "./Address.ts"
import { makeFairSemaphore } from "./FairSemaphore.ts"
import { Resolver } from "./Resolver.ts"

const isLoopback = makeAddressSet(["127.0.0.0/8", "::1"])
const longestName = 253
const mostKept = 10_000
/**
 * The highest number of look-ups at the same time. Each look-up makes its caller wait, and sends a query to the name
 * server.
 */
const mostAtOnce = 64

/** The name of an address, if it has one, and for how long this result is remembered. */
interface Found {
  readonly name: string | undefined
  readonly life: Duration.Input
}

const named = (name: string): Found => ({ name: name.slice(0, longestName), life: "5 minutes" })
const nameless: Found = { name: undefined, life: "1 minute" }
const unasked: Found = { name: undefined, life: "1 second" }

/** Looks up the DNS names of clients' addresses. */
export class ReverseNames extends Context.Service<ReverseNames, {
  /**
   * Looks up the first PTR name of an address, unless the result is remembered. Ends when the answer arrives, when the
   * time is up, or at once if too many other look-ups are in progress. The caller should hold no resource that others
   * wait for.
   */
  readonly look: (ip: string) => Effect.Effect<void>
  /**
   * Returns the name that {@link look} has found, without waiting. Returns `undefined` if no name was found, or if it
   * was found too long ago.
   */
  readonly of: (ip: string | undefined) => Effect.Effect<string | undefined>
}>()("acme/engine/net/ReverseNames") {
  /** Makes the service. `unanswered` is called with each address whose look-up failed or was late. */
  static readonly layer = (
    { timeoutMillis, unanswered }: {
      readonly timeoutMillis: number
      readonly unanswered: (address: string, isLate: boolean) => Effect.Effect<void>
    }
  ): Layer.Layer<ReverseNames, never, Resolver> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const { pointers } = yield* Resolver
        const scope = yield* Effect.scope
        const turns = makeFairSemaphore(mostAtOnce)
        const ask = Effect.fnUntraced(function*(text: string): Effect.fn.Return<Found> {
          const address = comparable(text)
          if (address === undefined) return nameless
          const found = yield* Effect.result(Effect.timeoutOption(pointers(address), timeoutMillis))
          if (found._tag === "Failure") {
            yield* unanswered(text, false)
            return nameless
          }
          if (Option.isNone(found.success)) {
            yield* unanswered(text, true)
            return nameless
          }
          const [name] = found.success.value
          return name === undefined ? nameless : named(name)
        })
        const known = yield* Cache.makeWith((text: string) => turns.takeIfFree(ask(text), Effect.succeed(unasked)), {
          capacity: mostKept,
          timeToLive: (exit: Exit.Exit<Found>) => Exit.isSuccess(exit) ? exit.value.life : Duration.zero
        })
        const keyOf = (ip: string | undefined) => {
          const address = ip === undefined ? undefined : comparable(ip)
          return address === undefined || isLoopback(address) ? undefined : address.text
        }
        return {
          look: (ip) => {
            const key = keyOf(ip)
            if (key === undefined) return Effect.void
            return Effect.flatMap(Cache.getSuccess(known, key), (found) =>
              Option.isSome(found)
                ? Effect.void
                // If a caller is interrupted, the look-up must go on for the other callers.
                : Effect.asVoid(Effect.flatMap(Effect.forkIn(Cache.get(known, key), scope), Fiber.join)))
          },
          of: (ip) => {
            const key = keyOf(ip)
            if (key === undefined) return Effect.succeed(undefined)
            return Effect.map(
              Cache.getSuccess(known, key),
              Option.match({ onNone: () => undefined, onSome: ({ name }) => name })
            )
          }
        }
      })
    )

  /** Looks up nothing, so no address has a name. */
  static readonly layerNone: Layer.Layer<ReverseNames> = Layer.succeed(this, {
    look: () => Effect.void,
    of: () => Effect.succeed(undefined)
  })
}
