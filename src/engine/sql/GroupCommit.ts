import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { rollback } from "./Database.ts"
import type { Connection, Driver } from "./Driver.ts"
import type { SqlError } from "./SqlError.ts"

type BodyExit = Exit.Exit<unknown, unknown>

/** The exit of a body, or the error of its transaction. */
type Outcome = Exit.Exit<BodyExit, SqlError>

interface Member {
  readonly run: (connection: Connection) => Effect.Effect<BodyExit>
  /** Called after the group has committed or failed. */
  readonly answer: (result: Outcome) => void
}

const largestGroup = 64

/**
 * Combines the writes that arrive within one turn of the event loop into one transaction, and returns to all callers
 * after the commit. For a single write, the commit costs more than the statements. In a group, shared pages are written
 * and synced only once. No caller gets its result before its write is as durable as with a commit of its own.
 *
 * If a body fails, the transaction is rolled back, and every body runs again in a transaction of its own. Failures are
 * rare, and a savepoint around each body would cost every write two statements. The transaction cannot continue after a
 * failure, because the engine may have ended it. So a body runs once or twice, and may only run statements.
 */
export const makeGroupCommit = (
  driver: Pick<Driver, "exclusive" | "begin" | "commit">
): Effect.Effect<Driver["transact"], never, Scope.Scope> =>
  Effect.gen(function*() {
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    const waiting: Array<Member> = []

    /**
     * Runs all bodies in one transaction. If one of several bodies fails, nothing is kept, and each body runs in a
     * transaction of its own.
     */
    const commitTogether = Effect.fnUntraced(function*(
      connection: Connection,
      group: ReadonlyArray<Member>,
      outcomes: Map<Member, Outcome>
    ) {
      yield* driver.begin(connection)
      for (const member of group) {
        const exit = yield* member.run(connection)
        outcomes.set(member, Exit.succeed(exit))
        if (Exit.isSuccess(exit)) continue
        yield* rollback(connection)
        if (group.length > 1) { for (const one of group) yield* commitGroup(connection, [one], outcomes) }
        return
      }
      yield* driver.commit(connection)
    })

    const commitGroup = (
      connection: Connection,
      group: ReadonlyArray<Member>,
      outcomes: Map<Member, Outcome>
    ): Effect.Effect<void> =>
      Effect.catchCause(commitTogether(connection, group, outcomes), (cause) => {
        for (const member of group) outcomes.set(member, Exit.failCause(cause))
        return rollback(connection)
      })

    const flush = () => {
      const group = waiting.splice(0, largestGroup)
      if (waiting.length > 0) setImmediate(flush)
      const outcomes = new Map<Member, Outcome>()
      const served = driver.exclusive((connection) => commitGroup(connection, group, outcomes))
      fork(Effect.map(Effect.exit(served), (exit) => {
        for (const member of group) {
          member.answer(Exit.isFailure(exit) ? Exit.failCause(exit.cause) : outcomes.get(member) ?? Exit.die("not run"))
        }
      }))
    }

    const transact: Driver["transact"] = <A, E, R>(
      body: (connection: Connection) => Effect.Effect<Exit.Exit<A, E>, never, R>
    ) =>
      // The body runs in the fiber of the group, but with the whole context of its own fiber: services, clock and log
      // facts.
      Effect.contextWith((context: Context.Context<R>) =>
        Effect.callback<Exit.Exit<A, E>, SqlError>((resume) => {
          const waits = waiting.push({
            run: (connection) => Effect.setContext(body(connection), context),
            answer: resume as (result: Outcome) => void
          })
          if (waits === 1) setImmediate(flush)
        })
      )
    return transact
  })
