import * as Effect from "effect/Effect"
import * as rows from "../../store/orders/OrphanedCertificateRows.ts"
import { readForOperator } from "./OperatorReads.ts"

/** Returns a page of the certificates, newest order first, and the number of matches. */
export const list = (filters: rows.OrphanFilters, page: { readonly limit: number; readonly offset: number }) =>
  readForOperator(Effect.all({ items: rows.search(filters, page), total: rows.countMatches(filters) }))
