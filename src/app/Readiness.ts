import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Roles } from "../domain/Role.ts"
import type { Answering } from "../engine/http/Message.ts"
import { json } from "../engine/http/Message.ts"
import { Loops } from "../engine/Loops.ts"
import { Database } from "../engine/sql/Database.ts"
import { LogOutput } from "../engine/telemetry/Sink.ts"
import { lifeMillis } from "../engine/Time.ts"

/** The path of readiness. Every listener has it, except the listener that only publishes lists and certificates. */
export const readyPath = "/ready"

/**
 * Returns what keeps failing elsewhere, as the parent last told this process: loops of other processes of the service,
 * and those processes themselves. Empty if the process has no parent.
 */
export const FailingElsewhere = Context.Reference<() => ReadonlyArray<string>>("acme/app/Readiness/FailingElsewhere", {
  defaultValue: () => () => []
})

/**
 * Answers GET and HEAD of {@link readyPath} for a process with these roles. The answer is 200 if `failing` returns no
 * loops, and otherwise 503 with the names of the loops. `failing` is called with the milliseconds since the start of
 * the process. `more` are further members of the answer.
 */
export const readinessOf = (
  roles: Roles,
  failing: (life: number) => ReadonlyArray<string>,
  more: () => object
): ReadonlyMap<string, Answering<never>> =>
  new Map([[readyPath, {
    handle: ({ method }) =>
      method === "GET" || method === "HEAD"
        ? Effect.map(Effect.all([lifeMillis, LogOutput, FailingElsewhere]), ([life, { state }, elsewhere]) => {
          const failed = [...new Set([...failing(life), ...elsewhere()])]
          const ready = failed.length === 0
          const { trouble } = state()
          return json(ready ? 200 : 503, {
            ready,
            roles: [...roles],
            ...ready ? {} : { loops: failed },
            ...more(),
            ...trouble === undefined ? {} : { log: trouble }
          })
        })
        : Effect.succeed({ status: 405, headers: { allow: "GET, HEAD" } }),
    late: () => Effect.succeed({ status: 503, headers: { "retry-after": "5" } })
  }]])

/**
 * Answers GET and HEAD of {@link readyPath}. The answer is 200, or 503 while background work that is needed for answers
 * and issuance keeps failing, in this process or in another process of the same parent. No credential, policy or slot
 * is needed, and the database is not queried. Readiness does not depend on the database: without a database every
 * process would be unready at the same time, and restarting the processes would not help. The answer also reports a
 * read-only database, a log that cannot be written and, with the admin role, the state of the standby. None of these
 * makes a process unready, because clients are still answered.
 */
export const readiness = (
  roles: Roles
): Effect.Effect<ReadonlyMap<string, Answering<never>>, never, Loops | Database> =>
  Effect.zipWith(Loops, Database, ({ failing }, { isReadOnly, standby }) =>
    readinessOf(roles, failing, () => ({
      ...isReadOnly() ? { database: "read-only" } : {},
      ...standby !== undefined && roles.has("admin") ? { standby: standby.state() } : {}
    })))
