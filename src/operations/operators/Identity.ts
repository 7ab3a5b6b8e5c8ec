import type { OperatorRole } from "../../domain/OperatorRole.ts"
import type { ClientFacts } from "../../kernel/queue/Job.ts"
import { isSame } from "../../pki/Digest.ts"
import type { Operator } from "../Operator.ts"

/** What a request says of its sender, and by which way it came. */
export interface Requester {
  readonly client: ClientFacts
  readonly surface: "api" | "ui"
}

/** Who asks, as the session or the token of the request proved. */
interface Proven {
  readonly userId: string
  readonly username: string
  /** What may be done: of a token, the lower of its own role and its owner's. */
  readonly role: OperatorRole
  readonly totpEnabled: boolean
}

/** What a session is beside its operator. `tokenHash` is its key in the table and is told nobody. */
interface SessionFacts {
  readonly tokenHash: string
  readonly csrfToken: string
  /** Epoch seconds. */
  readonly expiresAt: number
}

/** An operator with a session that has everything it needs. */
export interface SessionIdentity extends Proven, SessionFacts {
  readonly kind: "session"
}

/** A program of an operator's. It reaches neither the account of its owner nor operators. */
export interface TokenIdentity extends Proven {
  readonly kind: "token"
  readonly id: string
  /** The name its owner gave it. */
  readonly name: string
}

/** Who asks. */
export type Identity = SessionIdentity | TokenIdentity

/** Whose password was right and whose second factor is still to come: reaches that, and nothing of the operator. */
export interface HalfIdentity extends SessionFacts {
  readonly kind: "half"
  readonly userId: string
  readonly username: string
  /** `enrol` where there is no factor yet and one is demanded. */
  readonly step: "verify" | "enrol"
}

/** Who acts, for operations and their audit rows. */
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

/** Whether a request carries the CSRF token of its session; told in a time that does not say how much of it. */
export const hasCsrfToken = ({ csrfToken }: SessionFacts, given: string | undefined): boolean =>
  given !== undefined && isSame(Buffer.from(given), Buffer.from(csrfToken))
