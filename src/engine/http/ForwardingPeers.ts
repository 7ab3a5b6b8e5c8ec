import type { IncomingMessage } from "node:http"
import type { Comparable } from "../net/Address.ts"
import { comparable } from "../net/Address.ts"

/** A peer that names this many clients counts as a proxy. A single client would hardly name so many. */
const manyClients = 16

/**
 * The highest number of peers that are watched or have been reported. The number is limited because an attacker with
 * many addresses could name clients from each of them.
 */
const mostPeers = 64

/** Names of clients are compared only up to this length. */
const longestName = 64

/**
 * Finds peers that name many clients in a header, as proxies do, but are not configured as proxies. All clients behind
 * such a peer share the limits of a single client.
 */
export class ForwardingPeers {
  /** The clients that each peer has named. If a peer has been reported, its value is undefined. */
  readonly #named = new Map<string, Set<string> | undefined>()

  /**
   * Notes the client that a request names in this header. Returns the peer if the peer must be reported now. Each peer
   * is reported only once.
   */
  told(
    { headers, socket }: IncomingMessage,
    header: string,
    isProxy: (address: Comparable) => boolean
  ): string | undefined {
    const peer = comparable(socket.remoteAddress ?? "")
    if (peer === undefined || isProxy(peer)) return undefined
    return this.note(peer.text, String(headers[header])) ? peer.text : undefined
  }

  /** Notes a client that a peer has named. Returns whether the peer must be reported now. */
  note(peer: string, client: string): boolean {
    const names = this.#named.has(peer) ? this.#named.get(peer) : this.#watch(peer)
    if (names === undefined) return false
    names.add(client.slice(0, longestName))
    if (names.size < manyClients) return false
    this.#named.set(peer, undefined)
    return true
  }

  #watch(peer: string): Set<string> | undefined {
    if (this.#named.size >= mostPeers) {
      const unsuspected = [...this.#named].find(([, names]) => names !== undefined)
      if (unsuspected === undefined) return undefined
      this.#named.delete(unsuspected[0])
    }
    const names = new Set<string>()
    this.#named.set(peer, names)
    return names
  }
}
