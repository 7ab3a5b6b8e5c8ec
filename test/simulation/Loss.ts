import { grantIn, grantText } from "./Grants.ts"
import type { Ledger } from "./Ledger.ts"
import type { Row, Store } from "./Store.ts"
import type { Known } from "./Tables.ts"
import { bare, queries } from "./Tables.ts"

/* Finds the facts that clients had learned and that a power cut has destroyed. */

/** The tables that are judged, the nonces that are still valid, and the compromised CAs. */
export type Snapshot = { readonly [table in keyof typeof queries]: Known } & {
  readonly nonces: ReadonlySet<string>
  readonly compromised: ReadonlySet<string>
}

const byId = (rows: ReadonlyArray<Row>): Known => new Map(rows.map((row) => [String(row["id"]), row]))

/** Returns the database at present. */
export const snapshotOf = ({ rows }: Store): Snapshot => ({
  orders: byId(rows(queries.orders)),
  challenges: byId(rows(queries.challenges)),
  authorizations: byId(rows(queries.authorizations)),
  accounts: byId(rows(queries.accounts)),
  credentials: byId(rows(queries.credentials)),
  crls: byId(rows(queries.crls)),
  compromised: new Set(rows("SELECT issuer FROM compromised_issuers").map(({ issuer }) => String(issuer))),
  nonces: new Set(rows("SELECT value FROM nonces").map(({ value }) => String(value)))
})

const hex = (one: string) => one.replaceAll("-", "").toLowerCase()
const decided = ["processing", "valid", "invalid"]

/** Returns the facts from answers that the database had before a power cut and no longer has, each as a sentence. */
export const lostIn = (before: Snapshot, after: Snapshot, ledger: Ledger): ReadonlyArray<string> => {
  const held = (is: (of: Snapshot) => boolean) => !is(before) || is(after)
  const lost: Array<string> = []
  const hold = (what: string, is: (of: Snapshot) => boolean) => {
    if (!held(is)) lost.push(`${what} is lost with the power`)
  }
  for (const account of ledger.accounts) hold(`the account ${account}`, ({ accounts }) => accounts.has(hex(account)))
  for (const account of ledger.deactivated) {
    hold(
      `the end of the account ${account}`,
      ({ accounts }) => accounts.get(hex(account))?.["status"] === "deactivated"
    )
  }
  for (const order of ledger.orders.keys()) hold(`the order ${order}`, ({ orders }) => orders.has(hex(order)))
  for (const order of ledger.finalized) {
    hold(
      `the finalize of the order ${order}`,
      ({ orders }) => decided.includes(String(orders.get(hex(order))?.["status"]))
    )
  }
  for (const [order, serial] of ledger.certificates) {
    hold(`the certificate ${serial}`, ({ orders }) => bare(orders.get(hex(order))?.["cert_serial"]) === serial)
  }
  for (const serial of ledger.revoked) {
    hold(
      `the revocation of ${serial}`,
      ({ orders }) =>
        [...orders.values()].some((row) => row["revoked_at"] !== null && bare(row["cert_serial"]) === serial)
    )
  }
  for (const [kid, grant] of ledger.grants) {
    hold(`the change of the credential ${kid}`, ({ credentials }) => {
      const row = credentials.get(hex(kid))
      return row !== undefined && grantText(grantIn(row)) === grant
    })
  }
  for (const kid of ledger.deleted) {
    hold(`the end of the credential ${kid}`, ({ credentials }) => !credentials.has(hex(kid)))
  }
  for (const ca of ledger.compromised) {
    hold("the declaration of a compromised CA", ({ compromised }) => compromised.has(ca))
  }
  // A used nonce must not be valid again.
  for (const nonce of ledger.spent) {
    if (!before.nonces.has(nonce) && after.nonces.has(nonce)) lost.push(`the nonce ${nonce} is good once more`)
  }
  return lost
}
