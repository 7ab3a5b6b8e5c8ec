import type { Request } from "../../../engine/http/Message.ts"
import { header } from "../../../engine/http/Message.ts"
import { isLoopbackHost } from "../../../engine/net/SocketAddress.ts"

/* What a browser says about the origin of a request (docs/decisions/admin.md, "Sessions"). */

/** The origin of a base URL, in the form that browsers send. */
export const originOf = (baseUrl: string): string => new URL(baseUrl).origin

/**
 * Whether a request may come from another site. An absent header is no sign of that, because programs send neither. A
 * header that was sent twice is refused.
 */
export const isForeign = ({ headers }: Request, origin: string): boolean => {
  const { origin: sent, "sec-fetch-site": site } = headers
  return (sent !== undefined && sent !== origin) || site === "cross-site" || typeof site === "object"
}

const longestOrigin = 300 // a host name has 253 characters at most

/** The origin that a request names, if it has the form of one. */
export const sentOrigin = (request: Request): string | undefined => {
  const sent = header(request, "origin")
  return sent !== undefined && sent.length <= longestOrigin && /^https?:\/\/[^\s/?#@]+$/.test(sent) ? sent : undefined
}

/** Whether a page of the panel is asked for, as opposed to a change, an answer for programs or a probe. */
const isPage = ({ method, path }: Request): boolean => method === "GET" && /^\/(?:ui(?:\/.*)?)?$/.test(path)

/**
 * Whether a browser follows a link to a page of the panel that another site has, such as a ticket or a wiki. It brings no
 * cookie that is `SameSite=Strict`, so nothing can be decided by what it brings.
 */
export const isLinkFromElsewhere = (request: Request): boolean => {
  const { origin, "sec-fetch-mode": mode, "sec-fetch-site": site } = request.headers
  return isPage(request) && origin === undefined && site === "cross-site" && mode === "navigate"
}

/**
 * The URL of the base URL's host for a page that was asked for under another name of loopback, such as
 * `http://127.0.0.1:3001`, where nobody could sign in. Undefined for every other request. A proxy may name any host, so
 * this needs two names of loopback with the same port, between which there can be no proxy.
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
