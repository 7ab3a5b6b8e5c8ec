import { roleRead } from "../../../domain/OperatorRole.ts"
import { member, timeMember } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type { ApiTokenRecord } from "../../../store/operators/ApiTokens.ts"
import type { ListedSession } from "../../../store/operators/SessionRows.ts"
import { nameOf } from "../../../store/operators/SessionRows.ts"
import type { ListedUser } from "../../../store/operators/Users.ts"
import type { HalfIdentity, SessionIdentity } from "./Identity.ts"
import type { ShownOperator } from "./Operators.ts"

/*
 * The objects that represent operators, sessions and tokens. They are the same in the API and in `--json`, and contain
 * nothing that can be used to sign in.
 */

type Member =
  & Pick<ListedUser, "contactEmail" | "createdAt" | "id" | "knownLoginIps" | "lastLoginAt" | "role" | "status">
  & Pick<ListedUser, "updatedAt" | "username">

const shownOperator = (user: Member, totpEnabled: boolean) => ({
  id: user.id,
  username: user.username,
  status: user.status,
  role: roleRead(user.role),
  totpEnabled,
  ...member("contact", user.contactEmail),
  createdAt: rfc3339(user.createdAt),
  updatedAt: rfc3339(user.updatedAt),
  ...timeMember("lastLoginAt", user.lastLoginAt),
  knownLoginIps: user.knownLoginIps
})

/** An operator in a list. */
export const operatorObject = (user: ListedUser) => shownOperator(user, user.isEnrolled === 1)

/** One operator. */
export const operatorDetailObject = (user: ShownOperator) => ({
  ...shownOperator(user, user.totpEnabled),
  enrolmentPending: user.enrolmentPending,
  recoveryCodesRemaining: user.recoveryCodesRemaining,
  activeSessions: user.activeSessions
})

/**
 * A session in a list. In a list of the operator's own sessions, `current` is the name of the session that sent the
 * request.
 */
export const sessionObject = (session: ListedSession & { readonly username?: string }, current?: string) => ({
  id: nameOf(session),
  ...member("username", session.username),
  state: session.state,
  createdAt: rfc3339(session.createdAt),
  expiresAt: rfc3339(session.expiresAt),
  lastSeenAt: rfc3339(session.lastSeenAt),
  ...member("createdIp", session.createdIp),
  ...member("userAgent", session.userAgent),
  ...(nameOf(session) === current ? { current: true as const } : {})
})

/** A token, without its text. */
export const tokenObject = (token: ApiTokenRecord) => ({
  id: token.id,
  name: token.name,
  user: token.username,
  role: token.role,
  createdAt: rfc3339(token.createdAt),
  expiresAt: rfc3339(token.expiresAt),
  ...timeMember("lastUsedAt", token.lastUsedAt),
  ...member("lastUsedIp", token.lastUsedIp),
  ...(token.allowedAddresses.length === 0 ? {} : { allowedAddresses: token.allowedAddresses }),
  ...timeMember("revokedAt", token.revokedAt)
})

const userObject = ({ role, totpEnabled, userId, username }: SessionIdentity) => ({
  id: userId,
  username,
  role,
  totpEnabled
})

/** The answer to a sign-in, and to a request that reads the session. */
export const sessionBody = (identity: SessionIdentity) => ({
  user: userObject(identity),
  csrfToken: identity.csrfToken,
  expiresAt: rfc3339(identity.expiresAt)
})

/** The answer to a sign-in that still needs the second factor. It contains nothing about the operator. */
export const halfSessionBody = ({ csrfToken, expiresAt, step }: HalfIdentity) => ({
  mfaRequired: true as const,
  step,
  csrfToken,
  expiresAt: rfc3339(expiresAt)
})
