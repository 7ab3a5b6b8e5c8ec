/** The limits of `[limits]`, by the names of their keys. */
export type LimitName =
  | "accounts_per_network"
  | "orders_per_account"
  | "names_per_account"
  | "pending_authorizations_per_account"

/** The sentences for a client that has reached a limit. */
export const limitSentences: { readonly [Name in LimitName]: string } = {
  accounts_per_network: "Too many new accounts from this network",
  orders_per_account: "Too many new orders of this account",
  names_per_account: "Too many names in new orders of this account",
  pending_authorizations_per_account: "Too many pending authorizations of this account"
}
