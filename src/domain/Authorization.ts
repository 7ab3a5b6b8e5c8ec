import type { Lifetime } from "./Order.ts"
import { expiryOf } from "./Order.ts"

/** The status of an authorization (RFC 8555 section 7.1.6). Nothing writes `revoked`, but old data may contain it. */
export type AuthorizationStatus = "pending" | "valid" | "invalid" | "deactivated" | "expired" | "revoked"

/** The moves of an authorization between statuses (RFC 8555 section 7.1.6). */
export const authorizationMoves = {
  accept: { from: ["pending"], to: "valid" },
  refuse: { from: ["pending"], to: "invalid" },
  expire: { from: ["pending"], to: "expired" },
  deactivate: { from: ["pending", "valid"], to: "deactivated" }
} as const satisfies {
  readonly [move: string]: { readonly from: ReadonlyArray<AuthorizationStatus>; readonly to: AuthorizationStatus }
}

/**
 * Returns the status that clients see. A pending authorization past its expiry is shown as `expired`, even before this
 * status is stored.
 */
export const statusShown = (
  authorization: Lifetime & { readonly status: AuthorizationStatus },
  validitySeconds: number,
  now: number
): AuthorizationStatus =>
  authorization.status === "pending" && now >= expiryOf(authorization, validitySeconds)
    ? "expired"
    : authorization.status
