import { comparable } from "../kernel/net/Address.ts"

/**
 * The key under which attempts of an address are counted. For IPv6 it is the /64, because whoever has one address has
 * the whole network. An IPv4 address inside an IPv6 address counts as the IPv4 address.
 */
export const addressKey = (address: string): string => {
  const read = comparable(address)
  if (read === undefined) return address.slice(0, 100)
  if (read.width === 32) return read.text
  const network = (read.value >> 64n).toString(16).padStart(16, "0")
  return `${[0, 4, 8, 12].map((at) => network.slice(at, at + 4).replace(/^0{1,3}/, "")).join(":")}::/64`
}

/** The key under which codes of an operator's second factor are counted, for all sessions and addresses together. */
export const mfaKey = (userId: string): string => `mfa:${userId}`

/** What an operator is told under, once in a window, of attempts that are used up. */
export const lockoutKey = (userId: string): string => `told:${userId}`
