import { int, rows } from "../../engine/sql/Column.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* How many certificates end within each of several periods. */

const countsStatement = statement({
  name: "certificate_end_counts",
  params: { periods: rows, most: int },
  row: { from: int, count: int },
  // Each profile has its part of the index. The limit ends the reading of a period with very many certificates.
  sql: ({ at, each }) =>
    `SELECT ${at(0, "int")} AS "from", (SELECT count(*) FROM (
         SELECT 1 FROM ${distinct("orders", "profile")} CROSS JOIN orders o
         WHERE o.profile = p.profile AND o.certificate IS NOT NULL AND o.revoked_at IS NULL
           AND o.cert_not_after >= ${at(0, "int")} AND o.cert_not_after < ${
      at(1, "int")
    } LIMIT :most) AS found) AS "count"
     FROM ${each(":periods")}`
})

/**
 * Counts the unrevoked certificates that end within each period, which has its first second and the first second after
 * it. At most `most` certificates of a period are counted.
 */
export const countsOfEnds = (
  periods: ReadonlyArray<readonly [from: number, to: number]>,
  most: number
) => lenient(countsStatement, { periods, most })
