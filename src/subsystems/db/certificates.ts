import { Effect, Schema } from "effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { bytes, int, json, nullable, text, uuid } from "./Column.ts"
import { all, first } from "./Database.ts"
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

const certificateStatement = statement({
  name: "order_certificate",
  params: { id: uuid<OrderId>(), profile: text(), accountId: uuid<AccountId>() },
  row: { certificate: text() },
  sql: () =>
    `SELECT certificate FROM orders
     WHERE id = :id AND profile = :profile AND account_id = :accountId AND status = 'valid' AND certificate IS NOT NULL`
})

const compromisedKey = statement({
  name: "order_compromised_key",
  params: { pubkey: bytes },
  row: { id: uuid<OrderId>() },
  sql: ({ dialect }) =>
    `SELECT id FROM orders WHERE revocation_reason = 1 AND cert_pubkey = :pubkey ${
      dialect === "postgres" ? "AND sha256(cert_pubkey) = sha256(:pubkey)" : ""
    } LIMIT 1`
})

/** Certificates of a profile with this serial: one, unless it has had several issuers. */
export const findBySerial = (profile: string, serial: string) => all(bySerial, { profile, serial })

/** The PEM chain of a `valid` order of this account. */
export const certificate = (owned: {
  readonly id: OrderId
  readonly profile: string
  readonly accountId: AccountId
}) => first(certificateStatement, owned)

/** Whether a certificate for this key (DER SubjectPublicKeyInfo) was revoked here for keyCompromise. */
export const isCompromised = (pubkey: Uint8Array) =>
  Effect.map(first(compromisedKey, { pubkey }), (row) => row !== undefined)
