import type { Request } from "../../engine/http/Message.ts"
import { header } from "../../engine/http/Message.ts"
import { isLoopbackHost } from "../../engine/net/SocketAddress.ts"

/* Finds out whether a request comes from a browser on the machine of the service. */

/** The headers that a proxy adds, besides those that begin with `x-forwarded-`. */
const ofProxies = new Set([
  "forwarded",
  "via",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "fastly-client-ip"
])

/** Returns the host in the header of a request, without its port. */
const hostOf = (request: Request): string => {
  const host = `http://${header(request, "host") ?? ""}`
  return URL.canParse(host) ? new URL(host).hostname : ""
}

/**
 * Returns why a request does not come straight from a browser on this machine, or undefined if it does. `proxied`: it
 * has a header of a proxy, or names another host than this machine. `elsewhere`: its connection comes from another
 * machine. `forwardedHeader` is the header in which the configured proxies name their clients.
 */
export const notFromHere = (request: Request, forwardedHeader: string): "elsewhere" | "proxied" | undefined => {
  const own = forwardedHeader.toLowerCase()
  const names = Object.keys(request.headers)
  if (names.some((name) => name === own || name.startsWith("x-forwarded-") || ofProxies.has(name))) return "proxied"
  if (!isLoopbackHost(request.clientIp)) return "elsewhere"
  return isLoopbackHost(hostOf(request)) ? undefined : "proxied"
}
