import type { Lifetime, OrderStatus } from "./Order.ts"
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
 * status is stored. So is a valid one, for which it is never stored, because its order is over too. It stays `valid`
 * only while its order is issued, and afterwards.
 */
export const statusShown = (
  authorization: Lifetime & { readonly status: AuthorizationStatus; readonly orderStatus: OrderStatus },
  validitySeconds: number,
  now: number
): AuthorizationStatus => {
  const { orderStatus, status } = authorization
  const mayExpire = status === "pending" ||
    (status === "valid" && orderStatus !== "processing" && orderStatus !== "valid")
  return mayExpire && now >= expiryOf(authorization, validitySeconds) ? "expired" : status
}
