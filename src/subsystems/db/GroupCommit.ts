import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Exit, FiberRef, FiberRefs, FiberSet } from "effect"
import type { Scope } from "effect"
import type { Driver } from "./Database.ts"
import { rollback } from "./Database.ts"

interface Member {
  readonly run: (connection: Connection) => Effect.Effect<Exit.Exit<unknown, unknown>>
  /** Told once the group has committed, or could not. */
  readonly answer: (result: Exit.Exit<Exit.Exit<unknown, unknown>, SqlError>) => void
}

const largestGroup = 64

/**
 * Gathers the writes that arrive within one turn of the event loop into one transaction, each under a savepoint of its
 * own, and answers them all after the one commit. A commit of its own costs a write more than its statements do: pages
 * that neighbours share are written once, and synced once. Nobody is answered before its write is as durable as alone.
 */
export const makeGroupCommit = (
  driver: Pick<Driver, "exclusive" | "begin" | "commit">
): Effect.Effect<{ readonly join: Driver["transact"] }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    let waiting: Array<Member> = []
    let isScheduled = false

    const savepoint = (connection: Connection, member: Member) =>
      Effect.gen(function*() {
        yield* connection.executeRaw("SAVEPOINT member", [])
        const exit = yield* member.run(connection)
        if (Exit.isFailure(exit)) yield* connection.executeRaw("ROLLBACK TO member", [])
        yield* connection.executeRaw("RELEASE member", [])
        return exit
      })

    const alone = (connection: Connection, member: Member) =>
      Effect.flatMap(member.run(connection), (exit) =>
        Effect.as(Exit.isSuccess(exit) ? driver.commit(connection) : rollback(connection), [exit]))

    const together = (connection: Connection, group: ReadonlyArray<Member>) =>
      Effect.zipLeft(
        Effect.forEach(group, (member) =>
          savepoint(connection, member)),
        driver.commit(connection)
      )

    const commitGroup = (group: ReadonlyArray<Member>) =>
      driver.exclusive((connection) => {
        const [first] = group
        if (first === undefined) return Effect.succeed([])
        const writes = group.length === 1 ? alone(connection, first) : together(connection, group)
        return Effect.zipRight(driver.begin(connection), Effect.tapErrorCause(writes, () => rollback(connection)))
      }).pipe(
        Effect.exit,
        Effect.map((result) => {
          group.forEach((member, index) => {
            const exit = Exit.map(result, (exits) => exits[index])
            member.answer(exit as Exit.Exit<Exit.Exit<unknown, unknown>, SqlError>)
          })
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
      Effect.flatMap(Effect.getFiberRefs, (all) =>
        Effect.async<Exit.Exit<A, E>, SqlError>((resume) => {
          const refs = FiberRefs.delete(all, FiberRef.interruptedCause)
          waiting.push({
            run: (connection) =>
              Effect.zipRight(Effect.setFiberRefs(refs), body(connection)) as Effect.Effect<Exit.Exit<A, E>>,
            answer: (result) => resume(result as Exit.Exit<Exit.Exit<A, E>, SqlError>)
          })
          schedule()
        }))
    return { join }
  })
