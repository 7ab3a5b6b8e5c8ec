import type { Peer } from "./Peer.ts"

interface Network<T> {
  size: number
  readonly hosts: Map<string, Set<T>>
}

/** The entry with the greatest size; of several, the oldest. The entry named `but` is left out. */
const greatest = <V>(
  all: ReadonlyMap<string, V>,
  sizeOf: (one: V) => number,
  but: string | undefined
): { readonly one: V | undefined; readonly size: number } => {
  let found: { readonly one: V | undefined; readonly size: number } = { one: undefined, size: 0 }
  for (const [name, one] of all) {
    const size = sizeOf(one)
    if (size > found.size && name !== but) found = { one, size }
  }
  return found
}

const newest = <T>(holdings: ReadonlySet<T> | undefined): T | undefined => {
  let last: T | undefined
  for (const one of holdings ?? []) last = one
  return last
}

/**
 * Counts what peers hold of a limited resource, and chooses the victim when nothing is left. The victim is the newest
 * holding of the host that holds most, in the network that holds most. So a peer that holds little always gets some,
 * however much others hold, and the peer that holds most is refused. If all hold the same, the peer that came first
 * loses its newest holding.
 *
 * A holding without a peer (`undefined`), such as that of a proxy for many clients, is counted and is never a victim.
 */
export class Holdings<T> {
  #size = 0
  readonly #networks = new Map<string, Network<T>>()

  /** How many are held. */
  get size(): number {
    return this.#size
  }

  /** Counts a holding. Answers the function that releases it; a second call of that function has no effect. */
  add(peer: Peer | undefined, holding: T): () => void {
    this.#size++
    const leave = peer === undefined ? () => {} : this.#addFor(peer, holding)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#size--
      leave()
    }
  }

  #addFor({ host, network }: Peer, holding: T): () => void {
    const around = this.#networks.get(network) ?? { size: 0, hosts: new Map<string, Set<T>>() }
    const own = around.hosts.get(host) ?? new Set()
    this.#networks.set(network, around)
    around.hosts.set(host, own)
    around.size++
    own.add(holding)
    return () => {
      around.size--
      own.delete(holding)
      if (own.size === 0) around.hosts.delete(host)
      if (around.size === 0) this.#networks.delete(network)
    }
  }

  /** The holding to release for a newcomer; `undefined` if the newcomer itself is to be refused. */
  victimOf(newcomer: Peer | undefined): T | undefined {
    const own = newcomer === undefined ? undefined : this.#networks.get(newcomer.network)
    const other = greatest(this.#networks, ({ size }) => size, newcomer?.network)
    if (newcomer === undefined || own === undefined || own.size < other.size) {
      return this.#newestIn(other.one, undefined)
    }
    return this.#newestIn(own, newcomer.host)
  }

  #newestIn(network: Network<T> | undefined, newcomer: string | undefined): T | undefined {
    if (network === undefined) return undefined
    const { one, size } = greatest(network.hosts, (held) => held.size, newcomer)
    const own = newcomer === undefined ? 0 : network.hosts.get(newcomer)?.size ?? 0
    return own < size ? newest(one) : undefined
  }
}
