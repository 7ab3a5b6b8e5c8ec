/** The limits of `[limits]`, by the names of their keys, and the limit of a credential. */
export type LimitName =
  | "accounts_per_network"
  | "orders_per_account"
  | "names_per_account"
  | "pending_authorizations_per_account"
  | "orders_per_replacement"
  | "orders_per_day"

/** What each limit counts, in words. The sentence to a client that has reached the limit contains these words. */
export const limitedThings: { readonly [Name in LimitName]: string } = {
  accounts_per_network: "new accounts from this network",
  orders_per_account: "new orders of this account",
  names_per_account: "names in new orders of this account",
  pending_authorizations_per_account: "pending authorizations of this account",
  orders_per_replacement: "orders that replace this certificate",
  orders_per_day: "new orders with this credential"
}

/** A limit that a request would exceed. */
export interface Reached {
  readonly limit: LimitName
  /** The value of the limit. */
  readonly most: number
  /** The window of the limit, in seconds. Absent if the limit counts things that exist at the same time. */
  readonly windowSeconds?: number
  /** The number of seconds after which a request may succeed again, at least 1. */
  readonly retryAfter: number
}
