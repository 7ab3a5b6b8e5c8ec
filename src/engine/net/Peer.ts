import type { Comparable } from "./Address.ts"
import { comparable, embedded, makeAddressSet } from "./Address.ts"

/**
 * The unit by which shares of a limited resource are counted: a host, and the network around it, because one client may
 * have many addresses. An IPv4 host is one address, and its network is a /24. An IPv6 host is a /64, because it may use
 * any address in this range, and its network is a /48. An IPv6 address that represents an IPv4 host counts as that host
 * ({@link clientAddress}).
 */
export interface Peer {
  readonly host: string
  readonly network: string
}

/**
 * The ranges whose addresses are routed to the IPv4 host that they embed: 6to4 (RFC 3056), NAT64 (RFC 6052) and Teredo
 * (RFC 4380). Counting by /64 would be wrong for them: one 6to4 host has a whole /48, and in the other two ranges many
 * hosts share one /64. ISATAP is left out: the owner of a /64 chooses the other 64 bits, and could pretend to be any
 * IPv4 host.
 */
const isCarrier = makeAddressSet(["2002::/16", "64:ff9b::/96", "2001::/32"])

/** Local-use NAT64 (RFC 8215). Such an address does not show which of its bits belong to the IPv4 host. */
const isLocallyTranslated = makeAddressSet(["64:ff9b:1::/48"])

/**
 * Returns the address by which a client is counted. If an IPv6 address represents an IPv4 host, this is the address of
 * that host.
 */
export const clientAddress = (address: string): Comparable | undefined => {
  const read = comparable(address)
  if (read === undefined || read.width === 32 || !isCarrier(read)) return read
  return comparable(embedded(read.text).at(-1) ?? read.text)
}

/** Returns whether an address is the only address of one host. */
export const isOneHost = (address: Comparable): boolean => address.width === 32 || isLocallyTranslated(address)

/**
 * Returns the value of a translated address without the last octet of its IPv4 address. All bits after the IPv4 address
 * are zero (RFC 6052 section 2.2).
 */
const aroundTranslated = (value: bigint): bigint => {
  let rest = value
  while ((rest & 0xffn) === 0n) rest >>= 8n
  return rest >> 8n
}

/** Returns the peer to which an address belongs. A text that is not an address is a peer of its own. */
export const peerOf = (address: string): Peer => {
  if (!address.includes(":")) return { host: address, network: address.slice(0, address.lastIndexOf(".")) }
  const read = clientAddress(address)
  if (read === undefined) return { host: address, network: address }
  if (read.width === 32) return peerOf(read.text)
  const { text, value } = read
  return isLocallyTranslated(read)
    ? { host: text, network: `${aroundTranslated(value).toString(16)}/nat64` }
    : { host: `${(value >> 64n).toString(16)}/64`, network: `${(value >> 80n).toString(16)}/48` }
}

interface Network<T> {
  size: number
  readonly hosts: Map<string, Set<T>>
}

/** Returns the largest entry, or the oldest one if several are largest. The entry with the name `but` is ignored. */
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
 * Counts what peers hold of a limited resource, and chooses a victim when nothing is left. The victim is the newest
 * holding of the host that holds most, in the network that holds most. So a peer that holds little can always get
 * something, however much others hold, and the peer that holds most is refused. If all peers hold the same amount, the
 * peer that came first loses its newest holding.
 *
 * A holding without a peer (`undefined`), for example that of a proxy for many clients, is counted but is never a
 * victim.
 */
export class Holdings<T> {
  #size = 0
  readonly #withoutPeer = new Set<T>()
  readonly #networks = new Map<string, Network<T>>()

  /** The number of holdings. */
  get size(): number {
    return this.#size
  }

  /** Counts a holding. */
  add(peer: Peer | undefined, holding: T): void {
    this.#size++
    if (peer === undefined) return void this.#withoutPeer.add(holding)
    const around = this.#networks.get(peer.network) ?? { size: 0, hosts: new Map<string, Set<T>>() }
    const own = around.hosts.get(peer.host) ?? new Set()
    this.#networks.set(peer.network, around)
    around.hosts.set(peer.host, own)
    around.size++
    own.add(holding)
  }

  /** Releases a holding of a peer. If the holding has already been released, this has no effect. */
  remove(peer: Peer | undefined, holding: T): void {
    const around = peer && this.#networks.get(peer.network)
    const own = peer === undefined ? this.#withoutPeer : around?.hosts.get(peer.host)
    if (own?.delete(holding) !== true) return
    this.#size--
    if (peer === undefined || around === undefined) return
    around.size--
    if (own.size === 0) around.hosts.delete(peer.host)
    if (around.size === 0) this.#networks.delete(peer.network)
  }

  /** Returns the holding that is released for a newcomer, or `undefined` if the newcomer itself must be refused. */
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
