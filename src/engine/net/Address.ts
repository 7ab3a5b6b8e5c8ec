import * as Array from "effect/Array"
import * as Brand from "effect/Brand"
import * as Option from "effect/Option"
import * as Result from "effect/Result"

/** An IPv4 or IPv6 address in canonical text (dotted quad; RFC 5952), without zone, brackets or port. */
export type IpAddress = string & Brand.Brand<"IpAddress">

const address = Brand.nominal<IpAddress>()

interface Bits {
  readonly width: 32 | 128
  readonly value: bigint
}

const bitsOfQuad = (text: string): bigint | undefined => {
  const parts = text.split(".")
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255)) {
    return undefined
  }
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

const bitsOfGroups = (text: string): bigint | undefined => {
  const quad = /^(.*:)([0-9.]*\.[0-9.]*)$/.exec(text)
  const low = quad?.[2] === undefined ? undefined : bitsOfQuad(quad[2])
  if (quad !== null && low === undefined) return undefined
  const plain = low === undefined
    ? text
    : `${quad?.[1] ?? ""}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`
  const halves = plain.split("::")
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map((half) => half === "" ? [] : half.split(":"))
  const stated = [...head ?? [], ...tail ?? []]
  if (halves.length === 2 ? stated.length > 7 : stated.length !== 8) return undefined
  if (!stated.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  const groups = [...head ?? [], ...Array.makeBy(8, () => "0").slice(stated.length), ...tail ?? []]
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}

const bitsOf = (text: string): Bits | undefined => {
  const wide = text.includes(":")
  const value = wide ? bitsOfGroups(text) : bitsOfQuad(text)
  return value === undefined ? undefined : { width: wide ? 128 : 32, value }
}

const quadText = (value: bigint): string => [24n, 16n, 8n, 0n].map((at) => (value >> at) & 0xffn).join(".")

const textOf = ({ value, width }: Bits): IpAddress => {
  if (width === 32) return address(quadText(value))
  if (value >> 32n === 0xffffn) return address(`::ffff:${quadText(value & 0xffff_ffffn)}`)
  const groups = Array.makeBy(8, (at) => ((value >> BigInt(112 - 16 * at)) & 0xffffn).toString(16))
  const zerosAt = groups.map((_, at) => groups.slice(at).findIndex((group) => group !== "0"))
    .map((length, at) => length === -1 ? 8 - at : length)
  const longest = Math.max(...zerosAt)
  if (longest < 2) return address(groups.join(":"))
  const start = zerosAt.indexOf(longest)
  return address(`${groups.slice(0, start).join(":")}::${groups.slice(start + longest).join(":")}`)
}

/** Reads an address literal strictly: no leading zeros, no short or hexadecimal IPv4, no zone, and no brackets. */
export const parseAddress = (text: string): Option.Option<IpAddress> =>
  Option.fromNullishOr(bitsOf(text)).pipe(Option.map(textOf))

/** Returns 4 or 6. An IPv4-mapped address has family 6, because it is dialled as IPv6. */
export const familyOf = (ip: IpAddress): 4 | 6 => ip.includes(":") ? 6 : 4

/** A range of addresses of one family. `text` is the entry as it was written. */
export interface Cidr {
  readonly text: string
  readonly network: IpAddress
  /** How many leading bits of `network` count: 0 to 32, or 0 to 128. The other bits are ignored. */
  readonly prefix: number
}

/** Reads `10.0.0.0/8`, `fe80::/10` or a single address, which becomes a range of one address. */
export const parseCidr = (text: string): Option.Option<Cidr> => {
  const [literal = "", length, ...rest] = text.split("/")
  const bits = bitsOf(literal)
  if (bits === undefined || rest.length > 0) return Option.none()
  if (length !== undefined && !/^(?:0|[1-9][0-9]{0,2})$/.test(length)) return Option.none()
  const prefix = length === undefined ? bits.width : Number(length)
  return prefix > bits.width ? Option.none() : Option.some({ text, network: textOf(bits), prefix })
}

/**
 * Returns whether the range contains the address. An IPv4 range never contains an IPv6 address, and an IPv6 range never
 * contains an IPv4 address. If mapped addresses should match, they must be converted first.
 */
export const contains = (cidr: Cidr, ip: IpAddress): boolean => {
  const candidate = bitsOf(ip)
  return candidate !== undefined && holds(cidr)(candidate)
}

/** Prepares a range for many comparisons. */
const holds = ({ network, prefix }: Cidr): (candidate: Bits) => boolean => {
  const bits = bitsOf(network)
  if (bits === undefined) return () => false
  const dropped = BigInt(bits.width - prefix)
  const leading = bits.value >> dropped
  return ({ value, width }) => width === bits.width && value >> dropped === leading
}

/** An address that is prepared for many comparisons. */
export interface Comparable {
  readonly text: IpAddress
  readonly width: 32 | 128
  readonly value: bigint
  /** The value of an IPv4 address as a number, so that arithmetic allocates nothing. */
  readonly short: number
}

const mostKnown = 1000
const longestKnown = 45 // the length of the longest IPv6 address, which ends in a dotted quad
const known = new Map<string, Comparable | undefined>()

/**
 * Reads the address of a peer. The zone is dropped, and an IPv4-mapped address becomes an IPv4 address. A request needs
 * the address of its client several times, so a few results are remembered.
 */
export const comparable = (text: string): Comparable | undefined => {
  const before = known.get(text)
  if (before !== undefined || known.has(text)) return before
  const read = readComparable(text)
  if (text.length > longestKnown) return read
  if (known.size >= mostKnown) known.clear()
  known.set(text, read)
  return read
}

const readComparable = (text: string): Comparable | undefined => {
  const bits = bitsOf(text.replace(/%.*$/, ""))
  if (bits === undefined) return undefined
  const isMapped = bits.width === 128 && bits.value >> 32n === 0xffffn
  const plain: Bits = isMapped ? { width: 32, value: bits.value & 0xffff_ffffn } : bits
  return { ...plain, text: textOf(plain), short: plain.width === 32 ? Number(plain.value) : 0 }
}

/**
 * Makes a set of ranges in which many addresses are looked up. Entries that are not ranges are ignored, because the
 * configuration already refuses them. A range of IPv4-mapped addresses counts as a range of IPv4 addresses, because
 * {@link comparable} turns such addresses into IPv4.
 */
export const makeAddressSet = (entries: ReadonlyArray<string>): (ip: Comparable) => boolean => {
  const fours: Array<{ readonly network: number; readonly size: number }> = []
  const sixes: Array<{ readonly network: bigint; readonly dropped: bigint }> = []
  for (const { network, prefix } of Array.getSomes(Array.map(entries, parseCidr))) {
    const bits = bitsOf(network)
    if (bits === undefined) continue
    const dropped = BigInt(bits.width - prefix)
    const leading = bits.value >> dropped
    const isMapped = bits.width === 128 && prefix >= 96 && bits.value >> 32n === 0xffffn
    if (bits.width === 32 || isMapped) {
      fours.push({ network: Number((leading << dropped) & 0xffff_ffffn), size: 2 ** Number(dropped) })
    } else sixes.push({ network: leading, dropped })
  }
  return ({ short, value, width }) => {
    // These are plain loops, because this runs for every rule of every request.
    if (width === 32) {
      for (const { network, size } of fours) if (short >= network && short < network + size) return true
      return false
    }
    for (const { dropped, network } of sixes) if (value >> dropped === network) return true
    return false
  }
}

/** Returns the DNS name at which the PTR records of an address are (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export const pointerName = ({ text, value, width }: Comparable): string =>
  width === 32
    ? `${text.split(".").toReversed().join(".")}.in-addr.arpa`
    : `${[...value.toString(16).padStart(32, "0")].toReversed().join(".")}.ip6.arpa`

const low32 = 0xffff_ffffn

/**
 * Returns the IPv4 addresses that a local-use NAT64 address may embed. Such an IPv4 address follows a prefix of 96, 64,
 * 56 or 48 bits, skips the octet that is always zero, and is followed only by zeros (RFC 6052 section 2.2). The address
 * does not show how long its prefix is.
 */
const translated = (value: bigint): ReadonlyArray<bigint> => {
  const isOctetZero = ((value >> 56n) & 0xffn) === 0n
  const around = [0n, 8n, 16n].flatMap((before) => {
    const behind = 32n - before
    const rest = 56n - behind
    const high = (value >> 64n) & ((1n << before) - 1n)
    const isAlone = isOctetZero && (value & ((1n << rest) - 1n)) === 0n
    return isAlone ? [(high << behind) | ((value >> rest) & ((1n << behind) - 1n))] : []
  })
  return [value & low32, ...around].filter((inner) => inner !== 0n)
}

/** Returns the IPv4 addresses that an IPv6 address embeds, as numbers. */
const within = (value: bigint): ReadonlyArray<bigint> => {
  const prefix = value >> 32n
  // The unspecified address and the loopback address also have this form, but they embed no IPv4 address.
  if (prefix === 0n) return value > 1n ? [value] : []
  const isWhole = prefix === 0xffffn || prefix === 0xffff_0000n || prefix === 0x0064_ff9b_0000_0000_0000_0000n
  if (isWhole) return [value & low32]
  if (value >> 80n === 0x0064_ff9b_0001n) return translated(value)
  if (value >> 112n === 0x2002n) return [(value >> 80n) & low32]
  // The embedded addresses are the address of the server, and the address of the client with inverted bits.
  if (value >> 96n === 0x2001_0000n) return [(value >> 64n) & low32, ~value & low32]
  const host = (value >> 32n) & low32
  return host === 0x0000_5efen || host === 0x0200_5efen ? [value & low32] : []
}

/**
 * Returns the IPv4 addresses that a packet to `ip` may reach. They are embedded in an IPv4-mapped (`::ffff:0:0/96`),
 * IPv4-translated (`::ffff:0:0:0/96`, RFC 2765), IPv4-compatible (`::/96`), NAT64 (`64:ff9b::/96` of RFC 6052,
 * `64:ff9b:1::/48` of RFC 8215), 6to4 (`2002::/16`, RFC 3056), Teredo (`2001::/32`, RFC 4380) or ISATAP (RFC 5214)
 * address.
 */
export const embedded = (ip: IpAddress): ReadonlyArray<IpAddress> => {
  const bits = bitsOf(ip)
  return bits === undefined || bits.width === 32
    ? []
    : within(bits.value).map((value) => textOf({ width: 32, value }))
}

/** Decides which addresses may be dialled. */
export interface AddressPolicy {
  /** Returns the rule that forbids the address, or `undefined` if the address may be dialled. */
  readonly check: (ip: IpAddress) => string | undefined
}

/**
 * Makes a policy from two lists. An address in `denied` is denied even if it is also in `allowed`. If `allowed` is
 * empty, all other addresses are allowed. An address passes only if all addresses embedded in it pass too. If a denied
 * entry is neither an address nor a CIDR, it forbids every address; the configuration refuses such an entry earlier.
 */
export const makeAddressPolicy = (options: {
  readonly denied: ReadonlyArray<string>
  readonly allowed: ReadonlyArray<string>
}): AddressPolicy => {
  const [denied, unreadable] = Array.partition(
    options.denied,
    (text) => Result.map(Result.fromOption(parseCidr(text), () => text), (cidr) => ({ text, holds: holds(cidr) }))
  )
  const allowed = Array.getSomes(Array.map(options.allowed, parseCidr)).map(holds)
  const faultOf = (ip: IpAddress) => {
    const bits = bitsOf(ip)
    if (bits === undefined) return "not an address"
    return unreadable[0] ?? denied.find((range) => range.holds(bits))?.text ??
      (options.allowed.length === 0 || allowed.some((range) => range(bits)) ? undefined : "not in allowed_addresses")
  }
  return {
    check: (ip) => {
      for (const one of [ip, ...embedded(ip)]) {
        const fault = faultOf(one)
        if (fault !== undefined) return fault
      }
      return undefined
    }
  }
}

/** How many addresses are tried for one connection (docs/reference/protocol.md, "Addresses"). */
export const maxCandidates = 4

/**
 * Returns the addresses to try, in order: IPv6 before IPv4, without duplicates, at most 4. If there is any IPv4
 * address, the result has at least one.
 */
export const candidates = (addresses: ReadonlyArray<IpAddress>): ReadonlyArray<IpAddress> => {
  const [six, four] = Array.partition(
    [...new Set(addresses)],
    (ip) => familyOf(ip) === 6 ? Result.succeed(ip) : Result.fail(ip)
  )
  return [...six.slice(0, maxCandidates - Math.min(1, four.length)), ...four].slice(0, maxCandidates)
}

/** A name server for DNS queries. */
export interface Nameserver {
  readonly address: IpAddress
  readonly port: number
}

/** Reads dns.resolver: `address`, `address:port` or `[v6]:port`. The default port is 53. A host name is refused. */
export const parseNameserver = (text: string): Option.Option<Nameserver> => {
  const [, wide, narrow, digits] = /^(?:\[([^\]]*)\]|([^:]*)):([0-9]{1,5})$/.exec(text) ?? []
  const port = digits === undefined ? 53 : Number(digits)
  return parseAddress(wide ?? narrow ?? text).pipe(
    Option.filter((ip) => port >= 1 && port <= 65535 && (wide === undefined || familyOf(ip) === 6)),
    Option.map((ip) => ({ address: ip, port }))
  )
}
