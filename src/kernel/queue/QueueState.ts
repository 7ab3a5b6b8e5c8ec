import { int, text } from "../sql/Column.ts"
import { all } from "../sql/Database.ts"
import { statement } from "../sql/Statement.ts"

/* The queue as operators watch it: counts and ages by kind. */

const countsStatement = statement({
  name: "queue_counts",
  params: {},
  row: { kind: text(), status: text<"ready" | "running" | "failed">(), count: int },
  sql: () =>
    `SELECT kind AS "kind", status AS "status", count(*) AS "count" FROM jobs
     WHERE status IN ('ready', 'running', 'failed') GROUP BY kind, status ORDER BY kind, status`
})

const oldestStatement = statement({
  name: "queue_oldest",
  params: { now: int },
  row: { kind: text(), runAt: int },
  sql: () =>
    `SELECT kind AS "kind", min(run_at) AS "runAt" FROM jobs WHERE status = 'ready' AND run_at <= :now
     GROUP BY kind ORDER BY kind`
})

/** Rows that wait, run or have failed, by kind. */
export const counts = all(countsStatement, {})

/** When the oldest row that is due was to begin, by kind. */
export const oldest = (now: number) => all(oldestStatement, { now })
