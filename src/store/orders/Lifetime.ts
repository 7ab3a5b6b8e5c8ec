import { int } from "../../kernel/sql/Column.ts"
import type { Fragments } from "../../kernel/sql/Statement.ts"

/* Whether an order has not expired: as its client was told when it was made (docs/decisions/data-model.md, "Expiry is kept"). */

/** The parameters of {@link isAlive}: now, and how many seconds an order lives that a version before this one made. */
export const lifetimeParams = { now: int, validity: int }

/** See {@link lifetimeParams}; `now` in epoch seconds. */
export interface Alive {
  readonly now: number
  readonly validity: number
}

/** The condition, of an order's row in a table of this name. */
export const isAlive = ({ typed }: Fragments, table = "orders"): string =>
  `(coalesce(${table}.expires_at, ${table}.created_at + ${typed(":validity", "bigint")}) > ${typed(":now", "bigint")})`
