import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { apiTokenHash, isApiToken } from "../../../domain/ApiToken.ts"
import { SessionInvalid } from "../../../domain/OperatorError.ts"
import { isRoleUnknown, lowerRole, roleRead } from "../../../domain/OperatorRole.ts"
import { emit } from "../../../domain/words/Log.ts"
import { comparable, makeAddressSet } from "../../../engine/net/Address.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as apiTokens from "../../../store/operators/ApiTokens.ts"
import type { Requester, TokenIdentity } from "./Identity.ts"

const touchSeconds = 60

type Found = NonNullable<Effect.Success<ReturnType<typeof apiTokens.findByHash>>>

const isTakenFrom = ({ allowedAddresses }: Found, { client }: Requester): boolean => {
  if (allowedAddresses.length === 0) return true
  const address = client.ip === undefined ? undefined : comparable(client.ip)
  return address !== undefined && makeAddressSet(allowedAddresses)(address)
}

const faultOf = (found: Found | undefined, requester: Requester, now: number) => {
  if (found === undefined) return "unknown"
  if (found.revokedAt !== undefined) return "revoked"
  if (now >= found.expiresAt) return "expired"
  if (found.status !== "active") return "owner_disabled"
  return isTakenFrom(found, requester) ? undefined : "address"
}

/**
 * Corrects a token whose creation time is in the future. A clock that was ahead wrote that time, so the token counts as
 * created now (docs/contribute/decisions/clocks.md, "Operators").
 */
const corrected = Effect.fnUntraced(function*(found: Found | undefined, now: number) {
  if (found === undefined || found.createdAt <= now + touchSeconds) return found
  yield* apiTokens.correct(found.id, now)
  return { ...found, createdAt: now, expiresAt: found.expiresAt - found.createdAt + now }
})

/**
 * Finds the owner of the token of a request. The answer is the same for every fault. The checksum detects a mistyped
 * token without a look-up. A fault does not count as a failed sign-in from the address
 * (docs/contribute/decisions/admin.md, "Tokens").
 */
export const authenticateToken = Effect.fnUntraced(function*(
  given: Redacted.Redacted<string>,
  requester: Requester
) {
  const text = Redacted.value(given)
  const { ip } = requester.client
  if (!isApiToken(text)) {
    yield* emit("admin_token_refused", { username: undefined, name: undefined, client_ip: ip, reason: "malformed" })
    return yield* new SessionInvalid()
  }
  const now = yield* currentSeconds
  const found = yield* corrected(yield* apiTokens.findByHash(apiTokenHash(text)), now)
  const fault = faultOf(found, requester, now)
  if (found === undefined || fault !== undefined) {
    yield* emit("admin_token_refused", { username: found?.username, name: found?.name, client_ip: ip, reason: fault })
    return yield* new SessionInvalid()
  }
  if (Math.abs(now - (found.lastUsedAt ?? 0)) >= touchSeconds || found.lastUsedIp !== ip) {
    yield* apiTokens.touch({ id: found.id, now, seconds: touchSeconds, ip })
    if (isRoleUnknown(found.ownerRole)) yield* emit("admin_role_unknown", { username: found.username })
  }
  const identity: TokenIdentity = {
    kind: "token",
    userId: found.userId,
    username: found.username,
    role: lowerRole(found.role, roleRead(found.ownerRole)),
    id: found.id,
    name: found.name
  }
  return identity
})
