import { Schema } from "effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { bytes, int, json, nullable, text, uuid } from "./Column.ts"
import { all } from "./Database.ts"
import { statement } from "./Statement.ts"

const issued = {
  orderId: uuid<OrderId>(),
  accountId: uuid<AccountId>(),
  identifiers: json(Schema.Array(Schema.Struct({ type: Schema.Literal("dns"), value: Schema.String }))),
  certificate: text(),
  certPubkey: nullable(bytes),
  revokedAt: nullable(int)
}

const bySerial = statement({
  name: "certificate_by_serial",
  params: { profile: text(), serial: text() },
  row: issued,
  sql: () =>
    `SELECT id AS "orderId", account_id AS "accountId", identifiers AS "identifiers", certificate AS "certificate",
       cert_pubkey AS "certPubkey", revoked_at AS "revokedAt"
     FROM orders WHERE profile = :profile AND cert_serial = :serial AND certificate IS NOT NULL`
})

/** Certificates of a profile with this serial: one, unless it has had several issuers. */
export const findBySerial = (profile: string, serial: string) => all(bySerial, { profile, serial })
