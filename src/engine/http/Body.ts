import * as Effect from "effect/Effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { currentPeer } from "../net/FairSemaphore.ts"
import { Holdings } from "../net/Peer.ts"
import { millisOf } from "../Time.ts"
import { linger } from "./Connections.ts"
import type { Shed } from "./HttpRefused.ts"
import { BodyTooLarge, BodyTooSlow, shed } from "./HttpRefused.ts"

const bodyTimeoutMillis = 10_000

interface Reader {
  readonly endsAt: number
  readonly expire: () => void
  /** Ends this read to make room for a peer that has fewer reads. */
  readonly shed: () => void
}

/**
 * The highest number of octets in one body, and the highest number of bodies that are read at the same time. Requests
 * beyond the second limit are shed.
 */
export interface BodyLimits {
  readonly maxBodyBytes: number
  readonly maxBodies: number
}

/**
 * Reads request bodies into memory. Limits their octets, their time, and how many are read at the same time. The peers
 * share the places for reads.
 */
export class Body {
  readonly #readers = new Set<Reader>()
  readonly #shares = new Holdings<Reader>()

  /**
   * Fails every read whose time is up. All reads have the same timeout, so the oldest read is always the first to be
   * late.
   */
  expire(now: number): void {
    for (const reader of this.#readers) {
      if (reader.endsAt > now) break
      reader.expire()
    }
  }

  /**
   * Reads the body of a message. The read counts in the share of the fiber's peer. If the announced length of a body is
   * too large, the body is refused before it is read. If the highest number of bodies is already being read, one body
   * of the peer with the most reads is shed.
   */
  read(
    message: IncomingMessage,
    response: ServerResponse,
    { maxBodies, maxBodyBytes }: BodyLimits
  ): Effect.Effect<Buffer, BodyTooLarge | BodyTooSlow | Shed> {
    return Effect.withFiber((fiber): ReturnType<Body["read"]> => {
      const peer = fiber.getRef(currentPeer)
      if (Number(message.headers["content-length"] ?? 0) > maxBodyBytes) return this.#tooLarge(message, response)
      if (this.#shares.size >= maxBodies) {
        const victim = this.#shares.victimOf(peer)
        if (victim === undefined) return shed
        victim.shed()
      }
      if (message.headers.expect?.toLowerCase() === "100-continue") response.writeContinue()
      return Effect.callback<Buffer, BodyTooLarge | BodyTooSlow | Shed>((resume) => {
        const chunks: Array<Buffer> = []
        let size = 0
        const stop = () => {
          this.#readers.delete(reader)
          this.#shares.remove(peer, reader)
          message.off("data", onData).off("end", onEnd).off("close", onClose)
        }
        const finish = (result: Effect.Effect<Buffer, BodyTooLarge | BodyTooSlow | Shed>) => {
          stop()
          resume(result)
        }
        const onData = (chunk: Buffer) => {
          size += chunk.length
          if (size > maxBodyBytes) return finish(this.#tooLarge(message, response))
          chunks.push(chunk)
        }
        const onEnd = () => finish(Effect.succeed(Buffer.concat(chunks)))
        const onClose = () => finish(Effect.interrupt)
        const give = (up: Effect.Effect<never, BodyTooSlow | Shed>) => {
          abandon(message, response)
          finish(up)
        }
        const reader: Reader = {
          endsAt: millisOf(fiber) + bodyTimeoutMillis,
          expire: () => give(Effect.fail(new BodyTooSlow())),
          shed: () => give(shed)
        }
        this.#shares.add(peer, reader)
        this.#readers.add(reader)
        message.on("data", onData).on("end", onEnd).on("close", onClose)
        return Effect.sync(stop)
      })
    })
  }

  #tooLarge(message: IncomingMessage, response: ServerResponse): Effect.Effect<never, BodyTooLarge> {
    return Effect.suspend(() => {
      abandon(message, response)
      return Effect.fail(new BodyTooLarge())
    })
  }
}

/**
 * Must be called before the answer to a request if its body has perhaps not been read to its end; see {@link abandon}.
 */
export const leaveUnread = (message: IncomingMessage, response: ServerResponse): void => {
  const { "content-length": length, "transfer-encoding": coding } = message.headers
  if (!message.complete && (coding !== undefined || Number(length ?? 0) > 0)) abandon(message, response)
}

// The connection ends with the answer. If it were closed while octets are unread, it would be reset, and a client that
// is still sending would lose the answer. So for a while the rest of the body is read and discarded.
const abandon = (message: IncomingMessage, response: ServerResponse): void => {
  const { socket } = message
  if (response.hasHeader("connection")) return
  response.setHeader("connection", "close")
  socket.destroySoon = () => void socket.end()
  response.once("finish", () => linger(socket))
  message.resume()
}
