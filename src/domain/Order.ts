import type { AccountId, OrderId } from "./Id.ts"
import type { ProblemDocument } from "./ProblemDocument.ts"

/** Every status of an order (RFC 8555 section 7.1.6). */
export const orderStatuses = ["pending", "ready", "processing", "valid", "invalid"] as const
export type OrderStatus = (typeof orderStatuses)[number]

/**
 * The words with which lists of orders are filtered. An order whose certificate was revoked is still `valid`; both
 * words find it.
 */
export const orderFilterWords = [...orderStatuses, "revoked"] as const
export type OrderFilterWord = (typeof orderFilterWords)[number]

/** Returns whether an order matches a filter word. */
export const hasFilterWord = (
  word: OrderFilterWord,
  order: { readonly status: OrderStatus; readonly revokedAt: number | undefined }
): boolean => word === "revoked" ? order.revokedAt !== undefined : order.status === word

/** The moves of an order between statuses (RFC 8555 section 7.1.6). */
export const orderMoves = {
  /** All authorizations are valid. */
  promote: { from: ["pending"], to: "ready" },
  /** An authorization was deactivated before finalize. The error of the order says so. */
  demote: { from: ["ready"], to: "pending" },
  /** Finalize was accepted. */
  claim: { from: ["ready"], to: "processing" },
  /** The certificate is stored. */
  issue: { from: ["processing"], to: "valid" },
  /** The order has expired, and gives up its claim to replace a certificate. */
  lapse: { from: ["pending", "ready"], to: "invalid" },
  /** A validation or the issuance failed or was given up, or a pending order has lost an authorization. */
  fail: { from: ["pending", "ready", "processing"], to: "invalid" }
} as const satisfies {
  readonly [move: string]: { readonly from: ReadonlyArray<OrderStatus>; readonly to: OrderStatus }
}

/** The identifier object of the protocol. Certificates are issued only for the type `dns`. */
export interface OrderIdentifier {
  readonly type: "dns"
  readonly value: string
}

/** A row of `orders` in the form that the ACME surface and issuance need. Times are epoch seconds. */
export interface Order {
  readonly id: OrderId
  readonly profile: string
  readonly accountId: AccountId
  readonly status: OrderStatus
  readonly identifiers: ReadonlyArray<OrderIdentifier>
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
  readonly replaces: string | undefined
  readonly error: ProblemDocument | undefined
  readonly createdAt: number
  readonly expiresAt: number | undefined
  /** The kind of certificate. Absent for the kind `default`. */
  readonly kind: string | undefined
  /** 1 if a worker that does not know kinds and scopes must not sign for the order. */
  readonly restricted: number | undefined
}

/** Returns the names of an order, in the order of the request. */
export const namesOf = (
  { identifiers }: { readonly identifiers: ReadonlyArray<{ readonly value: string }> }
): ReadonlyArray<string> => identifiers.map(({ value }) => value)

/**
 * When an order was made, and the expiry that the client was told, in epoch seconds. Versions before 0.1 did not store
 * the expiry.
 */
export type Lifetime = Pick<Order, "createdAt" | "expiresAt">

/**
 * Returns when an order and its authorizations expire. This is the time that the client was told, even if the
 * configuration has changed since then (docs/contribute/decisions/data-model.md, "Expiry is kept").
 */
export const expiryOf = ({ createdAt, expiresAt }: Lifetime, validitySeconds: number): number =>
  expiresAt ?? createdAt + validitySeconds

/**
 * Returns whether an order expired before it was finalized, even if that is not stored yet. An order that failed before
 * it expired has an error, and counts as failed.
 */
export const isLapsed = (
  order: Lifetime & Pick<Order, "error" | "status">,
  validitySeconds: number,
  now: number
): boolean =>
  now >= expiryOf(order, validitySeconds) &&
  (order.status === "pending" || order.status === "ready" || (order.status === "invalid" && order.error === undefined))

/**
 * Returns the status that clients see. An unfinished order past its expiry is shown as `invalid`, although its stored
 * status does not change.
 */
export const statusShown = (
  order: Lifetime & { readonly status: OrderStatus },
  validitySeconds: number,
  now: number
): OrderStatus =>
  (order.status === "pending" || order.status === "ready") && now >= expiryOf(order, validitySeconds)
    ? "invalid"
    : order.status
