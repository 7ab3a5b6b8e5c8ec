import { comparable } from "../kernel/net/Address.ts"

/**
 * What attempts of an address are counted under: itself or, as whoever has one IPv6 address has all of its network, its /64.
 * An IPv4 address within an IPv6 one is the IPv4 address.
 */
export const addressKey = (address: string): string => {
  const read = comparable(address)
  if (read === undefined) return address.slice(0, 100)
  if (read.width === 32) return read.text
  const network = (read.value >> 64n).toString(16).padStart(16, "0")
  return `${[0, 4, 8, 12].map((at) => network.slice(at, at + 4).replace(/^0{1,3}/, "")).join(":")}::/64`
}

/** What codes of an operator's second factor are counted under, whatever sessions and addresses they come by. */
export const mfaKey = (userId: string): string => `mfa:${userId}`
