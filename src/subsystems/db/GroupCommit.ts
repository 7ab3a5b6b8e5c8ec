import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Exit, FiberRef, FiberRefs, FiberSet } from "effect"
import type { Scope } from "effect"
import type { Driver } from "./Database.ts"
import { rollback } from "./Database.ts"

type BodyExit = Exit.Exit<unknown, unknown>

interface Member {
  readonly run: (connection: Connection) => Effect.Effect<BodyExit>
  /** Told once the group has committed, or could not. */
  readonly answer: (result: Exit.Exit<BodyExit, SqlError>) => void
}

const largestGroup = 64

/**
 * Gathers the writes that arrive within one turn of the event loop into one transaction and answers them all after the
 * one commit. A commit of its own costs a write more than its statements do: pages that neighbours share are written
 * once, and synced once. Nobody is answered before its write is as durable as alone.
 *
 * A body that fails takes the transaction back, and the others run again without it. Failures are rare, and a savepoint
 * around each body would cost every write two statements. So a body runs once or more and must do nothing but statements.
 */
export const makeGroupCommit = (
  driver: Pick<Driver, "exclusive" | "begin" | "commit">
): Effect.Effect<{ readonly join: Driver["transact"] }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    let waiting: Array<Member> = []
    let isScheduled = false

    const runAll = (connection: Connection, group: ReadonlyArray<Member>) =>
      Effect.zipRight(driver.begin(connection), Effect.forEach(group, (member) => member.run(connection)))

    const commitTogether = Effect.fnUntraced(function*(connection: Connection, group: ReadonlyArray<Member>) {
      const outcomes = new Map<Member, BodyExit>()
      let remaining = group
      while (remaining.length > 0) {
        const exits = yield* runAll(connection, remaining)
        remaining.forEach((member, index) => outcomes.set(member, exits[index] ?? Exit.void))
        const sound = remaining.filter((_, index) => exits[index]?._tag === "Success")
        if (sound.length === remaining.length) {
          yield* driver.commit(connection)
          return outcomes
        }
        yield* rollback(connection)
        remaining = sound
      }
      return outcomes
    })

    const commitGroup = (group: ReadonlyArray<Member>) =>
      driver.exclusive((connection) =>
        Effect.tapErrorCause(commitTogether(connection, group), () => rollback(connection))
      ).pipe(
        Effect.exit,
        Effect.map((result) => {
          for (const member of group) {
            member.answer(Exit.map(result, (outcomes) => outcomes.get(member) ?? Exit.void))
          }
        })
      )

    const flush = () => {
      isScheduled = false
      const group = waiting.splice(0, largestGroup)
      if (waiting.length > 0) schedule()
      fork(commitGroup(group))
    }
    const schedule = () => {
      if (isScheduled) return
      isScheduled = true
      setImmediate(flush)
    }

    const join: Driver["transact"] = <A, E, R>(
      body: (connection: Connection) => Effect.Effect<Exit.Exit<A, E>, never, R>
    ) =>
      // The body runs in the group's fiber with everything its own fiber had: services, clock and log facts.
      // Not with its interruption, though: that would end the group before it has answered.
      Effect.withFiberRuntime<Exit.Exit<A, E>, SqlError, R>((fiber) => {
        const adopt = Effect.setFiberRefs(FiberRefs.delete(fiber.getFiberRefs(), FiberRef.interruptedCause))
        return Effect.async((resume) => {
          waiting.push({
            run: (connection) => Effect.zipRight(adopt, body(connection)) as Effect.Effect<Exit.Exit<A, E>>,
            answer: (result) => resume(result as Exit.Exit<Exit.Exit<A, E>, SqlError>)
          })
          schedule()
        })
      })
    return { join }
  })
