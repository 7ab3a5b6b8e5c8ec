import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { rows } from "../sql/Column.ts"
import { Database } from "../sql/Database.ts"
import { run } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"
import { wakeChannel } from "./Job.ts"

// A commit that sends notifications holds a lock of the whole server until the commit is on the disk and on the
// standbys. A lost notification does little harm, so the commit of this statement waits for neither.
const announceStatement = statement({
  name: "job_announce",
  params: { announced: rows },
  row: {},
  only: "postgres",
  sql: ({ at, each }) =>
    `SELECT set_config('synchronous_commit', 'off', true), pg_notify('${wakeChannel}', ${at(0, "text")})
     FROM ${each(":announced")}`
})

/**
 * Makes the function that tells other processes of new jobs, after the commit that wrote them. Jobs that are announced
 * while a statement is in progress are sent together by the next statement. Without an announcement other processes
 * find the jobs when they poll, so a failed announcement is not repeated.
 */
export const makeAnnouncer: Effect.Effect<
  (text: string) => Effect.Effect<void>,
  never,
  Database | Scope.Scope
> = Effect.gen(function*() {
  const database = yield* Database
  if (database.listen === undefined) return () => Effect.void
  const fibers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(fibers)<never>()
  // A command ends as soon as its work is done, so its scope waits for the last announcement.
  yield* Effect.addFinalizer(() => FiberSet.awaitEmpty(fibers))
  const waiting = new Set<string>()
  let isTelling = false
  const tellOnce = Effect.suspend(() => {
    const announced = [...waiting].map((text) => [text])
    waiting.clear()
    // Even a defect must not end the loop, because nothing would be announced after it.
    return Effect.exit(run(announceStatement, { announced }))
  })
  const tell = Effect.whileLoop({
    while: () => (isTelling = waiting.size > 0),
    body: () => Effect.andThen(Effect.yieldNow, tellOnce),
    step: () => {}
  }).pipe(Effect.provideService(Database, database))
  return (text: string) =>
    Effect.sync(() => {
      waiting.add(text)
      if (isTelling) return
      isTelling = true
      fork(tell)
    })
})
