import * as Effect from "effect/Effect"
import { Entropy } from "../../../crypto/Entropy.ts"
import { apiTokenHash, printApiToken } from "../../../domain/ApiToken.ts"
import { isId } from "../../../domain/Id.ts"
import { BadRequest, InsufficientRole, NameTaken, NoSuch } from "../../../domain/OperatorError.ts"
import type { OperatorRole } from "../../../domain/OperatorRole.ts"
import { permits, roleRead } from "../../../domain/OperatorRole.ts"
import { readUsername } from "../../../domain/Username.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as apiTokens from "../../../store/operators/ApiTokens.ts"
import * as users from "../../../store/operators/Users.ts"
import type { Operator } from "../../Operator.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import { readForOperator } from "../OperatorReads.ts"
import type { Identity } from "./Identity.ts"
import { named } from "./OperatorChange.ts"
import type { Paging } from "./Sessions.ts"

/* Tokens with which programs act for an operator (docs/contribute/decisions/admin.md, "Tokens"). */

const daySeconds = 86_400

/** The properties of a new token. */
export interface NewToken {
  /** The name of the owner. */
  readonly username: string
  readonly name: string
  readonly role: OperatorRole
  readonly expiresInDays: number
  /** The addresses and ranges from which the token may be used. An empty list allows every address. */
  readonly allowedAddresses: ReadonlyArray<string>
}

/**
 * Checks whether the caller may manage the tokens of an operator. A caller who uses a token may not manage any tokens.
 */
const mayManage = Effect.fnUntraced(function*(operator: Operator, username: string) {
  if (operator.kind === "cli") return true
  if (operator.token !== undefined) return false
  if (operator.id === username) return true
  const admins = yield* users.lockAdmins
  return admins.some((admin) => admin.username === operator.id)
})

/** Creates a token for an operator. Only this result contains the text of the token. */
export const create = Effect.fn("Tokens.create")(function*(operator: Operator, asked: NewToken) {
  const { name, role } = asked
  const username = readUsername(asked.username) ?? (yield* new NoSuch({ noun: "operator", id: asked.username }))
  const entropy = yield* Entropy
  const id = yield* entropy.uuid
  const token = printApiToken(yield* entropy.token)
  const now = yield* currentSeconds
  const expiresAt = now + asked.expiresInDays * daySeconds
  const record = yield* transaction(Effect.gen(function*() {
    if (!(yield* mayManage(operator, username))) return yield* new InsufficientRole()
    const owner = yield* users.lock(username)
    if (owner === undefined) return yield* new NoSuch({ noun: "operator", id: username })
    if (owner.status !== "active") return yield* new BadRequest({ detail: `${username} is disabled.` })
    const most = roleRead(owner.role)
    if (!permits(most, role)) {
      return yield* new BadRequest({
        member: "role",
        detail: `must not exceed the role of ${username}, which is ${most}.`
      })
    }
    const allowedAddresses = asked.allowedAddresses
    const row = { id, userId: owner.id, name, role, allowedAddresses, now, expiresAt, tokenHash: apiTokenHash(token) }
    if ((yield* apiTokens.insert(row)) === undefined) return yield* new NameTaken({ name })
    const detail = { target: username, name, role, expires_at: rfc3339(expiresAt) }
    yield* audit.insert({ event: "token_created", ...actorOf(operator), detail })
    return yield* apiTokens.find(id)
  }))
  if (record === undefined) return yield* new NoSuch({ noun: "token", id })
  yield* emit("admin_token_created", { ...actorFields(operator), target_username: username, name, role })
  return { record, token }
}, Effect.uninterruptible)

/**
 * Revokes a token immediately and permanently. A second call changes nothing. If the caller must not see the token, the
 * answer is the same as for a token that does not exist.
 */
export const revoke = Effect.fn("Tokens.revoke")(function*(operator: Operator, id: string) {
  const now = yield* currentSeconds
  const done = yield* transaction(Effect.gen(function*() {
    const record = isId(id) ? yield* apiTokens.find(id) : undefined
    if (record === undefined || !(yield* mayManage(operator, record.username))) {
      return yield* new NoSuch({ noun: "token", id })
    }
    const { expiresAt, name, role, username } = record
    if ((yield* apiTokens.revoke(id, now)) === undefined) return undefined
    const detail = { target: username, name, role, expires_at: rfc3339(expiresAt) }
    yield* audit.insert({ event: "token_revoked", ...actorOf(operator), detail })
    return { target_username: username, name }
  }))
  if (done !== undefined) yield* emit("admin_token_revoked", { ...actorFields(operator), ...done })
}, Effect.uninterruptible)

/** Finds a token by its id. */
export const find = Effect.fn("Tokens.find")(function*(id: string) {
  const record = isId(id) ? yield* apiTokens.find(id) : undefined
  return record ?? (yield* new NoSuch({ noun: "token", id }))
})

/**
 * Returns a page of the tokens of one operator or of all operators, newest first, and the total number of these tokens.
 */
export const list = Effect.fn("Tokens.list")(function*(username: string | undefined, paging: Paging) {
  const userId = username === undefined ? undefined : (yield* named(username)).id
  return yield* readForOperator(
    Effect.all({ items: apiTokens.list({ userId, ...paging }), total: apiTokens.count(userId) })
  )
})

/**
 * Returns the owner whose tokens a request lists: the caller or, if the caller is an admin, the operator that the
 * request names.
 */
export const ownerListed = (
  identity: Pick<Identity, "role" | "username">,
  asked: string | undefined
): Effect.Effect<string, InsufficientRole> =>
  asked === undefined || readUsername(asked) === identity.username
    ? Effect.succeed(identity.username)
    : permits(identity.role, "admin")
    ? Effect.succeed(asked)
    : new InsufficientRole()
