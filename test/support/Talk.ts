import { Effect } from "effect"
import type { Scope } from "effect"
import type { Socket } from "node:net"
import { connect } from "node:net"

/** A client that sends texts exactly, byte by byte, and waits for answers. */
export interface Talk {
  readonly socket: Socket
  /** Sends a text. Completes when the text was passed to the kernel or the connection is gone. */
  readonly send: (text: string) => Effect.Effect<void>
  /** Everything that was received, once it matches. */
  readonly heard: (pattern: RegExp) => Effect.Effect<string>
  /** Everything that was received, once the connection has closed. */
  readonly ended: Effect.Effect<string>
  /** Closes the connection without sending anything more. */
  readonly leave: Effect.Effect<void>
}

/** Opens a connection to a loopback port, by default without TLS, which closes with the scope. */
export const talk = (
  port: number,
  open: () => Socket = () => connect(port, "127.0.0.1")
): Effect.Effect<Talk, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(Effect.sync(open), (socket) => Effect.sync(() => socket.destroy())),
    (socket) => {
      let text = ""
      let isClosed = false
      const waiting = new Set<() => void>()
      const changed = () => waiting.forEach((look) => look())
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        changed()
      })
      socket.on("error", () => {})
      socket.on("close", () => {
        isClosed = true
        changed()
      })
      const once = (holds: () => boolean): Effect.Effect<string> =>
        Effect.callback<string>((resume) => {
          const look = () => {
            if (!holds() && !isClosed) return
            waiting.delete(look)
            resume(holds() ? Effect.succeed(text) : Effect.die(new Error(`closed, having said: ${text}`)))
          }
          waiting.add(look)
          look()
          return Effect.sync(() => waiting.delete(look))
        })
      return {
        socket,
        send: (more) => Effect.callback((resume) => void socket.write(more, "latin1", () => resume(Effect.void))),
        heard: (pattern) => once(() => pattern.test(text)),
        ended: once(() => isClosed),
        leave: Effect.sync(() => void socket.destroy())
      }
    }
  )
