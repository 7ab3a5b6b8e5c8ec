import type { Request } from "../../kernel/http/Message.ts"

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
