import type { Request } from "../../kernel/http/Message.ts"
import { header } from "../../kernel/http/Message.ts"

/* What a browser says of where a request comes from (docs/decisions/admin.md, "Sessions"). */

/** The origin of a base URL, as a browser writes it. */
export const originOf = (baseUrl: string): string => new URL(baseUrl).origin

/**
 * Whether a request may come from another site. Both headers count only where they are there, since programs send neither; a header
 * that is there twice is refused.
 */
export const isForeign = (request: Request, origin: string): boolean => {
  const { headers } = request
  if (headers["origin"] !== undefined && header(request, "origin") !== origin) return true
  return headers["sec-fetch-site"] !== undefined && header(request, "sec-fetch-site") === "cross-site"
}
