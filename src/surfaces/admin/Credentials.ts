import { Either } from "effect"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import type { Request } from "../../kernel/http/Message.ts"

/* The cookie and the token of a request. */

/** The cookie of a session. `__Host-` binds it to this host: no other one below the same domain can set it. */
export const sessionCookie = "__Host-acme_admin_session"

/** What a request shows: a session, a token for programs, or nothing. */
export type Shown =
  | { readonly kind: "session"; readonly token: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "nothing" }

const refused = (detail: string) => Either.left(new BadRequest({ detail }))

/** Reads both headers. A request that shows a session and a token at once could be judged by either, so it is refused. */
export const shownBy = ({ headers }: Request): Either.Either<Shown, OperatorError> => {
  const cookies = [headers["cookie"] ?? []].flat().flatMap((line) => line.split(";"))
    .map((pair) => pair.trim()).filter((pair) => pair.startsWith(`${sessionCookie}=`))
    .map((pair) => pair.slice(sessionCookie.length + 1))
  if (cookies.length > 1) return refused(`The cookie ${sessionCookie} is there twice.`)
  const given = headers["authorization"]
  if (given !== undefined && typeof given !== "string") return refused("The header Authorization is there twice.")
  const [cookie] = cookies
  if (given === undefined) {
    return Either.right(cookie === undefined ? { kind: "nothing" } : { kind: "session", token: cookie })
  }
  if (cookie !== undefined) return refused("A request shows a session or a token, and not both.")
  const token = /^Bearer +([^\s]+)$/i.exec(given)?.[1]
  return token === undefined
    ? refused("The header Authorization takes Bearer and a token.")
    : Either.right({ kind: "token", token })
}

/** The header that gives a browser its session. */
export const setSession = (token: string): string =>
  `${sessionCookie}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`

/** The header that takes it away again. */
export const clearSession = `${sessionCookie}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0`
