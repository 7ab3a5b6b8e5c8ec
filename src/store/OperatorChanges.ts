import * as Effect from "effect/Effect"
import { int } from "../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../engine/sql/Database.ts"
import { first } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

const sinceStatement = statement({
  name: "operator_changes",
  params: { since: int },
  row: { count: int },
  only: "postgres",
  // In the index of the rows that clients did not cause, the rows of each actor kind are one range.
  sql: () =>
    `SELECT count(*) AS "count" FROM audit_log l
     WHERE l.actor_kind <> 'acme' AND l.actor_kind IN ('admin', 'cli') AND l.created_at >= :since`
})

/** Counts the rows of the trail that operators have caused since an epoch second. */
export const countSince = (since: number): Effect.Effect<number, StorageFailed, Database> =>
  Effect.map(first(sinceStatement, { since }), (row) => row?.count ?? 0)
