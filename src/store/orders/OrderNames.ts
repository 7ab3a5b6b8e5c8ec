import * as Effect from "effect/Effect"
import { firstIdAt, OrderId } from "../../domain/Id.ts"
import { int, text, uuid } from "../../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { first, lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { reversedRange } from "./NameWalk.ts"

/*
 * Finds orders by their names alone. The rows of the names show which orders match, and ids begin with the time. So
 * only the orders of one page are read from the table of orders, where the orders of one zone are far apart.
 */

/** What a search looks for: a whole name, or one or more whole labels at the end of a name. */
export type Named =
  | { readonly identifier: string; readonly identifierSuffix?: undefined }
  | { readonly identifierSuffix: string; readonly identifier?: undefined }

/** The SQL conditions for the rows `i` of matching names. The parameters are in {@link nameColumns}. */
export const nameConditions = {
  // The index of names begins with the profile.
  identifier: `i.profile IN (SELECT profile FROM ${distinct("order_identifiers", "profile")}) AND i.name = :identifier`,
  identifierSuffix: "(i.name_rev = :reversed OR (i.name_rev >= :belowFrom AND i.name_rev < :belowTo))"
} as const

/** The parameters of {@link nameConditions}. */
export const nameColumns = { identifier: text(), reversed: text(), belowFrom: text(), belowTo: text() }

const perName = <S>(make: (condition: string) => S) => {
  const [whole, end] = [make(nameConditions.identifier), make(nameConditions.identifierSuffix)]
  return ({ identifier }: Named): S => identifier === undefined ? end : whole
}

// The ids of rows that were converted from another service do not always begin with a time. Such rows come last.
const newestStatement = perName((condition) =>
  statement({
    name: "order_names_newest",
    params: { ...nameColumns, timed: uuid<OrderId>(), limit: int, offset: int },
    row: { id: uuid<OrderId>() },
    sql: () =>
      `SELECT id AS "id" FROM (SELECT DISTINCT i.order_id AS id FROM order_identifiers i WHERE ${condition}) AS found
       ORDER BY (id < :timed) DESC, id DESC LIMIT :limit OFFSET :offset`
  })
)

const countStatement = perName((condition) =>
  statement({
    name: "order_names_count",
    params: nameColumns,
    row: { total: int },
    sql: () => `SELECT count(DISTINCT i.order_id) AS "total" FROM order_identifiers i WHERE ${condition}`
  })
)

const valuesOf = ({ identifier = "", identifierSuffix = "" }: Named) => ({
  identifier,
  ...reversedRange(identifierSuffix)
})

const daySeconds = 86_400

/** Returns the ids of one page of orders with a matching name, newest first. */
export const newest = (
  named: Named,
  page: { readonly limit: number; readonly offset: number }
): Effect.Effect<ReadonlyArray<OrderId>, StorageFailed, Database> =>
  Effect.flatMap(currentSeconds, (now) =>
    Effect.map(
      lenient(newestStatement(named), { ...valuesOf(named), timed: OrderId(firstIdAt(now + daySeconds)), ...page }),
      (found) => found.map(({ id }) => id)
    ))

/** Counts the orders with a matching name. */
export const count = (named: Named): Effect.Effect<number, StorageFailed, Database> =>
  Effect.map(first(countStatement(named), valuesOf(named)), (row) => row?.total ?? 0)
