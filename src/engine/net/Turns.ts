import type { Peer } from "./Peer.ts"

const nobody: Peer = { host: "", network: "" }

/**
 * What waits for its turn, without a limit. Each network with something waiting has a turn in each round, and the hosts
 * of a network take its turns one after another. So it does not matter to a peer how much another peer has waiting.
 * What belongs to no peer has turns like a network.
 */
export class Turns<T extends object> {
  #size = 0
  /** By network and host, in the order of their turns. A network or host that had a turn moves to the end. */
  readonly #networks = new Map<string, Map<string, Array<T>>>()

  /** How much is waiting. */
  get size(): number {
    return this.#size
  }

  /** Adds what waits last of its host. */
  add(peer: Peer | undefined, one: T): void {
    const { host, network } = peer ?? nobody
    const hosts = this.#networks.get(network) ?? new Map<string, Array<T>>()
    const own = hosts.get(host) ?? []
    own.push(one)
    this.#networks.set(network, hosts.set(host, own))
    this.#size++
  }

  /** Removes what no longer waits. If it does not wait, this has no effect. */
  remove(peer: Peer | undefined, one: T): void {
    const { host, network } = peer ?? nobody
    const hosts = this.#networks.get(network)
    const own = hosts?.get(host)
    const at = own?.indexOf(one) ?? -1
    if (hosts === undefined || own === undefined || at < 0) return
    own.splice(at, 1)
    this.#size--
    if (own.length === 0) hosts.delete(host)
    if (hosts.size === 0) this.#networks.delete(network)
  }

  /** Takes what is next, `count` or as many as there are. */
  take(count: number): ReadonlyArray<T> {
    const taken: Array<T> = []
    // The loop also comes to the networks that it has moved to the end.
    for (const [network, hosts] of this.#networks) {
      if (taken.length === count) break
      const [next] = hosts
      if (next === undefined) continue
      const [host, own] = next
      const one = own.shift()
      if (one !== undefined) taken.push(one)
      hosts.delete(host)
      if (own.length > 0) hosts.set(host, own)
      this.#networks.delete(network)
      if (hosts.size > 0) this.#networks.set(network, hosts)
    }
    this.#size -= taken.length
    return taken
  }
}
