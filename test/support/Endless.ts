import { int } from "../../src/engine/sql/Column.ts"
import { statement } from "../../src/engine/sql/Statement.ts"

/** A read that ends only when the engine is told to stop it. */
export const endless = statement({
  name: "test_endless",
  params: {},
  row: { n: int },
  sql: ({ dialect }) =>
    dialect === "postgres"
      ? `SELECT 1 AS "n" FROM pg_sleep(600)`
      : `SELECT count(*) AS "n" FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)`
})
