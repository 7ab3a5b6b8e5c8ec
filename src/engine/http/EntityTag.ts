import { sha256Octets } from "../../crypto/Digest.ts"
import type { Answer, Request } from "./Message.ts"
import { header } from "./Message.ts"

/* Answers with status 304 if a client already has the answer (RFC 9110 sections 8.8.3 and 13.1.2). */

const known = new WeakMap<Uint8Array, string>()

const tagOf = (body: Uint8Array): string => {
  const kept = known.get(body)
  if (kept !== undefined) return kept
  const tag = `"${sha256Octets(body).toString("base64url").slice(0, 22)}"`
  known.set(body, tag)
  return tag
}

/**
 * Returns an answer whose entity tag is the digest of its body. For the same body object, the digest is computed only
 * once.
 */
export const tagged = (contentType: string, body: Uint8Array): Answer => ({
  status: 200,
  headers: { "content-type": contentType, etag: tagOf(body) },
  body
})

const isHeld = (tag: string, held: string): boolean =>
  held.split(",").some((one) => {
    const given = one.trim()
    return given === "*" || given === tag || given === `W/${tag}`
  })

/** Returns the answer to a GET or HEAD. If the client already has this answer, returns 304 without a body. */
export const unlessHeld = (request: Request, answer: Answer): Answer => {
  const tag = answer.headers["etag"]
  const held = header(request, "if-none-match")
  if (typeof tag !== "string" || held === undefined || !isHeld(tag, held)) return answer
  const { "content-type": _, ...headers } = answer.headers
  return { status: 304, headers }
}
