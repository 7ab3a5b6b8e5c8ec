import * as Effect from "effect/Effect"
import { int, text } from "../sql/Column.ts"
import { Database, StorageFailed } from "../sql/Database.ts"
import { all } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"

/* Processes on one SQLite file that wait for the disk in different ways. */

/** A process that was not seen for this number of seconds does not refresh its row. */
const presentSeconds = 30

/** A row that is this far in the future says nothing, because no clock can be that wrong. */
const wrongAfterSeconds = 172_800

const unlikeStatement = statement({
  name: "worker_unlike",
  params: { owner: text(), sharesSyncs: int, since: int, until: int },
  row: { owner: text() },
  sql: () =>
    `SELECT owner FROM workers
     WHERE owner <> :owner AND coalesce(shares_syncs, 0) <> :sharesSyncs AND last_seen_at BETWEEN :since AND :until ORDER BY owner`
})

/**
 * Refuses to run beside a process that treats the syncs of a SQLite file differently. One of the two processes would
 * show its clients commits of the other that are not on the disk yet (docs/contribute/decisions/durability.md). `now`
 * is in epoch seconds. `isGone` returns whether an owner has ended, as far as that can be known here.
 */
export const refuseUnlike = Effect.fnUntraced(function*(own: string, now: number, isGone: (owner: string) => boolean) {
  const { commits, dialect } = yield* Database
  if (dialect !== "sqlite") return
  const sharesSyncs = commits === undefined ? 0 : 1
  const found = yield* all(unlikeStatement, {
    owner: own,
    sharesSyncs,
    since: now - presentSeconds,
    until: now + wrongAfterSeconds
  })
  const unlike = found.find(({ owner }) => !isGone(owner))
  if (unlike === undefined) return
  return yield* new StorageFailed({
    statement: unlikeStatement.name,
    detail: `database.sqlite.synchronous is ${
      sharesSyncs === 1 ? "" : "not "
    }"grouped" here, unlike in the process ${unlike.owner}, which uses the same file and may be of an older version: give all processes on the file the same setting, and stop those with the other one first`,
    transient: false
  })
})
