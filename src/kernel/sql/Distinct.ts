/**
 * The values of a column that few values fill, as a table `p` with that column: met by jumping from one to the next in an index
 * that begins with it, since the rows may be very many.
 */
export const distinct = (table: string, column: string): string =>
  `(WITH RECURSIVE met(${column}) AS (
      SELECT min(${column}) FROM ${table}
      UNION ALL SELECT (SELECT min(n.${column}) FROM ${table} n WHERE n.${column} > met.${column}) FROM met
        WHERE met.${column} IS NOT NULL)
    SELECT ${column} FROM met WHERE ${column} IS NOT NULL) p`
