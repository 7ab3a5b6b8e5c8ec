import type { AccountId } from "../domain/Id.ts"
import type { ClientFacts } from "../domain/words/JobKind.ts"
import { shareOf } from "../engine/queue/Job.ts"
import type { ProfileConfig } from "../settings/AppConfig.ts"

/**
 * The sender of a request: the profile, an account that has proved control of its key, and the facts about the client.
 */
export interface Caller {
  readonly profile: ProfileConfig
  readonly accountId: AccountId
  /** base64url SHA-256 of the account key (RFC 7638). */
  readonly thumbprint: string
  /** DER SubjectPublicKeyInfo of the account key. */
  readonly pubkey: Uint8Array
  readonly client: ClientFacts
  /** The credential with which the account was bound, if it was bound. */
  readonly eabKid?: string | undefined
  /** Since when an operator has blocked the account, if it was blocked when the request arrived. */
  readonly blockedAt?: number | undefined
}

/** Returns the scope in which the caller's records are looked up. Every look-up names the profile and the account. */
export const scopeOf = (caller: Caller) => ({ profile: caller.profile.name, accountId: caller.accountId })

/** Returns the share in which the caller's jobs count. */
export const shareOfCaller = ({ accountId, profile }: Caller) => shareOf(profile.name, accountId)

/** Returns what an audit row records about the request that caused it. */
export const auditFacts = (profile: string, client: ClientFacts) => ({
  profile,
  clientIp: client.ip,
  clientPtr: client.ptr,
  userAgent: client.user_agent,
  requestId: client.request_id
})
