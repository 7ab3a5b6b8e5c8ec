import { int } from "../../engine/sql/Column.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"

/*
 * SQL that tests whether an order has not expired yet. The expiry is the time that the client was told
 * (docs/contribute/decisions/data-model.md, "Expiry is kept").
 */

/**
 * The parameters of {@link isAlive}: the current time, and the lifetime in seconds that applies to orders without a
 * stored expiry.
 */
export const lifetimeParams = { now: int, validity: int }

/** The values of {@link lifetimeParams}; `now` is in epoch seconds. */
export interface Alive {
  readonly now: number
  readonly validity: number
}

/**
 * Returns the SQL condition that an order has not expired. `table` is the name or the alias of the table with the
 * order.
 */
export const isAlive = ({ typed }: Fragments, table = "orders"): string =>
  `(coalesce(${table}.expires_at, ${table}.created_at + ${typed(":validity", "bigint")}) > ${typed(":now", "bigint")})`
