import type { AuthorizationId, ChallengeId } from "./Id.ts"
import type { ProblemDocument } from "./ProblemDocument.ts"

/** RFC 8555 section 8, RFC 8737. The schema knows all three types; a profile offers those that its build can validate. */
export type ChallengeType = "http-01" | "dns-01" | "tls-alpn-01"

export type ChallengeStatus = "pending" | "processing" | "valid" | "invalid"

/** What may happen to a challenge ("States and transitions: Challenge"). */
export const challengeMoves = {
  claim: { from: ["pending"], to: "processing" },
  accept: { from: ["processing"], to: "valid" },
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

/** RFC 8555 section 8.1: what the client must show it controls, for one token and one account key. */
export const keyAuthorization = (token: string, thumbprint: string): string => `${token}.${thumbprint}`
