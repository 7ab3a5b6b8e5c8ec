import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { emit } from "../domain/words/Log.ts"
import { supervised } from "../domain/words/Loop.ts"
import type { Sharing } from "../engine/http/BoundSocket.ts"
import type { Listener } from "../engine/http/Listener.ts"
import { bind } from "../engine/http/Listener.ts"
import type { Loops } from "../engine/Loops.ts"
import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { Kept } from "./Graph.ts"

/** An app that a generation serves, and its address. Serving it needs `R`. */
export interface Surface<R = Kept> {
  readonly name: keyof typeof bindFailures
  readonly bindAddress: string
  /** Who else accepts connections at the address. */
  readonly sharing: Sharing
  /** The configuration key of the address. */
  readonly key: string
  readonly maxConnections: number
  /** Returns when the first certificate of the listener's chain expires, or undefined if there is no TLS. */
  readonly notAfter: () => Date | undefined
  /** Serves the surface on its socket from now on. */
  readonly serve: (listener: Listener) => Effect.Effect<void, never, R>
  /** Logs that a new socket is served. */
  readonly listening: (address: string) => Effect.Effect<void>
}

/** A socket that the process has bound, and the configured address for which it was bound. */
interface Held {
  readonly listener: Listener
  readonly bindAddress: string
  readonly scope: Scope.Closeable
}

/** The sockets that a generation needs. They are bound but not served yet. */
export interface Prepared<R = Kept> {
  /** How many of the existing listeners have a new address. */
  readonly rebound: number
  /** Serves the generation. Sockets that are no longer needed finish their requests and close in the background. */
  readonly publish: Effect.Effect<void, never, R | Loops>
  /** Closes the sockets that were bound but are not going to be used. */
  readonly abandon: Effect.Effect<void>
}

const bindFailures = {
  acme: "server_socket_bind_failed",
  admin: "admin_socket_bind_failed",
  metrics: "metrics_socket_bind_failed",
  publish: "publish_socket_bind_failed"
} as const

const bound = Effect.fnUntraced(function*(
  { bindAddress, key, maxConnections, name, sharing }: Omit<Surface, "serve">
) {
  const { host, port } = parseBindAddress(bindAddress) ?? { host: "", port: 0 } // the address was checked with the configuration
  const scope = yield* Scope.make()
  const listener = yield* Scope.provide(bind({ name, host, port, sharing, maxConnections }), scope).pipe(
    Effect.catchTag("BindFailed", (error) => {
      return Effect.andThen(
        emit(bindFailures[name], { address: error.address, error: error.detail }),
        new CommandFailed({ code: 1, message: `${key}: ${error.message}` })
      )
    })
  )
  return { listener, bindAddress, scope } satisfies Held
})

const release = ({ scope }: Held) => Scope.close(scope, Exit.void)

/**
 * Makes the sockets of a process, for the lifetime of the scope. The sockets belong to the scope, not to a generation.
 * An unchanged address is not bound again. A changed address is bound before the new generation is published, and the
 * old socket is closed afterwards (docs/contribute/decisions/process.md, "Reload").
 */
export const make = Effect.gen(function*() {
  const held = new Map<Surface["name"], Held>()
  const scope = yield* Effect.scope
  yield* Effect.addFinalizer(() => Effect.forEach([...held.values()], release, { discard: true }))

  const closeBehind = (old: Held, told: Effect.Effect<void>) =>
    Scope.provide(
      supervised(
        "listener_closed",
        Effect.uninterruptible(old.listener.drain.pipe(Effect.andThen(release(old)), Effect.andThen(told)))
      ),
      scope
    )

  /** Binds the sockets that are missing. If one of them cannot be bound, nothing changes. */
  const prepare = <R>(surfaces: ReadonlyArray<Surface<R>>): Effect.Effect<Prepared<R>, CommandFailed, Loops> =>
    Effect.gen(function*() {
      const fresh = new Map<Surface["name"], Held>()
      const abandon = Effect.suspend(() => Effect.forEach([...fresh.values()], release, { discard: true }))
      for (const surface of surfaces) {
        if (held.get(surface.name)?.bindAddress === surface.bindAddress) continue
        fresh.set(surface.name, yield* Effect.onError(bound(surface), () => abandon))
      }
      const publish = Effect.gen(function*() {
        for (const { listening, name, serve } of surfaces) {
          const [old, moved] = [held.get(name), fresh.get(name)]
          const current = moved ?? old
          if (current === undefined) continue
          yield* serve(current.listener)
          if (moved === undefined) continue
          held.set(name, moved)
          yield* listening(moved.listener.address)
          if (old !== undefined) yield* closeBehind(old, Effect.void)
        }
        for (const [name, old] of held) {
          if (surfaces.some((surface) => surface.name === name)) continue
          held.delete(name)
          const { address } = old.listener
          yield* closeBehind(old, emit("server_listener_stopped", { listener: name, address }))
        }
      })
      return { rebound: [...fresh.keys()].filter((name) => held.has(name)).length, publish, abandon }
    })

  /** Lets the running requests finish within their deadline. Returns how many requests were cut off. */
  const drain = Effect.suspend(() =>
    Effect.map(
      Effect.forEach([...held.values()], ({ listener }) => listener.drain, { concurrency: "unbounded" }),
      (cut) => cut.reduce((sum, one) => sum + one, 0)
    )
  )

  return { prepare, drain }
})
