import { comparable } from "./Address.ts"

/**
 * The unit in which shares of a bounded resource are counted: one host, and the network around it, because one client
 * may have many addresses. An IPv4 host is one address, and its network a /24. An IPv6 host is a /64, because it may
 * use any address in it, and its network a /48.
 */
export interface Peer {
  readonly host: string
  readonly network: string
}

/** The peer that an address belongs to. A text that is not an address is a peer of its own. */
export const peerOf = (address: string): Peer => {
  if (!address.includes(":")) return { host: address, network: address.slice(0, address.lastIndexOf(".")) }
  const read = comparable(address)
  if (read === undefined) return { host: address, network: address }
  if (read.width === 32) return peerOf(read.text)
  return { host: `${(read.value >> 64n).toString(16)}/64`, network: `${(read.value >> 80n).toString(16)}/48` }
}
