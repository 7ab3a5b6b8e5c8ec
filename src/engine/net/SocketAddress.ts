import * as net from "node:net"
import { comparable, makeAddressSet } from "./Address.ts"

/** A host (name or address, IPv6 without brackets) and a port. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

const hostPort = /^(?:\[([^[\]]+)\]|([^:[\]]+)):(0|[1-9][0-9]{0,4})$/
const hostName = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/i

const split = (text: string): HostPort | undefined => {
  const match = hostPort.exec(text)
  if (match === null) return undefined
  const [, v6, other, digits] = match
  const host = v6 ?? other
  const port = Number(digits)
  if (host === undefined || port > 65535 || (v6 !== undefined && !net.isIPv6(v6))) return undefined
  return { host, port }
}

/**
 * Returns whether the text is a host name. A name whose last label is a number is refused, because it would be read as
 * an IPv4 address.
 */
const isHostName = (text: string): boolean => hostName.test(text) && !/(?:^|\.)[0-9]+$/.test(text)

/**
 * Reads `[::]:3000`, `127.0.0.1:0` or `host:3000`. Returns `undefined` for any other text. Port 0 means any free port.
 */
export const parseBindAddress = (text: string): HostPort | undefined => {
  const address = split(text)
  return address !== undefined && (net.isIP(address.host) !== 0 || isHostName(address.host)) ? address : undefined
}

/** Returns whether the text is a DNS name of letters, digits and hyphens, without wildcard and trailing dot. */
export const isDnsName = (text: string): boolean => isHostName(text) && !text.includes("_")

const isLoopbackAddress = makeAddressSet(["127.0.0.0/8", "::1/128"])

/** Returns whether a host, with or without the brackets of a URL, is a loopback address or `localhost`. */
export const isLoopbackHost = (host: string): boolean => {
  const address = comparable(host.replace(/^\[|\]$/g, ""))
  return address === undefined ? host === "localhost" : isLoopbackAddress(address)
}
