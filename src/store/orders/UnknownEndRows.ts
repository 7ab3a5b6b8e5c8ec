import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, name, packedUuid, rows, uuid } from "../../engine/sql/Column.ts"
import { all, lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { chain, chainOf } from "./StoredChain.ts"

/* The orders whose certificate has no stored expiry, because they were copied from a database without that column. */

const findStatement = statement({
  name: "order_unknown_end",
  params: { profile: name(), limit: int },
  row: { id: uuid<OrderId>(), certificate: chain },
  sql: (f) => {
    const those = (revoked: string) =>
      `SELECT * FROM (SELECT id, ${
        chainOf("", f)
      } AS certificate FROM orders WHERE profile = :profile AND certificate IS NOT NULL
         AND revoked_at ${revoked} AND cert_not_after IS NULL LIMIT :limit) AS part`
    return `SELECT id AS "id", certificate AS "certificate" FROM (${those("IS NULL")} UNION ALL ${
      those("IS NOT NULL")
    }) AS unknown LIMIT :limit`
  }
})

const setStatement = statement({
  name: "order_set_end",
  params: { ends: rows },
  row: { id: uuid<OrderId>() },
  sql: ({ at, each }) =>
    `UPDATE orders SET cert_not_after = known.ends FROM
       (SELECT ${at(0, "uuid")} AS subject, ${at(1, "int")} AS ends FROM ${each(":ends")}) AS known
     WHERE id = known.subject RETURNING id AS "id"`
})

/** Returns up to `limit` certificates of a profile whose expiry is unknown. */
export const find = (profile: string, limit: number) => lenient(findStatement, { profile, limit })

/**
 * Stores expiry times in epoch seconds. For a chain that cannot be read, the time is -1. Returns how many times were
 * stored.
 */
export const set = (ends: ReadonlyArray<readonly [id: OrderId, notAfter: number]>) =>
  Effect.map(all(setStatement, { ends: ends.map(([id, notAfter]) => [packedUuid(id), notAfter]) }), (set) => set.length)
