import { once } from "node:events"
import type { Socket } from "node:net"
import { connect, createServer } from "node:net"
import { freePort } from "./Ports.ts"

/**
 * What happens to some octets: they are passed on or dropped, or both sides of the connection are reset before or after
 * them.
 */
export type Fate = "pass" | "drop" | "reset before" | "reset after"

/** A TCP relay on loopback that can break connections and change its target. */
export interface Forwarder {
  readonly port: number
  /** The target of connections that are made from now on. */
  target: number
  /** Called for each piece that a client sends. If this is absent, everything is passed on. */
  judge: ((sent: Buffer) => Fate) | undefined
  /** The number of open connections. */
  readonly open: () => number
  /** The number of connections that have been reset. */
  readonly resets: () => number
  /** Resets every open connection, in both directions. */
  readonly resetAll: () => void
  readonly stop: () => Promise<void>
}

/** Starts a relay to a port of 127.0.0.1. */
export const startForwarder = async (target: number): Promise<Forwarder> => {
  const pairs = new Map<Socket, Socket>()
  let resets = 0

  const reset = (inner: Socket, outer: Socket) => {
    if (!pairs.delete(inner)) return
    resets++
    inner.resetAndDestroy()
    outer.resetAndDestroy()
  }

  const server = createServer({ noDelay: true }, (inner) => {
    const outer = connect({ port: forwarder.target, host: "127.0.0.1", noDelay: true })
    pairs.set(inner, outer)
    let isDoomed = false
    inner.on("data", (sent: Buffer) => {
      const fate = isDoomed ? "pass" : forwarder.judge?.(sent) ?? "pass"
      if (fate === "drop") return
      if (fate === "reset before") return reset(inner, outer)
      if (fate === "reset after") isDoomed = true
      if (!outer.write(sent)) {
        inner.pause()
        outer.once("drain", () => inner.resume())
      }
    })
    outer.on("data", (said: Buffer) => {
      // The answer has arrived here, so that the request took effect, but the client does not learn of it.
      if (isDoomed) return reset(inner, outer)
      if (!inner.write(said)) {
        outer.pause()
        inner.once("drain", () => outer.resume())
      }
    })
    for (const [one, other] of [[inner, outer], [outer, inner]] as const) {
      one.on("error", () => other.destroy())
      one.on("end", () => other.end())
      one.on("close", () => {
        pairs.delete(inner)
        other.destroy()
      })
    }
  })

  const forwarder: Forwarder = {
    port: await freePort(),
    target,
    judge: undefined,
    open: () => pairs.size,
    resets: () => resets,
    resetAll: () => {
      for (const [inner, outer] of pairs) reset(inner, outer)
    },
    stop: async () => {
      const closed = once(server, "close")
      server.close()
      for (const [inner, outer] of pairs) {
        inner.destroy()
        outer.destroy()
      }
      await closed
    }
  }
  server.listen(forwarder.port, "127.0.0.1")
  await once(server, "listening")
  return forwarder
}

/** Returns the same URL, but through a relay. */
export const through = (url: string, { port }: { readonly port: number }): string => {
  const parsed = new URL(url)
  parsed.port = `${port}`
  return parsed.href
}
