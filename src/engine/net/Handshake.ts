import type { Socket } from "node:net"
import { Duplex } from "node:stream"

/**
 * The highest number of octets that a peer may send before its TLS handshake is over. Most of these octets are
 * certificates. OpenSSL checks every signature in them in this thread, whether or not the peer must be trusted. With
 * keys that were made to be slow to check, a hundred kilobytes of certificates take half a second.
 */
const longestHandshake = 16_384

/** A connection whose peer may send at most {@link longestHandshake} octets until {@link over} is called. */
export class HandshakeSocket extends Duplex {
  readonly #socket: Socket
  #left = longestHandshake

  constructor(socket: Socket) {
    super()
    this.#socket = socket
    socket.on("data", (chunk: Buffer) => {
      this.#left -= chunk.length
      if (this.#left < 0) {
        this.destroy(new Error(`more than ${longestHandshake} octets before the end of the handshake`))
      } else if (!this.push(chunk)) socket.pause()
    })
    socket.on("end", () => this.push(null))
    socket.on("error", (cause) => this.destroy(cause))
    socket.on("close", () => this.destroy())
  }

  /** Reports that the handshake is over. From then on, the reader of the connection limits what it reads. */
  readonly over = (): void => {
    this.#left = Number.POSITIVE_INFINITY
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
