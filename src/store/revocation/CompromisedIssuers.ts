import * as Effect from "effect/Effect"
import { OrderId } from "../../domain/Id.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { all, first, lenient, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* CAs whose keys others may have (docs/contribute/decisions/rotation.md, "A compromised CA"). */

const noOrder = OrderId("00000000-0000-0000-0000-000000000000")

const insertStatement = statement({
  name: "compromised_issuer_insert",
  params: {
    issuer: name(),
    now: int,
    actorKind: text(),
    actorId: nullable(text()),
    scannedTo: uuid<OrderId>()
  },
  row: { issuer: name() },
  sql: () =>
    `INSERT INTO compromised_issuers (issuer, compromised_at, actor_kind, actor_id, scanned_to)
     VALUES (:issuer, :now, :actorKind, :actorId, :scannedTo) ON CONFLICT (issuer) DO NOTHING
     RETURNING issuer AS "issuer"`
})

const openStatement = statement({
  name: "compromised_issuer_open",
  params: { issuer: name() },
  row: { actorKind: text<"admin" | "cli">(), actorId: nullable(text()), scannedTo: uuid<OrderId>() },
  sql: () =>
    `SELECT actor_kind AS "actorKind", actor_id AS "actorId", scanned_to AS "scannedTo"
     FROM compromised_issuers WHERE issuer = :issuer AND scanned_at IS NULL`
})

const scannedStatement = statement({
  name: "compromised_issuer_scanned",
  params: { issuer: name(), scannedTo: uuid<OrderId>(), scannedAt: nullable(int) },
  row: {},
  sql: () => `UPDATE compromised_issuers SET scanned_to = :scannedTo, scanned_at = :scannedAt WHERE issuer = :issuer`
})

const listStatement = statement({
  name: "compromised_issuer_list",
  params: {},
  row: { issuer: name(), compromisedAt: int, scannedAt: nullable(int) },
  sql: () =>
    `SELECT issuer AS "issuer", compromised_at AS "compromisedAt", scanned_at AS "scannedAt"
     FROM compromised_issuers ORDER BY issuer`
})

/** Records that a CA is compromised. Returns `undefined` if this was recorded before. The time is in epoch seconds. */
export const insert = (row: {
  readonly issuer: string
  readonly now: number
  readonly actorKind: string
  readonly actorId: string | undefined
}) => first(insertStatement, { ...row, scannedTo: noOrder })

/**
 * Returns who declared a CA compromised, and the last order that was looked at for a certificate of the CA. Returns
 * `undefined` if the CA is not compromised, or if all its certificates are revoked.
 */
export const open = (issuer: string) => first(openStatement, { issuer })

/** Records how far the orders were looked at; with a time, that all of them were. */
export const scanned = (issuer: string, scannedTo: OrderId, scannedAt: number | undefined) =>
  run(scannedStatement, { issuer, scannedTo, scannedAt })

/** Returns the ids of the compromised CAs. */
export const ids = Effect.map(all(listStatement, {}), (rows) => new Set(rows.map(({ issuer }) => issuer)))

/** Returns the compromised CAs for operators. */
export const shownAll = lenient(listStatement, {})

/** Returns the SQL condition that the CA in a parameter is not compromised. It holds if there is no CA. */
export const uncompromised = (issuer: string): string =>
  `NOT EXISTS (SELECT 1 FROM compromised_issuers c WHERE c.issuer = ${issuer})`
