import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import type { AtKeyboard } from "../../src/operations/Operator.ts"
import * as auditTrail from "../../src/operations/operator/AuditTrail.ts"
import * as nonceRecords from "../../src/operations/operator/NonceRecords.ts"
import * as purge from "../../src/operations/operator/Purge.ts"
import { sweepAudit } from "../../src/operations/work/Sweeps.ts"
import { databases } from "../support/Databases.ts"
import { killedAfter } from "../support/Faults.ts"
import { callerAt, column, configOf, count, orderOf, profileOf, sql } from "../support/Graph.ts"
import { useWorld } from "../support/UseWorld.ts"

/*
 * The process is killed at each statement of a bulk deletion. The audit trail must still count everything that was
 * deleted.
 */

const startsAt = 1_800_000_000
const operator: AtKeyboard = { kind: "cli", id: "tester" }
const config = configOf()

describe.each(databases)("a bulk deletion that is killed, on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt })

  const numbers = (to: number) =>
    backend.dialect === "sqlite"
      ? `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) SELECT i FROM n) AS n`
      : `generate_series(1, ${to}) AS n(i)`

  /**
   * Runs `run` on new rows again and again, kills the run after one more statement each time, and compares the rows
   * that are left with the trail.
   */
  const killed = Effect.fnUntraced(function*<E>(of: {
    readonly rows: number
    readonly make: Effect.Effect<unknown, unknown, Database>
    readonly run: Effect.Effect<unknown, E, Database>
    readonly left: Effect.Effect<number, never, Database>
    readonly event: string
    readonly member: string
  }) {
    const driver = yield* Database
    const outcomes = new Set<number>()
    for (let statements = 0;; statements++) {
      yield* of.make
      const [before = "0"] = yield* column("SELECT coalesce(max(id), 0) FROM audit_log")
      const mortal = yield* killedAfter(driver, statements)
      const ended = yield* Effect.exit(Effect.provideService(of.run, Database, mortal.driver))
      const gone = of.rows - (yield* of.left)
      const details = yield* column(`SELECT detail FROM audit_log WHERE event = '${of.event}' AND id > ${before}`)
      const told = details.reduce((sum, detail) => sum + Number(JSON.parse(detail)[of.member]), 0)
      assert.strictEqual(told, gone, `killed after ${statements} statements`)
      outcomes.add(gone)
      if (ended._tag === "Success") break
      assert.isBelow(statements, 40)
    }
    return [...outcomes].toSorted((one, other) => one - other)
  })

  test("has recorded the nonces that were deleted", () =>
    Effect.gen(function*() {
      const outcomes = yield* killed({
        rows: 2100,
        make: Effect.andThen(
          sql("DELETE FROM nonces"),
          sql(`INSERT INTO nonces (value, created_at) SELECT 'n' || i, 1 FROM ${numbers(2100)}`)
        ),
        run: nonceRecords.cleanup(config, operator),
        left: count("SELECT count(*) FROM nonces"),
        event: "nonce_cleanup_completed",
        member: "removed"
      })
      assert.deepStrictEqual(outcomes, [0, 1000, 2000, 2100])
    }))

  const oldRows = `event = 'eab_created' AND created_at = 1`
  const trail = {
    rows: 1100,
    make: Effect.suspend(() =>
      Effect.andThen(
        // Rows of the trail can be deleted only by their age, and the previous run might not have deleted all of them.
        Effect.orDie(auditTrail.cleanup(operator, 10)),
        sql(
          `INSERT INTO audit_log (created_at, event, outcome, actor_kind)
           SELECT 1, 'eab_created', 'success', 'cli' FROM ${numbers(1100)}`
        )
      )
    ),
    left: count(`SELECT count(*) FROM audit_log WHERE ${oldRows}`),
    event: "audit_pruned",
    member: "removed"
  }

  test("has recorded the rows of the trail that were deleted, both by the command line and by the sweep", () =>
    Effect.gen(function*() {
      for (const run of [auditTrail.cleanup(operator, 10), sweepAudit(10)]) {
        assert.deepStrictEqual(yield* killed({ ...trail, run }), [0, 1000, 1100])
      }
    }))

  test("has recorded the orders that were deleted", () =>
    Effect.gen(function*() {
      const callers = [yield* callerAt(profileOf(config)), yield* callerAt(profileOf(config, "other"))]
      const make = Effect.gen(function*() {
        yield* sql("DELETE FROM orders")
        for (const caller of callers) yield* orderOf(caller, "a.example")
        yield* sql("UPDATE orders SET status = 'valid', certificate = 'PEM', cert_not_after = 1")
      })
      const outcomes = yield* killed({
        rows: 2,
        make: make as Effect.Effect<unknown, unknown, Database>,
        run: purge.run(operator, { profile: undefined, expiredForDays: 1 }),
        left: count("SELECT count(*) FROM orders"),
        event: "orders_purged",
        member: "orders"
      })
      assert.deepStrictEqual(outcomes, [0, 1, 2])
    }))
})
