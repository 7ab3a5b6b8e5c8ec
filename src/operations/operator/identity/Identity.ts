import type * as Redacted from "effect/Redacted"
import { isSame } from "../../../crypto/Digest.ts"
import type { OperatorRole } from "../../../domain/OperatorRole.ts"
import type { ClientFacts } from "../../../domain/words/JobKind.ts"
import type { Operator } from "../../Operator.ts"

/** The token of a session. It is sent only in the cookie, and is stored nowhere else. */
export type SessionToken = Redacted.Redacted<string>

/** The facts about the sender of a request, and the surface that the request used. */
export interface Requester {
  readonly client: ClientFacts
  readonly surface: "api" | "ui"
  /** The session token that came with the request, whether or not it is valid. A sign-in replaces that session. */
  readonly held?: SessionToken | undefined
}

/** The sender, whose identity the session or the token proves. */
interface Proven {
  readonly userId: string
  readonly username: string
  /**
   * The role that decides what the sender may do. For a token it is the lower of the token's role and its owner's role.
   */
  readonly role: OperatorRole
}

/**
 * The facts of a session apart from its operator. `tokenHash` is the session's key in the table, and is never shown.
 */
interface SessionFacts {
  readonly tokenHash: string
  readonly csrfToken: string
  /** The beginning of the session, in epoch seconds. */
  readonly createdAt: number
  /** The end of the session's lifetime, in epoch seconds. */
  readonly expiresAt: number
}

/** An operator with a complete session. */
export interface SessionIdentity extends Proven, SessionFacts {
  readonly kind: "session"
  readonly totpEnabled: boolean
}

/**
 * A token of an operator. A token gives no access to its owner's account, and cannot be used to change operators or
 * tokens.
 */
export interface TokenIdentity extends Proven {
  readonly kind: "token"
  readonly id: string
  /** The name that the owner gave the token. */
  readonly name: string
}

/** The signed-in sender of a request. */
export type Identity = SessionIdentity | TokenIdentity

/**
 * An operator who has given the right password but not yet the second factor. With this session, only the routes of the
 * second factor may be used, and the operator's data are not shown.
 */
export interface HalfIdentity extends SessionFacts {
  readonly kind: "half"
  readonly userId: string
  readonly username: string
  /** `enrol` if a second factor is required but the operator has none yet. */
  readonly step: "verify" | "enrol"
}

/** Returns the operator who acts, in the form that operations and audit rows use. */
export const operatorOf = (
  identity: Identity | HalfIdentity,
  { client, surface }: Requester
): Operator & { readonly id: string } => ({
  kind: "admin",
  id: identity.username,
  client,
  surface,
  ...(identity.kind === "token" ? { token: identity.name } : {})
})

/**
 * Returns whether a request has the CSRF token of its session. The duration of the comparison does not reveal how much
 * of the token is right.
 */
export const hasCsrfToken = ({ csrfToken }: SessionFacts, given: string | undefined): boolean =>
  given !== undefined && isSame(Buffer.from(given), Buffer.from(csrfToken))
