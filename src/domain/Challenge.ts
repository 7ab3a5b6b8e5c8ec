import * as Struct from "effect/Struct"
import type { AuthorizationId, ChallengeId } from "./Id.ts"
import type { DnsName } from "./Identifier.ts"
import { isWildcard } from "./Identifier.ts"
import type { ProblemDocument } from "./ProblemDocument.ts"

/**
 * The challenge types (RFC 8555 section 8, RFC 8737), and what each of them proves: control of a host, or control of
 * the DNS. A wildcard can only be proved by control of the DNS, because no single host has every name below the base of
 * the wildcard. A CHECK of the table `challenges` also lists the types.
 */
const challengeTypes = {
  "http-01": { proves: "host" },
  "dns-01": { proves: "dns" },
  "tls-alpn-01": { proves: "host" }
} as const satisfies { readonly [type: string]: { readonly proves: "dns" | "host" } }

export type ChallengeType = keyof typeof challengeTypes

/** The names of the challenge types. */
export const challengeTypeNames: ReadonlyArray<ChallengeType> = Struct.keys(challengeTypes)

/** Returns whether a challenge of this type proves control of the DNS. */
export const provesDns = (type: ChallengeType): boolean => challengeTypes[type].proves === "dns"

/** Returns the types that are offered for a name, of those that are enabled. */
export const offeredTypes = (enabled: ReadonlyArray<ChallengeType>, name: DnsName): ReadonlyArray<ChallengeType> =>
  isWildcard(name) ? enabled.filter(provesDns) : enabled

export type ChallengeStatus = "pending" | "processing" | "valid" | "invalid"

/**
 * The moves of a challenge between statuses (RFC 8555 section 7.1.6). If validation is bypassed, nothing happens
 * between `claim` and `accept`, so `bypass` replaces both moves.
 */
export const challengeMoves = {
  claim: { from: ["pending"], to: "processing" },
  accept: { from: ["processing"], to: "valid" },
  bypass: { from: ["pending"], to: "valid" },
  refuse: { from: ["processing"], to: "invalid" }
} as const satisfies {
  readonly [move: string]: { readonly from: ReadonlyArray<ChallengeStatus>; readonly to: ChallengeStatus }
}

/** A row of `challenges`. */
export interface Challenge {
  readonly id: ChallengeId
  readonly authzId: AuthorizationId
  readonly type: ChallengeType
  readonly token: string
  readonly status: ChallengeStatus
  readonly validatedAt: number | undefined
  readonly error: ProblemDocument | undefined
}

/**
 * Returns the key authorization (RFC 8555 section 8.1) for a token and an account key. The client must present it to
 * prove control.
 */
export const keyAuthorization = (token: string, thumbprint: string): string => `${token}.${thumbprint}`
