import type { Comparable } from "../engine/net/Address.ts"
import { comparable, makeAddressSet } from "../engine/net/Address.ts"

/** The keys of a filter section that say which peers are trusted to state the client's address. */
export interface ProxySettings {
  readonly trusted_proxies: ReadonlyArray<string>
  readonly forwarded_header: string
}

interface Sent {
  /** The address of the connection's peer. */
  readonly clientIp: string
  /**
   * The headers as the runtime provides them. The runtime joins the values of a repeated header with commas, in order.
   */
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
}

/** The header whose entries have several parameters, of which `for` is the client (RFC 7239 section 4). */
const STANDARD = "forwarded"

/**
 * Returns the node in the one parameter `for` of an entry, or an empty text. Another parameter may have a text of the
 * client in quotation marks, such as the host. So an entry in which anything is no parameter has no node.
 */
const nodeOf = (entry: string): string => {
  const parameter = /[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"([^"\\]*)"|([^\s;"]*))[ \t]*(?:;|$)/y
  const nodes: Array<string> = []
  while (parameter.lastIndex < entry.length) {
    const [, name = "", quoted, token = ""] = parameter.exec(entry) ?? []
    if (name === "") return ""
    if (name.toLowerCase() === "for") nodes.push(quoted ?? token)
  }
  const [node = "", ...more] = nodes
  return more.length === 0 ? node : ""
}

/** Reads one node of the header: an address, alone or with a port. */
const addressOf = (text: string): Comparable | undefined => {
  const trimmed = text.trim()
  const [, wide, narrow] = /^(?:\[([^\]]*)\](?::[0-9]{1,5})?|([^:]*):[0-9]{1,5})$/.exec(trimmed) ?? []
  return comparable(wide ?? narrow ?? trimmed)
}

/**
 * Returns a function that says whether any of the filters trusts an address as a proxy. Also returns the headers, in
 * lower case, in which proxies name their clients.
 */
export const trustOf = (filters: ReadonlyArray<ProxySettings>) => ({
  isProxy: makeAddressSet(filters.flatMap(({ trusted_proxies }) => trusted_proxies)),
  forwardedHeaders: [...new Set(filters.map(({ forwarded_header }) => forwarded_header.toLowerCase()))]
})

/**
 * Returns the address of the client that sent a request (docs/configure/policy.md, "Behind a proxy"). If the peer is
 * not a trusted proxy, this is the address of the peer. Otherwise it is the rightmost address in the forwarded header
 * that is not a trusted proxy or, if all are trusted, the leftmost address. An unreadable entry ends the list, because
 * anyone may have written the entries to its left.
 */
export const clientAddress = (settings: ProxySettings): (sent: Sent) => string => {
  if (settings.trusted_proxies.length === 0) return ({ clientIp }) => clientIp
  const isTrusted = makeAddressSet(settings.trusted_proxies)
  const name = settings.forwarded_header.toLowerCase()
  const entryOf = name === STANDARD ? (entry: string) => addressOf(nodeOf(entry)) : addressOf
  return ({ clientIp, headers }) => {
    const peer = comparable(clientIp)
    const given = headers[name]
    if (peer === undefined || given === undefined || !isTrusted(peer)) return clientIp
    let leftmost: string = clientIp
    const entries = (typeof given === "string" ? given : given.join(",")).split(",")
    for (let at = entries.length - 1; at >= 0; at--) {
      const entry = entries[at] ?? ""
      if (entry.trim() === "") continue // a list may have empty elements (RFC 9110 section 5.6.1)
      const address = entryOf(entry)
      // No trusted proxy vouches for the entries to the left of an unreadable entry.
      if (address === undefined) return leftmost
      if (!isTrusted(address)) return address.text
      leftmost = address.text
    }
    return leftmost
  }
}
