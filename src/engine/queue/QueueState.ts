import { int, text } from "../sql/Column.ts"
import { lenient } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"

/* The state of the queue for operators: counts and ages by kind. */

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

const retriedStatement = statement({
  name: "queue_retried",
  params: {},
  row: { kind: text(), count: int },
  sql: () =>
    `SELECT kind AS "kind", count(*) AS "count" FROM jobs WHERE status = 'ready' AND attempts > 0
     GROUP BY kind ORDER BY kind`
})

const longestStatement = statement({
  name: "queue_longest",
  params: {},
  row: { kind: text(), since: int },
  // The claim of a row is the last write of that column until the attempt ends.
  sql: () =>
    `SELECT kind AS "kind", min(updated_at) AS "since" FROM jobs WHERE status = 'running' GROUP BY kind ORDER BY kind`
})

/** How many rows wait, run or have failed, by kind. */
export const counts = lenient(countsStatement, {})

/** How many rows wait that were begun before, by kind. */
export const retried = lenient(retriedStatement, {})

/** When the longest running attempt was begun, by kind. */
export const longest = lenient(longestStatement, {})

/** The due time of the oldest due row, by kind. */
export const oldest = (now: number) => lenient(oldestStatement, { now })
