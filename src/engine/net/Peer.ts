import type { Comparable } from "./Address.ts"
import { comparable, embedded, makeAddressSet } from "./Address.ts"

/**
 * The unit in which shares of a bounded resource are counted: one host, and the network around it, because one client
 * may have many addresses. An IPv4 host is one address, and its network a /24. An IPv6 host is a /64, because it may
 * use any address in it, and its network a /48. An IPv6 address that stands for an IPv4 host counts as that host
 * ({@link clientAddress}).
 */
export interface Peer {
  readonly host: string
  readonly network: string
}

/**
 * Ranges whose addresses are routed to the IPv4 host that they embed: 6to4 (RFC 3056), where one host has a /48, and
 * NAT64 (RFC 6052) and Teredo (RFC 4380), where all hosts share one /64. ISATAP is left out, because the owner of a
 * network chooses the rest of its addresses freely.
 */
const isCarrier = makeAddressSet(["2002::/16", "64:ff9b::/96", "2001::/32"])

/** Local-use NAT64 (RFC 8215). An address does not show which of its bits are those of the IPv4 host. */
const isLocallyTranslated = makeAddressSet(["64:ff9b:1::/48"])

/** The address that stands for a client where clients are counted: the IPv4 host behind an IPv6 address, or the address itself. */
export const clientAddress = (address: string): Comparable | undefined => {
  const read = comparable(address)
  if (read === undefined || read.width === 32 || !isCarrier(read)) return read
  return comparable(embedded(read.text).at(-1) ?? read.text)
}

/** Whether an address stands for one host alone, which has no other one beside it. */
export const isOneHost = (address: Comparable): boolean => address.width === 32 || isLocallyTranslated(address)

/** The value of a translated address without its last octet: whatever follows the IPv4 address is zero (RFC 6052 section 2.2). */
const aroundTranslated = (value: bigint): bigint => {
  let rest = value
  while ((rest & 0xffn) === 0n) rest >>= 8n
  return rest >> 8n
}

/** The peer that an address belongs to. A text that is not an address is a peer of its own. */
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
