import * as Schema from "effect/Schema"
import { accountAlgorithms } from "../crypto/jose/Jwk.ts"
import { count, flag, integer, words } from "../engine/config/Key.ts"

/* The sections about accounts: who may have one, how its requests are signed, and how much it may request. */

/** The keys of `[limits]`. */
export const limits = Schema.Struct({
  window_seconds: count(3600, "Length of the window in which new accounts, orders and names are counted."),
  accounts_per_network: integer(
    0,
    { min: 0 },
    "How many accounts one network may make within the window. A network is the /24 of an IPv4 address or the /48 of an IPv6 address. 0 means no limit."
  ),
  orders_per_account: integer(
    0,
    { min: 0 },
    "How many orders one account may make within the window. 0 means no limit."
  ),
  names_per_account: integer(
    0,
    { min: 0 },
    "How many names the new orders of one account may have within the window. 0 means no limit."
  ),
  pending_authorizations_per_account: integer(
    0,
    { min: 0 },
    "How many pending authorizations one account may have at any time. 0 means no limit."
  ),
  orders_per_replacement: count(
    5,
    "How many orders may be made within the window to replace one certificate (RFC 9773). Such orders count in no other limit. This key has an effect only if another key limits orders."
  )
})

/** The keys of `[account]`. */
export const account = Schema.Struct({
  algorithms: words(
    ["ES256", "RS256"],
    { offered: accountAlgorithms },
    "Algorithms with which clients may sign their requests. ES256 must be one of them (RFC 8555 section 6.2)."
  )
})

/** The keys of `[eab]`. */
export const eab = Schema.Struct({
  enabled: flag(false, "New accounts need a credential of `acme-svc eab create` (external account binding).")
})
