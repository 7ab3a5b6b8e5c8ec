import type { Comparable } from "../kernel/net/Address.ts"
import { comparable, makeAddressSet } from "../kernel/net/Address.ts"

/** The keys of a filter section that say whose word about the client's address is taken. */
export interface ProxySettings {
  readonly trusted_proxies: ReadonlyArray<string>
  readonly forwarded_header: string
}

interface Sent {
  /** Address of the connection's peer. */
  readonly clientIp: string
  /** As the runtime hands them over: values of a repeated header are joined in order, with commas. */
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
}

/** One entry of the header: an address, alone or with a port. */
const entryOf = (text: string): Comparable | undefined => {
  const trimmed = text.trim()
  const [, wide, narrow] = /^(?:\[([^\]]*)\](?::[0-9]{1,5})?|([^:]*):[0-9]{1,5})$/.exec(trimmed) ?? []
  return comparable(wide ?? narrow ?? trimmed)
}

/** Whether a request came through a trusted proxy, whose word is taken for what it says of it. */
export const fromTrusted = ({ trusted_proxies }: ProxySettings): (sent: Sent) => boolean => {
  if (trusted_proxies.length === 0) return () => false
  const isTrusted = makeAddressSet(trusted_proxies)
  return ({ clientIp }) => {
    const peer = comparable(clientIp)
    return peer !== undefined && isTrusted(peer)
  }
}

/**
 * Who sent a request (docs/policy.md, "Behind a proxy"): the peer, or, when that is a trusted proxy, the first address from
 * the right in the forwarded header that is no trusted proxy; if all are, the leftmost. An entry that cannot be read ends
 * the list: what it hides might be anybody.
 */
export const clientAddress = (settings: ProxySettings): (sent: Sent) => string => {
  if (settings.trusted_proxies.length === 0) return ({ clientIp }) => clientIp
  const isTrusted = makeAddressSet(settings.trusted_proxies)
  const name = settings.forwarded_header.toLowerCase()
  return ({ clientIp, headers }) => {
    const peer = comparable(clientIp)
    const given = headers[name]
    if (peer === undefined || given === undefined || !isTrusted(peer)) return clientIp
    let leftmost: string = clientIp
    const entries = (typeof given === "string" ? given : given.join(",")).split(",")
    for (let at = entries.length - 1; at >= 0; at--) {
      const address = entryOf(entries[at] ?? "")
      // Who wrote this one did not say where it had it from: nothing to its left is anybody's word.
      if (address === undefined) return leftmost
      if (!isTrusted(address)) return address.text
      leftmost = address.text
    }
    return leftmost
  }
}
