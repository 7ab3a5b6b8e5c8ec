import type { AccountId } from "../../domain/Id.ts"
import { int, uuid } from "../../engine/sql/Column.ts"
import { lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* The accounts that order again and again, and get no certificate. */

// Only the newest orders are read, so that the cost has a bound however many there are.
const topStatement = statement({
  name: "accounts_without_certificate",
  params: { since: int, least: int, most: int, limit: int },
  row: { accountId: uuid<AccountId>(), count: int, since: int },
  sql: () =>
    `SELECT o.account_id AS "accountId", count(*) AS "count", min(o.created_at) AS "since"
     FROM (SELECT account_id, created_at, status FROM orders
       WHERE created_at >= :since ORDER BY created_at DESC LIMIT :most) o
     WHERE o.status <> 'valid' GROUP BY o.account_id HAVING count(*) >= :least ORDER BY count(*) DESC, o.account_id LIMIT :limit`
})

/**
 * Returns the accounts with at least `least` orders without a certificate since an epoch second, those with the most
 * orders first. Only the newest `most` orders count.
 */
export const top = (
  of: { readonly since: number; readonly least: number; readonly most: number; readonly limit: number }
) => lenient(topStatement, of)
