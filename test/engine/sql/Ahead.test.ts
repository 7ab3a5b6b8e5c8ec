import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { arrived } from "../../../src/engine/sql/Ahead.ts"
import { afterCommit, Database, ifUndone, transaction } from "../../../src/engine/sql/Database.ts"
import type { Driver, Executor } from "../../../src/engine/sql/Driver.ts"
import { all, run } from "../../../src/engine/sql/Query.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { bump, insert, read } from "../../store/NonceStatements.ts"
import { postgres, useDatabase } from "../../support/Databases.ts"
import { count, eventsOf } from "../../support/Graph.ts"

/*
 * Statements that return no rows, which the client sends to PostgreSQL without waiting for the answer
 * (docs/contribute/decisions/hot-path.md, "Statements of PostgreSQL").
 */

const total = count("SELECT count(*) FROM nonces")

/** Returns a driver whose transactions use another `ahead`. */
const sendingAhead = (
  driver: Driver,
  change: (ahead: NonNullable<Executor["ahead"]>) => Executor["ahead"]
): Driver => ({
  ...driver,
  transact: (body) =>
    driver.transact(({ ahead, ...connection }) => {
      const changed = ahead && change(ahead)
      return body(changed === undefined ? connection : { ...connection, ahead: changed })
    })
})

describe("statements that are sent ahead", () => {
  const database = useDatabase(postgres)

  it.live("are not awaited, and take effect before the statements that follow", () =>
    database.use(Effect.gen(function*() {
      const sent: Array<string> = []
      const driver = sendingAhead(database.driver(), (ahead) => (text, params, ended) => {
        sent.push("sent")
        ahead(text, params, (failure) => {
          sent.push(failure === undefined ? "ended" : "failed")
          ended(failure)
        })
      })
      const [found, before] = yield* Effect.provideService(
        transaction(Effect.gen(function*() {
          yield* run(insert, { value: "a" })
          yield* run(insert, { value: "b" })
          const before = [...sent]
          return [yield* all(read, { value: "b" }), before] as const
        })),
        Database,
        driver
      )
      assert.deepStrictEqual([found.length, before, sent], [1, ["sent", "sent"], ["sent", "sent", "ended", "ended"]])
      assert.strictEqual(yield* total, 2)
    })))

  it.live("make the next awaited statement or the commit fail with their name", () =>
    database.use(Effect.gen(function*() {
      yield* run(insert, { value: "twice" })
      const records: Array<Record> = []
      let committed = 0
      const twice = Effect.andThen(
        afterCommit(Effect.sync(() => void committed++)),
        Effect.andThen(run(insert, { value: "once" }), run(insert, { value: "twice" }))
      )
      const followed = [all(read, { value: "once" }), run(bump, { value: "once" }), Effect.void]
      for (const next of followed) {
        const error = yield* Effect.flip(
          Effect.provide(transaction(Effect.andThen(twice, next)), layerMemory(records))
        )
        assert.deepInclude(error, { _tag: "StorageFailed", statement: "test_insert", transient: false })
        assert.match(error.detail, /duplicate key/)
      }
      assert.deepStrictEqual(eventsOf(records), followed.map(() => "db_statement_failed"))
      assert.deepStrictEqual(records.map(({ fields }) => fields["statement"]), followed.map(() => "test_insert"))
      assert.deepStrictEqual([committed, yield* total], [0, 1])
    })))

  it.live("undo the whole transaction if one of them could not be sent", () =>
    database.use(Effect.gen(function*() {
      const broken = new SqlError({ cause: new Error("cannot be written"), message: "the statement failed" })
      const driver = sendingAhead(database.driver(), (ahead) => (text, params, ended) => {
        if (params.includes("lost")) ended(broken)
        else ahead(text, params, ended)
      })
      const error = yield* Effect.flip(Effect.provideService(
        transaction(Effect.andThen(run(insert, { value: "kept" }), run(insert, { value: "lost" }))),
        Database,
        driver
      ))
      assert.deepInclude(error, { statement: "test_insert", detail: "cannot be written" })
      assert.strictEqual(yield* total, 0)
    })))

  it.live("never count as committed if their failure arrives with the answer to the commit", () =>
    database.use(Effect.gen(function*() {
      const broken = new SqlError({ cause: new Error("heard late"), message: "the statement failed" })
      const late: Array<() => void> = []
      const unheard = sendingAhead(database.driver(), () => (_, _params, ended) => void late.push(() => ended(broken)))
      const driver: Driver = {
        ...unheard,
        transact: (body) => Effect.tap(unheard.transact(body), () => Effect.sync(() => late.forEach((tell) => tell())))
      }
      let [committed, undone] = [0, 0]
      const error = yield* Effect.flip(Effect.provideService(
        transaction(Effect.all([
          afterCommit(Effect.sync(() => void committed++)),
          ifUndone(Effect.sync(() => void undone++)),
          run(insert, { value: "a" })
        ])),
        Database,
        driver
      ))
      assert.deepInclude(error, { statement: "test_insert", detail: "heard late" })
      assert.deepStrictEqual([committed, undone], [0, 1])
    })))

  it.live("are never more than four at a time", () =>
    database.use(Effect.gen(function*() {
      let [inFlight, most] = [0, 0]
      const driver = sendingAhead(database.driver(), (ahead) => (text, params, ended) => {
        most = Math.max(most, ++inFlight)
        ahead(text, params, (failure) => {
          inFlight--
          ended(failure)
        })
      })
      const values = Array.from({ length: 50 }, (_, number) => `${number}`)
      yield* Effect.provideService(
        transaction(Effect.forEach(values, (value) => run(insert, { value }), { discard: true })),
        Database,
        driver
      )
      assert.deepStrictEqual([most, inFlight, yield* total], [4, 0, 50])
    })))

  it.live("can be awaited together by a caller that must know whether they have failed", () =>
    database.use(Effect.gen(function*() {
      const known = yield* transaction(Effect.andThen(run(insert, { value: "a" }), Effect.exit(arrived)))
      assert.isTrue(Exit.isSuccess(known))
      yield* Effect.andThen(arrived, transaction(arrived)) // Neither transaction has a statement to wait for.
      let told: unknown
      const failed = yield* Effect.flip(transaction(Effect.andThen(
        run(insert, { value: "a" }),
        Effect.tapError(arrived, (error) => Effect.sync(() => (told = error)))
      )))
      assert.strictEqual(told, failed)
      assert.deepInclude(failed, { statement: "test_insert" })
    })))

  it.live("report a failure if the driver could not write them", () =>
    database.use(Effect.gen(function*() {
      const circular: { [name: string]: unknown } = {}
      circular["self"] = circular
      const ends: Array<unknown> = []
      yield* database.driver().transact((connection) =>
        Effect.sync(() => {
          connection.ahead?.("SELECT $1::json", [circular], (failure) => ends.push(failure?._tag))
          return Exit.fail("no")
        })
      )
      assert.deepStrictEqual(ends, ["SqlError"])
    })))

  it.live("do not replace the failure of the body", () =>
    database.use(Effect.gen(function*() {
      yield* run(insert, { value: "twice" })
      const failed = yield* Effect.flip(
        transaction(Effect.andThen(run(insert, { value: "twice" }), Effect.fail("refused")))
      )
      assert.strictEqual(failed, "refused")
      yield* transaction(run(insert, { value: "afterwards" }))
      assert.strictEqual(yield* total, 2)
    })))

  it.live("are logged as slow without the statements that waited behind them", () =>
    database.use(Effect.gen(function*() {
      const records: Array<Record> = []
      const { now } = performance
      const driver = sendingAhead(
        database.driver(),
        (ahead) => (text, params, ended) =>
          ahead(text, params, (failure) => {
            performance.now = () => now.call(performance) + 1000 // The clock reads as if the first answer had taken a second.
            ended(failure)
          })
      )
      const body = Effect.andThen(
        Effect.andThen(run(insert, { value: "slow" }), run(bump, { value: "slow" })),
        all(read, { value: "slow" })
      )
      yield* Effect.provideService(transaction(body), Database, driver).pipe(
        Effect.ensuring(Effect.sync(() => (performance.now = now))),
        Effect.provide(layerMemory(records))
      )
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields["statement"]]), [
        ["db_statement_slow", "test_insert"]
      ])
    })))
})
