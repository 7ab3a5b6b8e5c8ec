import { int } from "../../engine/sql/Column.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"

/*
 * SQL that tells whether an order has not expired. What counts is the expiry that its client was told
 * (docs/decisions/data-model.md, "Expiry is kept").
 */

/**
 * The parameters of {@link isAlive}: the current time, and the lifetime in seconds of orders that were stored without
 * an expiry.
 */
export const lifetimeParams = { now: int, validity: int }

/** See {@link lifetimeParams}; `now` in epoch seconds. */
export interface Alive {
  readonly now: number
  readonly validity: number
}

/** The SQL condition, for an order's row in a table of this name. */
export const isAlive = ({ typed }: Fragments, table = "orders"): string =>
  `(coalesce(${table}.expires_at, ${table}.created_at + ${typed(":validity", "bigint")}) > ${typed(":now", "bigint")})`
