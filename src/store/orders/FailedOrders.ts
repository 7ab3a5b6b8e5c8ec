import { int, nullable } from "../../engine/sql/Column.ts"
import { lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { causeColumn, problemColumn } from "../Columns.ts"
import { unissued } from "./Unissued.ts"

/* Why the newest orders failed. */

const challengeOf = (column: string): string =>
  `(SELECT c.${column} FROM authorizations a JOIN challenges c ON c.authz_id = a.id
    WHERE a.order_id = o.id AND c.error IS NOT NULL LIMIT 1)`

const newestStatement = statement({
  name: "order_failed_newest",
  params: { since: int, limit: int },
  row: { error: nullable(problemColumn), challengeError: nullable(problemColumn), cause: nullable(causeColumn) },
  sql: (f) =>
    `SELECT o.error AS "error", ${challengeOf("error")} AS "challengeError", ${challengeOf("cause")} AS "cause"
     FROM orders o WHERE o.status = 'invalid'${unissued(f, "o.")} AND o.created_at >= :since
     ORDER BY o.created_at DESC LIMIT :limit`
})

/**
 * Returns the problems of the newest failed orders that were placed since an epoch second: the problem of the order,
 * and of one of its challenges.
 */
export const newestFailed = (of: { readonly since: number; readonly limit: number }) => lenient(newestStatement, of)
