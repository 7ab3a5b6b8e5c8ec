import * as Result from "effect/Result"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import type { Request } from "../../../engine/http/Message.ts"

/* Reads the session cookie and the API token of a request. */

/**
 * The name of the session cookie. The prefix `__Host-` binds the cookie to this host, so no other host below the same
 * domain can set it.
 */
export const sessionCookie = "__Host-acme_admin_session"

/** The credential of a request: a session, a token for programs, or neither. */
export type Shown =
  | { readonly kind: "session"; readonly token: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "nothing" }

const refused = (detail: string) => Result.fail(new BadRequest({ detail }))

/**
 * Reads the headers `Cookie` and `Authorization`. The value of a cookie may be in double quotes (RFC 6265 section
 * 4.1.1). A request with both a session and a token is refused, because the result would depend on which of the two is
 * used.
 */
export const shownBy = ({ headers }: Request): Result.Result<Shown, OperatorError> => {
  const cookies: Array<string> = []
  for (const pair of [headers["cookie"] ?? []].flat().join(";").split(";")) {
    const [name, ...value] = pair.trim().split("=")
    if (name === sessionCookie && value.length > 0) cookies.push(value.join("=").replace(/^"(.*)"$/, "$1"))
  }
  if (cookies.length > 1) return refused(`The cookie ${sessionCookie} was sent twice.`)
  const given = headers["authorization"]
  if (given !== undefined && typeof given !== "string") return refused("The header Authorization was sent twice.")
  const [cookie] = cookies
  if (given === undefined) {
    return Result.succeed(cookie === undefined ? { kind: "nothing" } : { kind: "session", token: cookie })
  }
  if (cookie !== undefined) return refused("A request may carry a session or a token, but not both.")
  const token = /^Bearer +([^\s]+)$/i.exec(given)?.[1]
  return token === undefined
    ? refused("The header Authorization must be Bearer and a token.")
    : Result.succeed({ kind: "token", token })
}

/** Returns the header that sets the session in the browser. */
export const setSession = (token: string): string =>
  `${sessionCookie}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`

/** The header that removes the session from the browser. */
export const clearSession = `${sessionCookie}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0`
