import { namedLeafOf } from "../crypto/x509/CertId.ts"
import type { OrderId } from "../domain/Id.ts"
import { refuseUnreadable } from "../engine/sql/Query.ts"
import type { Unreadable } from "../engine/sql/Unreadable.ts"

/* Certificates as orders keep them. One that cannot be read is told apart from none (docs/decisions/unreadable-rows.md). */

/** What is recorded of an order whose chain cannot be read; `statement` has found it. */
export const unreadableChain = (statement: string, id: OrderId): Unreadable => ({
  statement,
  row: `id ${id}`,
  error: "certificate: is no PEM chain whose leaf can be read"
})

/** Whether a stored chain is PEM, leaf first. */
export const isReadable = (chainPem: string): boolean => namedLeafOf(chainPem) !== undefined

/** Fails, with a record of the order. */
export const refuseChain = (statement: string, id: OrderId) => refuseUnreadable(unreadableChain(statement, id))
