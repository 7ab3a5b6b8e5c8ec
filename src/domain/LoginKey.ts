import { sha256 } from "../crypto/Digest.ts"
import { clientAddress, isOneHost } from "../engine/net/Peer.ts"

const groupBits = 16n

/** Returns the first groups of an IPv6 address as a range. */
const rangeOf = (value: bigint, groups: number): string => {
  const shown = Array.from({ length: groups }, (_, at) => (value >> (groupBits * BigInt(7 - at))) & 0xffffn)
  return `${shown.map((group) => group.toString(16)).join(":")}::/${groups * Number(groupBits)}`
}

/**
 * Returns the key under which attempts from an address are counted. For IPv6, the key is the /64 network, because a
 * client with one address usually has the whole network. An IPv6 address that represents an IPv4 host is counted as the
 * IPv4 address.
 */
export const addressKey = (address: string): string => {
  const read = clientAddress(address)
  if (read === undefined) return address.slice(0, 100)
  return isOneHost(read) ? read.text : rangeOf(read.value, 4)
}

/**
 * Returns the key under which attempts from the /48 network of an IPv6 address are counted, because one site has
 * thousands of /64 networks. Returns undefined for IPv4, because the hosts of an IPv4 network belong to different
 * people.
 */
export const networkKey = (address: string): string | undefined => {
  const read = clientAddress(address)
  return read === undefined || isOneHost(read) ? undefined : rangeOf(read.value, 3)
}

/** Returns the key under which second-factor codes of an operator from unknown addresses are counted. */
export const mfaKey = (userId: string): string => `mfa:${userId}`

/** Returns the key under which second-factor codes of an operator from a known address are counted. */
export const knownMfaKey = (userId: string, address: string): string => `${mfaKey(userId)}@${addressKey(address)}`

/**
 * The reports that an operator receives at most once in a window: no attempts are left, a wrong code, a wrong password
 * in a session.
 */
export type ToldOnce = "lockout" | "code" | "step_up"

/** Returns the key under which reports to an operator are counted. */
export const toldKey = (told: ToldOnce, userId: string): string =>
  told === "lockout" ? `told:${userId}` : `told:${told}:${userId}`

/**
 * A name that no operator has is identified by this many hexadecimal digits of its hash, so that there are at most
 * 65,536 rows for such names.
 */
const nameDigits = 4

/** Returns whether the operator has recently signed in from an address. */
export const isKnownAddress = (known: ReadonlyArray<string>, address: string): boolean =>
  known.some((one) => addressKey(one) === addressKey(address))

/** Returns the key under which wrong passwords for an operator from unknown addresses are counted. */
export const operatorKey = (userId: string): string => `operator:${userId}`

/** Returns the key under which wrong passwords for an operator from a known address are counted. */
export const knownKey = (userId: string, address: string): string => `${operatorKey(userId)}@${addressKey(address)}`

/** Returns the key under which wrong passwords are counted for a name that no operator has. */
export const nameKey = (typed: string): string => `name:${sha256(typed.trim().toLowerCase()).slice(0, nameDigits)}`
