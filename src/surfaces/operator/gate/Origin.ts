import type { Request } from "../../../engine/http/Message.ts"
import { header } from "../../../engine/http/Message.ts"
import { isLoopbackHost } from "../../../engine/net/SocketAddress.ts"

/* Checks what a browser reports about the origin of a request (docs/contribute/decisions/admin.md, "Sessions"). */

/** Returns the origin of a base URL, in the form that browsers send. */
export const originOf = (baseUrl: string): string => new URL(baseUrl).origin

/**
 * Returns whether a request may come from another site, judged by `Origin` and `Sec-Fetch-Site`. Returns false if both
 * headers are absent, because programs send neither. Returns true if one of them occurs twice.
 */
export const isForeign = ({ headers }: Request, origin: string): boolean => {
  const { origin: sent, "sec-fetch-site": site } = headers
  return (sent !== undefined && sent !== origin) || site === "cross-site" || typeof site === "object"
}

const longestOrigin = 300 // a host name has at most 253 characters

/** Returns the origin in the header of a request, if the header has the form of an origin. */
export const sentOrigin = (request: Request): string | undefined => {
  const sent = header(request, "origin")
  return sent !== undefined && sent.length <= longestOrigin && /^https?:\/\/[^\s/?#@]+$/.test(sent) ? sent : undefined
}

/** Returns whether a request is for a page of the panel. Changes, answers for programs and probes are not pages. */
const isPage = ({ method, path }: Request): boolean => method === "GET" && /^\/(?:ui(?:\/.*)?)?$/.test(path)

/**
 * Returns whether a browser follows a link on another site, such as a ticket or a wiki, to a page of the panel. The
 * browser sends no `SameSite=Strict` cookie with such a request, so a missing cookie does not mean that nobody is
 * signed in.
 */
export const isLinkFromElsewhere = (request: Request): boolean => {
  const { origin, "sec-fetch-mode": mode, "sec-fetch-site": site } = request.headers
  return isPage(request) && origin === undefined && site === "cross-site" && mode === "navigate"
}

/**
 * If a page was requested under another name of loopback, such as `http://127.0.0.1:3001`, returns its URL with the
 * host of the base URL, because nobody could sign in under the other name. Returns undefined for every other request.
 * Both hosts must be loopback names with the same port, because a proxy may send any host, and no proxy can be in
 * between here.
 */
export const samePageAt = (request: Request, baseUrl: string, isTls: boolean): string | undefined => {
  const base = new URL(baseUrl)
  const host = header(request, "host")
  const asked = `${base.protocol}//${host ?? ""}`
  if (!isPage(request) || (base.protocol === "https:") !== isTls || !URL.canParse(asked)) return undefined
  const { hostname, port } = new URL(asked)
  const isOther = hostname !== base.hostname && port === base.port
  return isOther && isLoopbackHost(hostname) && isLoopbackHost(base.hostname)
    ? `${base.origin}${request.target}`
    : undefined
}
