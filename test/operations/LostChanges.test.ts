import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { tellLost } from "../../src/operations/LostChanges.ts"
import * as eab from "../../src/operations/operator/Eab.ts"
import { remove as removeOrder } from "../../src/operations/operator/OrderRemoval.ts"
import * as acknowledged from "../../src/store/Acknowledged.ts"
import { bothDatabases } from "../support/Databases.ts"
import { breakWrites, mend } from "../support/Faults.ts"
import { callerAt, configOf, fieldsOf, orderOf, profileOf, sql } from "../support/Graph.ts"
import { issueTo, useOwnCa } from "../support/Issued.ts"

/* Tests how a process notices that the database lacks committed changes because it was restored to an older state. */

const config = configOf()
const operator = { kind: "cli", id: "olga" } as const

describe.each(bothDatabases)("changes that the database has lost, on $name", (backend) => {
  const { records, test } = useOwnCa(backend)
  /** Forgets what earlier tests have committed over the same connections. */
  const here = Effect.gen(function*() {
    yield* acknowledged.forget(yield* acknowledged.lost)
    return yield* callerAt(profileOf(config))
  })
  const told = () => fieldsOf(records, "db_change_lost").map(({ change, order_id = "" }) => `${change} ${order_id}`)
  const rows = sql("SELECT detail FROM audit_log WHERE event = 'changes_lost'")
  /** Looks for lost changes again after ten seconds. */
  const look = Effect.andThen(TestClock.adjust("10 seconds"), tellLost)
  /**
   * Removes an order and everything that belongs to it, as if the database were restored to a state before the order.
   */
  const removed = (id: string) => {
    const literal = backend.dialect === "sqlite" ? `X'${id.replaceAll("-", "")}'` : `'${id}'`
    return Effect.forEach(
      [
        `DELETE FROM challenges WHERE authz_id IN (SELECT id FROM authorizations WHERE order_id = ${literal})`,
        `DELETE FROM authorizations WHERE order_id = ${literal}`,
        `DELETE FROM order_identifiers WHERE order_id = ${literal}`,
        `DELETE FROM orders WHERE id = ${literal}`,
        `DELETE FROM audit_log WHERE order_id = '${id}'`
      ],
      (text) => sql(text)
    )
  }

  test("are each logged once, and counted in the trail", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const kept = yield* issueTo(caller, ["kept.example"])
      yield* look
      const lost = yield* issueTo(caller, ["lost.example"])
      yield* removed(lost.orderId)
      yield* look
      assert.sameMembers(told(), [`order_created ${lost.orderId}`, `certificate_issued ${lost.orderId}`])
      assert.strictEqual(fieldsOf(records, "db_change_lost")[1]?.["cert_serial"], lost.serial.replace(/^0+/, ""))
      assert.strictEqual(fieldsOf(records, "db_went_back")[0]?.["count"], 2)
      const [row] = yield* rows
      const detail = JSON.parse(String(row?.["detail"])) as Readonly<Record<string, unknown>>
      assert.deepInclude(detail, {
        changes: 2,
        counts: { order_created: 1, certificate_issued: 1 },
        orders: [lost.orderId]
      })
      yield* look
      assert.lengthOf(told(), 2)
      assert.lengthOf(yield* rows, 1)
      assert.notInclude(told().join(), kept.orderId)
    }))

  test("are reported as soon as the report can be written", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const { id } = yield* orderOf(caller, "lost.example")
      yield* removed(id)
      yield* breakWrites(backend.dialect, { table: "audit_log", operation: "INSERT" })
      yield* Effect.ignore(look)
      assert.deepStrictEqual(told(), [])
      yield* mend(backend.dialect)
      yield* look
      assert.deepStrictEqual(told(), [`order_created ${id}`])
      assert.lengthOf(yield* rows, 1)
    }))

  test("are noticed even if an earlier look found the changes in the database", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const orders = yield* Effect.forEach(Array.from({ length: 20 }), () => orderOf(caller, "a.example"))
      yield* look
      yield* TestClock.adjust("5 minutes")
      yield* look
      for (const { id } of orders) yield* removed(id)
      yield* orderOf(caller, "c.example")
      yield* look
      assert.sameMembers(told(), orders.map(({ id }) => `order_created ${id}`))
    }))

  test("include lost accounts and credentials, and lost actions of operators", () =>
    Effect.gen(function*() {
      const caller = yield* here
      yield* eab.create(operator, { label: "one", profile: undefined })
      yield* look
      yield* sql("DELETE FROM audit_log")
      yield* sql("DELETE FROM accounts")
      yield* look
      const accounts = fieldsOf(records, "db_change_lost").filter(({ change }) => change === "account_created")
      assert.deepStrictEqual(accounts.map(({ account_id }) => account_id), [caller.accountId])
      assert.include(told(), "eab_created ")
    }))

  test("do not include what an operator has deleted, or changes that are older than a quarter of an hour", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const [ended, old] = [yield* orderOf(caller, "a.example"), yield* orderOf(caller, "b.example")]
      yield* look
      yield* removeOrder(operator, ended.id)
      yield* look
      yield* TestClock.adjust("16 minutes")
      yield* look
      yield* removed(old.id)
      yield* look
      assert.deepStrictEqual(told(), [])
      assert.lengthOf(yield* rows, 0)
    }))
})
