import { namedLeafOf } from "../crypto/x509/CertId.ts"
import type { OrderId } from "../domain/Id.ts"
import { refuseUnreadable } from "../engine/sql/Query.ts"
import type { Unreadable } from "../engine/sql/Unreadable.ts"

/*
 * Certificates as orders store them. A certificate that cannot be read is not treated like a missing certificate
 * (docs/contribute/decisions/unreadable-rows.md).
 */

/**
 * Returns the record that is logged about an order whose chain cannot be read. `statement` is the statement that found
 * the order.
 */
export const unreadableChain = (statement: string, id: OrderId): Unreadable => ({
  statement,
  row: `id ${id}`,
  error: "certificate: is no PEM chain whose leaf can be read"
})

/** Returns whether a stored chain is readable PEM that begins with a leaf. */
export const isReadable = (chainPem: string): boolean => namedLeafOf(chainPem) !== undefined

/** Logs an order whose chain cannot be read, and fails. */
export const refuseChain = (statement: string, id: OrderId) => refuseUnreadable(unreadableChain(statement, id))
