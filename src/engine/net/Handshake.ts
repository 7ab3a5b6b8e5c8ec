import type { Socket } from "node:net"
import { Duplex } from "node:stream"

/**
 * Octets that a peer may send before its TLS handshake is over. Most of them are its certificates, and OpenSSL checks every
 * signature among them in this thread, whether or not the peer has to be trusted: with keys made for it, a hundred kilobytes
 * of them take half a second.
 */
const longestHandshake = 16_384

/** A connection whose peer may send no more than {@link longestHandshake} until {@link over} is called. */
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

  /** The handshake is over: what follows is bounded by its reader. */
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
