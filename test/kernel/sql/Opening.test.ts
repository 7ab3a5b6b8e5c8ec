import { Cause, Effect, Exit } from "effect"
import { assert, describe } from "vitest"
import type { Opening } from "../../../src/kernel/sql/Database.ts"
import { afterCommit, currentOpening, open, StorageFailed, transaction } from "../../../src/kernel/sql/Database.ts"
import { all, first, run } from "../../../src/kernel/sql/Query.ts"
import { bump, insert, read } from "../../store/NonceStatements.ts"
import { databases } from "../../support/Databases.ts"
import { column } from "../../support/Graph.ts"
import { useStore } from "../../support/UseTests.ts"

const values = column("SELECT value FROM nonces ORDER BY value")

describe.each(databases)("what has to be written first on $name", (backend) => {
  const { test } = useStore(backend)

  /** Writes a row named so, and counts how often. */
  const opening = (value: string, mayGoOn = true) => {
    const one = {
      runs: 0,
      state: "pending" as Opening["state"],
      write: Effect.suspend(() => {
        one.runs++
        return Effect.as(run(insert, { value }), mayGoOn)
      })
    }
    return one
  }

  test("is written once, in the commit of the first write", () =>
    Effect.gen(function*() {
      const one = opening("first")
      yield* Effect.provideService(
        Effect.gen(function*() {
          assert.isUndefined(yield* first(read, { value: "a" }))
          assert.strictEqual(one.state, "pending", "a read is no write")
          const failed = yield* Effect.exit(
            transaction(Effect.andThen(run(insert, { value: "a" }), Effect.fail("no")))
          )
          assert.deepStrictEqual(failed, Exit.fail("no"))
          assert.deepStrictEqual([one.state, yield* values], ["pending", []], "it ends with the transaction")
          yield* transaction(Effect.gen(function*() {
            yield* run(insert, { value: "a" })
            assert.deepStrictEqual((yield* all(read, { value: "first" })).length, 1, "it came first")
            yield* afterCommit(Effect.sync(() => assert.strictEqual(one.state, "written")))
          }))
          assert.deepStrictEqual(yield* values, ["a", "first"])
          yield* run(insert, { value: "b" })
          yield* transaction(run(insert, { value: "c" }))
        }),
        currentOpening,
        one
      )
      assert.deepStrictEqual([one.runs, yield* values], [2, ["a", "b", "c", "first"]])
    }))

  test("goes with a single statement that writes, and alone where it has to come before another act", () =>
    Effect.gen(function*() {
      const [one, other] = [opening("first"), opening("alone")]
      yield* Effect.provideService(run(insert, { value: "a" }), currentOpening, one)
      yield* Effect.provideService(Effect.andThen(open, open), currentOpening, other)
      yield* open
      assert.deepStrictEqual([one.state, other.state, other.runs], ["written", "written", 1])
      assert.deepStrictEqual(yield* values, ["a", "alone", "first"])
    }))

  test("refuses whatever is written with it or later, and stays", () =>
    Effect.gen(function*() {
      const one = opening("first", false)
      const defect = (exit: Exit.Exit<unknown, unknown>) => Exit.isFailure(exit) && Cause.hasDies(exit.cause)
      yield* Effect.provideService(
        Effect.gen(function*() {
          // Nobody who minds failures of statements takes it for one.
          const swallowing = Effect.catch(
            run(insert, { value: "a" }),
            (error: StorageFailed) => Effect.succeed(error)
          )
          assert.isTrue(defect(yield* Effect.exit(swallowing)))
          assert.strictEqual(one.state, "refused")
          assert.isTrue(defect(yield* Effect.exit(transaction(run(insert, { value: "b" })))))
          assert.isTrue(defect(yield* Effect.exit(open)))
        }),
        currentOpening,
        one
      )
      assert.deepStrictEqual([one.runs, yield* values], [1, ["first"]])
    }))

  test("undoes nothing of those who write at the same time when it refuses", () =>
    Effect.gen(function*() {
      let runs = 0
      const neighbour = transaction(Effect.suspend(() => {
        runs++
        return run(insert, { value: `neighbour ${runs}` })
      }))
      const refused = Effect.provideService(
        Effect.exit(run(insert, { value: "a" })),
        currentOpening,
        opening("first", false)
      )
      yield* Effect.all([neighbour, refused, Effect.andThen(Effect.void, run(insert, { value: "kept" }))], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([runs, yield* values], [1, ["first", "kept", "neighbour 1"]])
    }))

  test("is written again with what is tried again, and fails as that does", () =>
    Effect.gen(function*() {
      yield* run(insert, { value: "first" })
      const one = opening("first") // a row that is there already
      const exit = yield* Effect.provideService(
        Effect.exit(transaction(run(bump, { value: "first" }))),
        currentOpening,
        one
      )
      const [reason, ...others] = Exit.isFailure(exit) ? exit.cause.reasons : []
      assert.isTrue(reason !== undefined && Cause.isFailReason(reason) && reason.error instanceof StorageFailed)
      assert.isEmpty(others)
      assert.strictEqual(one.state, "pending")
    }))
})
