import { sha256 } from "../crypto/Digest.ts"
import { clientAddress, isOneHost } from "../engine/net/Peer.ts"

const groupBits = 16n

/** The first groups of an IPv6 address, as a range. */
const rangeOf = (value: bigint, groups: number): string => {
  const shown = Array.from({ length: groups }, (_, at) => (value >> (groupBits * BigInt(7 - at))) & 0xffffn)
  return `${shown.map((group) => group.toString(16)).join(":")}::/${groups * Number(groupBits)}`
}

/**
 * The key under which attempts of an address are counted. For IPv6 it is the /64, because a client with one address has
 * the whole network. An IPv6 address that stands for an IPv4 host counts as the IPv4 address.
 */
export const addressKey = (address: string): string => {
  const read = clientAddress(address)
  if (read === undefined) return address.slice(0, 100)
  return isOneHost(read) ? read.text : rangeOf(read.value, 4)
}

/**
 * The key under which attempts of the network around an IPv6 address are counted, its /48: one site has thousands of /64s.
 * Undefined for IPv4, where the hosts of a network belong to different people.
 */
export const networkKey = (address: string): string | undefined => {
  const read = clientAddress(address)
  return read === undefined || isOneHost(read) ? undefined : rangeOf(read.value, 3)
}

/** The key under which codes of an operator's second factor are counted, from addresses that are not known. */
export const mfaKey = (userId: string): string => `mfa:${userId}`

/** The key under which codes of an operator's second factor are counted that come from an address that is known. */
export const knownMfaKey = (userId: string, address: string): string => `${mfaKey(userId)}@${addressKey(address)}`

/**
 * Reports that an operator gets once in a window: attempts that are used up, a wrong code, a wrong password in a
 * session.
 */
export type ToldOnce = "lockout" | "code" | "step_up"

/** The key under which it is counted that an operator was told. */
export const toldKey = (told: ToldOnce, userId: string): string =>
  told === "lockout" ? `told:${userId}` : `told:${told}:${userId}`

/** How many hexadecimal digits tell names apart that no operator has, which bounds the rows of them to 65,536. */
const nameDigits = 4

/** Whether an address is one of those that an operator has signed in from lately. */
export const isKnownAddress = (known: ReadonlyArray<string>, address: string): boolean =>
  known.some((one) => addressKey(one) === addressKey(address))

/** The key under which wrong passwords for an operator are counted, from addresses that are not known. */
export const operatorKey = (userId: string): string => `operator:${userId}`

/** The key under which wrong passwords for an operator are counted that come from an address that is known. */
export const knownKey = (userId: string, address: string): string => `${operatorKey(userId)}@${addressKey(address)}`

/** The key under which wrong passwords for a name are counted that no operator has. */
export const nameKey = (typed: string): string => `name:${sha256(typed.trim().toLowerCase()).slice(0, nameDigits)}`
