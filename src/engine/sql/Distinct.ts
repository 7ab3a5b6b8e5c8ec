/**
 * Returns SQL for the distinct values of a column that has few of them, as a table `p` with this column. The table may
 * have very many rows. So the query jumps from one value to the next in an index that begins with the column.
 */
export const distinct = (table: string, column: string): string =>
  `(WITH RECURSIVE met(${column}) AS (
      SELECT min(${column}) FROM ${table}
      UNION ALL SELECT (SELECT min(n.${column}) FROM ${table} n WHERE n.${column} > met.${column}) FROM met
        WHERE met.${column} IS NOT NULL)
    SELECT ${column} FROM met WHERE ${column} IS NOT NULL) p`
