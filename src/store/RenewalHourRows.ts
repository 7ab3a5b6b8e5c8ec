import { int, rows } from "../engine/sql/Column.ts"
import { all, run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/* How many renewal windows begin in each hour. Hours are counted since 1970. */

const addStatement = statement({
  name: "renewal_hours_add",
  params: { counts: rows },
  row: {},
  // Every process adds in the same order, so that none waits for another in a circle.
  sql: ({ at, each }) =>
    `INSERT INTO renewal_hours (hour, windows)
     SELECT ${at(0, "int")}, ${at(1, "int")} FROM ${each(":counts")} WHERE 1 = 1 ORDER BY 1
     ON CONFLICT (hour) DO UPDATE SET windows = renewal_hours.windows + excluded.windows`
})

const sinceStatement = statement({
  name: "renewal_hours_since",
  params: { hour: int },
  row: { hour: int, windows: int },
  sql: () => `SELECT hour AS "hour", windows AS "windows" FROM renewal_hours WHERE hour >= :hour ORDER BY hour`
})

const removeStatement = statement({
  name: "renewal_hours_remove",
  params: { hour: int, limit: int },
  row: {},
  sql: () =>
    `DELETE FROM renewal_hours WHERE hour IN
       (SELECT hour FROM renewal_hours WHERE hour < :hour ORDER BY hour LIMIT :limit)`
})

/** Adds windows to hours: pairs of an hour and a number, at most one for each hour. */
export const add = (counts: ReadonlyArray<readonly [hour: number, windows: number]>) => run(addStatement, { counts })

/** Returns how many windows begin in each hour, from an hour on. Hours without windows are absent. */
export const since = (hour: number) => all(sinceStatement, { hour })

const removedAtOnce = 1000

/** Removes hours before an hour, the first ones first, at most a thousand. */
export const removeBefore = (hour: number) => run(removeStatement, { hour, limit: removedAtOnce })
