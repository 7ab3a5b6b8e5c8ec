import type { Row } from "./Store.ts"

/* What the checks need to know about the tables: how their rows may change, and how the rows are read. */

/** Rows by id. */
export type Known = Map<string, Row>

/** The states into which an order may change, from each state. */
export const orderMoves: { readonly [from: string]: ReadonlyArray<string> } = {
  pending: ["ready", "invalid"],
  ready: ["pending", "processing", "invalid"],
  processing: ["valid", "invalid"],
  valid: [],
  invalid: []
}
/** The states into which a challenge may change, from each state. */
export const challengeMoves: { readonly [from: string]: ReadonlyArray<string> } = {
  pending: ["processing", "valid", "invalid"],
  processing: ["valid", "invalid"],
  valid: [],
  invalid: []
}
/** The states into which an authorization may change, from each state. */
export const authorizationMoves: { readonly [from: string]: ReadonlyArray<string> } = {
  pending: ["valid", "invalid", "deactivated", "expired"],
  valid: ["deactivated", "expired", "revoked"],
  invalid: [],
  deactivated: [],
  expired: [],
  revoked: []
}

/** Returns a column of 16 octets, as text. */
export const id = (column: string) => `lower(hex(${column}))`
/** Returns an id in the form that it has in URLs. */
export const uuid = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
/** Returns a serial number in one form, however it was written. */
export const bare = (serial: unknown): string => String(serial).toLowerCase().replace(/^0+/, "")

/** Reads all columns of a table that are checked. */
export const queries = {
  orders: `SELECT ${id("id")} AS id, ${
    id("account_id")
  } AS account, status, identifiers, coalesce(kind, 'default') AS kind, cert_serial, cert_not_after, revoked_at, revocation_reason, created_at, json_array_length(identifiers) AS names,
    error IS NOT NULL AS has_error, coalesce(error LIKE '%:unauthorized"%', 0) AS is_withdrawn FROM orders`,
  // A validation that is given up is a failure of the service, about which no notification is sent.
  challenges: `SELECT ${id("id")} AS id, token, status,
    status = 'invalid' AND error NOT LIKE '%:serverInternal%' AS is_refused FROM challenges`,
  authorizations: `SELECT ${id("id")} AS id, ${id("order_id")} AS order_id, status FROM authorizations`,
  accounts: `SELECT ${id("id")} AS id, status, hex(pubkey) AS pubkey, ${
    id("eab_kid")
  } AS kid, scope_lost, created_at FROM accounts`,
  credentials: `SELECT ${
    id("kid")
  } AS id, status, names, wildcards, kinds, validity_seconds, orders_per_day, max_accounts,
    expires_at, prevalidated FROM eab_keys`,
  crls: `SELECT issuer AS id, crl_number, hex(der) AS der FROM crls`
} as const
