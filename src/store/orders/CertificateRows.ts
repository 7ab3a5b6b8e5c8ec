import type { AccountId, OrderId } from "../../domain/Id.ts"
import { bytes, int, name, nullable, rows, text, texts, uuid } from "../../engine/sql/Column.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { all, first } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { identifiersColumn } from "../Columns.ts"
import { chain, chainOf } from "./StoredChain.ts"

const issued = {
  orderId: uuid<OrderId>(),
  accountId: uuid<AccountId>(),
  identifiers: identifiersColumn,
  certificate: chain,
  certPubkey: nullable(bytes),
  revokedAt: nullable(int)
}

const issuedColumns = (f: Fragments) =>
  `id AS "orderId", account_id AS "accountId", identifiers AS "identifiers",
       ${chainOf("", f)} AS "certificate", cert_pubkey AS "certPubkey", revoked_at AS "revokedAt"`

const bySerialStatement = statement({
  name: "certificate_by_serial",
  params: { profile: name(), serial: name() },
  row: {
    ...issued,
    renewalStart: nullable(int),
    renewalEnd: nullable(int),
    renewalUrl: nullable(text()),
    renewsAt: nullable(int),
    campaigns: int
  },
  sql: (f) =>
    `SELECT ${
      issuedColumns(f)
    }, renewal_start AS "renewalStart", renewal_end AS "renewalEnd", renewal_url AS "renewalUrl",
       renews_at AS "renewsAt",
       (SELECT count(*) FROM campaign_certificates c WHERE c.order_id = orders.id AND c.left_at IS NULL) AS "campaigns"
     FROM orders LEFT JOIN upstream_orders ON order_id = id
     WHERE profile = :profile AND cert_serial = :serial AND certificate IS NOT NULL`
})

const certificateStatement = statement({
  name: "order_certificate",
  params: { id: uuid<OrderId>(), profile: name(), accountId: uuid<AccountId>() },
  row: { certificate: chain, alternates: nullable(texts) },
  sql: (f) =>
    `SELECT ${chainOf("", f)} AS "certificate", alternate_chains AS "alternates" FROM orders
     WHERE id = :id AND ${f.checked("profile")} = :profile AND ${f.checked("account_id")} = :accountId
       AND ${f.checked("status")} = 'valid' AND certificate IS NOT NULL`
})

// The expressions are the same as in the index, which on PostgreSQL contains the hash of the key. No other index has
// this order, so PostgreSQL uses this index even while the table is empty.
const liveStatement = statement({
  name: "certificate_live_of_key",
  params: { pubkey: bytes, now: int, after: uuid<OrderId>(), limit: int },
  row: { ...issued, profile: name(), serial: name() },
  sql: (f) =>
    `SELECT ${issuedColumns(f)}, profile AS "profile", cert_serial AS "serial" FROM orders
     WHERE ${
      f.dialect === "postgres" ? `${f.leads("sha256(cert_pubkey)", "sha256(:pubkey)")} AND` : ""
    } cert_pubkey = :pubkey
       AND certificate IS NOT NULL AND revoked_at IS NULL AND (cert_not_after IS NULL OR cert_not_after > :now)
       AND id > :after
     ORDER BY ${f.dialect === "postgres" ? "sha256(cert_pubkey), " : ""}id LIMIT :limit`
})

const livePageStatement = statement({
  name: "certificates_live_page",
  params: { now: int, after: uuid<OrderId>(), limit: int },
  row: { ...issued, profile: name(), serial: name() },
  sql: (f) =>
    `SELECT ${issuedColumns(f)}, profile AS "profile", cert_serial AS "serial" FROM orders
     WHERE id > :after AND certificate IS NOT NULL AND revoked_at IS NULL
       AND (cert_not_after IS NULL OR cert_not_after > :now)
     ORDER BY id LIMIT :limit`
})

// The index of serials begins with the profile.
const ofSerialsStatement = statement({
  name: "certificates_of_serials",
  params: { serials: rows },
  row: { ...issued, profile: name(), serial: name(), notAfter: nullable(int) },
  sql: (f) =>
    `SELECT ${issuedColumns(f)}, profile AS "profile", cert_serial AS "serial", cert_not_after AS "notAfter"
     FROM orders ${f.indexedBy("orders_profile_cert_serial")}
     WHERE profile IN (SELECT profile FROM ${distinct("orders", "profile")})
       AND cert_serial IN (SELECT ${f.at(0, "text")} FROM ${f.each(":serials")})
       AND cert_serial IS NOT NULL AND certificate IS NOT NULL`
})

/**
 * Returns the next certificates that are neither revoked nor expired, by the ids of their orders, of every profile and
 * CA.
 */
export const livePage = (page: { readonly now: number; readonly after: OrderId; readonly limit: number }) =>
  all(livePageStatement, page)

/** Finds the certificates with these serials, of every profile and CA. */
export const ofSerials = (serials: ReadonlyArray<string>) =>
  all(ofSerialsStatement, { serials: serials.map((serial) => [serial]) })

/**
 * Finds the certificates of a profile with this serial. There can be several only if the profile has had several
 * issuers. A relayed certificate comes with the renewal window that its upstream suggests, in epoch seconds. `campaigns`
 * is the number of campaigns that have matched the certificate, and that it has not left.
 */
export const findBySerial = (profile: string, serial: string) => all(bySerialStatement, { profile, serial })

/** Returns the PEM chain of a `valid` order of this account, and the ids of its alternate chains. */
export const certificate = (owned: {
  readonly id: OrderId
  readonly profile: string
  readonly accountId: AccountId
}) => first(certificateStatement, owned)

/**
 * Returns the certificates of a key (DER SubjectPublicKeyInfo) that are neither revoked nor expired, in all profiles.
 * They are sorted by the id of the order, and follow a given order.
 */
export const liveOfKey = (page: {
  readonly pubkey: Uint8Array
  readonly now: number
  readonly after: OrderId
  readonly limit: number
}) => all(liveStatement, page)
