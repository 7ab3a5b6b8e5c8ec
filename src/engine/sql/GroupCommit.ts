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
 * Gathers the writes that arrive within one turn of the event loop into one transaction, and answers them all after its
 * commit. For a single write, a commit costs more than the statements. In a group, shared pages are written once and
 * synced once. No caller gets its answer before its write is as durable as with a commit of its own.
 *
 * A body that fails ends the round: the transaction is rolled back, and every body runs again in a transaction of its
 * own. Failures are rare, and a savepoint around each body would cost every write two statements. The round cannot
 * continue after a failure, because the engine may have ended the transaction itself. So a body runs once or twice, and
 * must do nothing but statements.
 */
export const makeGroupCommit = (
  driver: Pick<Driver, "exclusive" | "begin" | "commit">
): Effect.Effect<{ readonly join: Driver["transact"] }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    let waiting: Array<Member> = []
    let isScheduled = false

    /** Runs all bodies in one transaction. False if one failed and nothing was kept. */
    const commitTogether = Effect.fnUntraced(function*(
      connection: Connection,
      group: ReadonlyArray<Member>,
      outcomes: Map<Member, Outcome>
    ) {
      yield* driver.begin(connection)
      for (const member of group) {
        const exit = yield* member.run(connection)
        outcomes.set(member, Exit.succeed(exit))
        if (Exit.isFailure(exit)) {
          yield* rollback(connection)
          return group.length === 1
        }
      }
      yield* driver.commit(connection)
      return true
    })

    const commitAlone = (connection: Connection, member: Member): Effect.Effect<BodyExit, SqlError> =>
      Effect.flatMap(Effect.andThen(driver.begin(connection), member.run(connection)), (exit) =>
        Effect.as(Exit.isSuccess(exit) ? driver.commit(connection) : rollback(connection), exit)).pipe(
          Effect.tapCause(() =>
            rollback(connection)
          )
        )

    const commitGroup = Effect.fnUntraced(function*(connection: Connection, group: ReadonlyArray<Member>) {
      const outcomes = new Map<Member, Outcome>()
      const together = yield* Effect.exit(commitTogether(connection, group, outcomes))
      if (Exit.isFailure(together)) {
        yield* rollback(connection)
        for (const member of group) outcomes.set(member, Exit.failCause(together.cause))
      } else if (!together.value) {
        for (const member of group) outcomes.set(member, yield* Effect.exit(commitAlone(connection, member)))
      }
      return outcomes
    })

    const serve = (group: ReadonlyArray<Member>) =>
      Effect.map(Effect.exit(driver.exclusive((connection) => commitGroup(connection, group))), (result) => {
        for (const member of group) {
          member.answer(
            Exit.isFailure(result) ? Exit.failCause(result.cause) : result.value.get(member) ?? Exit.die("not run")
          )
        }
      })

    const flush = () => {
      isScheduled = false
      const group = waiting.splice(0, largestGroup)
      if (waiting.length > 0) schedule()
      fork(serve(group))
    }
    const schedule = () => {
      if (isScheduled) return
      isScheduled = true
      setImmediate(flush)
    }

    const join: Driver["transact"] = <A, E, R>(
      body: (connection: Connection) => Effect.Effect<Exit.Exit<A, E>, never, R>
    ) =>
      // The body runs in the group's fiber with the whole context of its own fiber: services, clock and log facts.
      Effect.contextWith((context: Context.Context<R>) =>
        Effect.callback<Exit.Exit<A, E>, SqlError>((resume) => {
          waiting.push({
            run: (connection) => Effect.setContext(body(connection), context),
            answer: (result) => resume(result as Exit.Exit<Exit.Exit<A, E>, SqlError>)
          })
          schedule()
        })
      )
    return { join }
  })
