import * as Effect from "effect/Effect"
import type { AuditRow } from "../../domain/Audit.ts"
import type { OrderId } from "../../domain/Id.ts"
import type { ValuesOf } from "../../engine/sql/Column.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { Database } from "../../engine/sql/Database.ts"
import { first } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { currentMillis } from "../../engine/Time.ts"
import * as audit from "../AuditRows.ts"
import * as alternateChains from "./AlternateChains.ts"
import { certificateParams, issuing } from "./OrderRows.ts"
import { chainParams, keeping, partsOf } from "./StoredChain.ts"

/*
 * Stores a certificate with its order, and inserts its issuers and the audit row. On PostgreSQL this is one statement,
 * because each statement is a round trip. SQLite cannot update within an INSERT, so on SQLite each row has a statement
 * of its own.
 */

const row = { id: certificateParams.id }

const together = statement({
  name: "order_issue_recorded",
  params: { ...audit.auditParams, ...certificateParams, issuersPem: chainParams.issuersPem },
  row,
  only: "postgres",
  sql: (f) =>
    `WITH issued AS (${issuing(f)}), kept AS (${keeping(f, "issued")}), recorded AS (${audit.insertion(f, "issued")})
     SELECT id FROM issued`
})

const absent = { issuer: undefined, renewsAt: undefined }

const alone = statement({ name: "order_issue", params: certificateParams, row, only: "sqlite", sql: issuing })

/** A certificate and its order. */
export interface StoredCertificate
  extends Omit<ValuesOf<typeof certificateParams>, keyof typeof chainParams | "issuer" | "renewsAt"> {
  /** The chain as PEM, leaf first. */
  readonly chain: string
  /** The id of the CA of this service that signed the certificate. Absent if another party signed it. */
  readonly issuer?: string | undefined
  /** When the hour begins in which it should be renewed, in epoch seconds. Absent if its life alone says when. */
  readonly renewsAt?: number | undefined
}

/**
 * Moves an order from `processing` to `valid`, stores its certificate and inserts the audit row, if the account and all
 * authorizations are still valid, the key is not burnt and the CA is not compromised. Otherwise returns `undefined` and
 * changes nothing. The caller must have locked the order.
 */
export const issue = (
  certificate: StoredCertificate,
  record: AuditRow<"certificate_issued">
): Effect.Effect<{ readonly id: OrderId } | undefined, StorageFailed, Database> =>
  Effect.gen(function*() {
    const { dialect } = yield* Database
    const parts = partsOf(certificate.chain)
    const values = { ...absent, ...certificate, ...parts }
    if (dialect === "sqlite") {
      const stored = yield* first(alone, values)
      if (stored === undefined) return undefined
      yield* alternateChains.keep(parts)
      yield* audit.insert(record)
      return stored
    }
    const millis = yield* currentMillis
    const stored = yield* first(together, { ...audit.valuesOf(record, millis), ...values })
    if (stored !== undefined) yield* audit.told(record, millis)
    return stored
  })
