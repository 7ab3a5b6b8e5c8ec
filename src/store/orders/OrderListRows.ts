import type { AccountId, OrderId } from "../../domain/Id.ts"
import { int, name, uuid } from "../../engine/sql/Column.ts"
import { all, lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { isAlive, lifetimeParams } from "./Lifetime.ts"

const id = uuid<OrderId>()

const ofAccount = statement({
  name: "order_list_of_account",
  params: { profile: name(), accountId: uuid<AccountId>(), before: id, ...lifetimeParams, limit: int },
  row: { id, isShown: int },
  sql: (f) =>
    `SELECT id, CASE WHEN status IN ('processing', 'valid') OR (status IN ('pending', 'ready')
       AND error IS NULL AND ${isAlive(f)}) THEN 1 ELSE 0 END AS "isShown"
     FROM orders WHERE account_id = :accountId AND profile = :profile AND id < :before ORDER BY id DESC LIMIT :limit`
})

/**
 * Returns the orders of an account that are older than `before`, newest first. `isShown` is false for an order that
 * failed, expired unfinished, or can no longer become ready. Such orders are also returned, so that no request reads
 * more than `limit` rows.
 */
export const list = (page: Parameters<typeof all<typeof ofAccount.params, typeof ofAccount.row>>[1]) =>
  lenient(ofAccount, page)
