import { comparable } from "./Address.ts"

/**
 * Whom a share of something bounded is counted for: one host, and the network around it, for whoever has many addresses.
 * An IPv4 host is its address in its /24. An IPv6 host has a /64, since it may take any address in there, in a /48.
 */
export interface Peer {
  readonly host: string
  readonly network: string
}

/** The peer an address belongs to; text that is no address is a peer of its own. */
export const peerOf = (address: string): Peer => {
  if (!address.includes(":")) return { host: address, network: address.slice(0, address.lastIndexOf(".")) }
  const read = comparable(address)
  if (read === undefined) return { host: address, network: address }
  if (read.width === 32) return peerOf(read.text)
  return { host: `${(read.value >> 64n).toString(16)}/64`, network: `${(read.value >> 80n).toString(16)}/48` }
}
