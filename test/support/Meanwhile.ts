import { Effect, Fiber } from "effect"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Connection, Driver } from "../../src/engine/sql/Driver.ts"
import { sql } from "./Graph.ts"

/* Makes something happen while work is in progress, at a time that the test chooses. */

/** Runs an effect. Just before its transaction with this number, another process changes the database. */
export const meanwhile = <A, E, R>(text: string, self: Effect.Effect<A, E, R>, transaction = 1) =>
  Effect.gen(function*() {
    const driver = yield* Database
    let begun = 0
    const transact: Driver["transact"] = (body) =>
      Effect.suspend(() => {
        const other = ++begun === transaction ? Effect.provideService(sql(text), Database, driver) : Effect.void
        return Effect.andThen(other, driver.transact(body))
      })
    return yield* Effect.provideService(self, Database, { ...driver, transact })
  })

/** Runs an effect. Just before or after its first statement with this text, another process changes the database. */
export const meanwhileAt = <A, E, R>(
  when: "before" | "after",
  statement: string,
  text: string,
  self: Effect.Effect<A, E, R>
) =>
  Effect.gen(function*() {
    const driver = yield* Database
    let isDone = false
    const other = Effect.suspend(() => {
      isDone = true
      return Effect.provideService(sql(text), Database, driver)
    })
    const single: Driver["single"] = (compiled, params) => {
      const run = driver.single(compiled, params)
      if (isDone || !compiled.text.includes(statement)) return run
      return when === "before" ? Effect.andThen(other, run) : Effect.tap(run, other)
    }
    return yield* Effect.provideService(self, Database, { ...driver, single })
  })

/** Waits until a session on PostgreSQL waits for a lock of this database. `connection` is used to look for sessions. */
export const someoneWaits = (connection: Connection) =>
  Effect.repeat(
    connection.execute(
      `SELECT count(*) AS waiting FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      []
    ),
    { until: ([row]) => Number(row?.waiting) > 0 }
  )

/** Runs an effect for a client that disconnects as soon as the first statement or transaction is done. */
export const hangingUp = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const driver = yield* Database
    let running: Fiber.Fiber<A, E> | undefined
    const leave = Effect.suspend(() =>
      running === undefined
        ? Effect.void
        : Effect.andThen(Effect.sync(() => running?.interruptUnsafe()), Effect.yieldNow)
    )
    const single: Driver["single"] = (statement, params) => Effect.tap(driver.single(statement, params), leave)
    const transact: Driver["transact"] = (body) => Effect.tap(driver.transact(body), leave)
    running = yield* Effect.forkChild(
      Effect.provideService(self, Database, { ...driver, single, transact })
    )
    yield* Fiber.await(running)
  })
