import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import { callerAt, column, configOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"

/* Tests certificates whose expiry is not yet stored in the column for it (docs/contribute/decisions/expiring.md). */

const config = configOf()

describe.each(databases)("expiries that are not stored in the column, on $name", (backend) => {
  const { records, test } = useOwnCa(backend)
  const said = (event: string) => records.filter((one) => one.event === event).map(({ fields }) => fields)
  const ends = column("SELECT DISTINCT cert_not_after FROM orders ORDER BY cert_not_after")

  test("are stored by the sweep of orders in several batches, and an unreadable chain is stored as -1 and logged", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { leaf } = yield* issueTo(caller, ["a.example"])
      const every = Array.from({ length: 505 }, (_, at) => orderOf(caller, `a${at}.example`))
      yield* Effect.all(every, { concurrency: "unbounded", discard: true })
      yield* sql("UPDATE orders SET status = 'valid', certificate = 'unreadable' WHERE certificate IS NULL")
      yield* sql("UPDATE orders SET cert_not_after = NULL")
      yield* sql("UPDATE orders SET revoked_at = 1 WHERE id IN (SELECT id FROM orders LIMIT 7)")
      yield* sweeps.sweepOrders(config)
      assert.deepStrictEqual(said("notify_expiry_backfilled"), [{ profile: "default", rows_updated: 1 }])
      const named = said("db_row_unreadable")
      assert.strictEqual(new Set(named.map(({ row }) => row)).size, 505)
      assert.match(String(named[0]?.["row"]), /^id [0-9a-f-]{36}$/)
      assert.deepStrictEqual(yield* ends, ["-1", String(leaf.validToDate.getTime() / 1000)])
    }))

  test("cause a log record if they cannot be stored, and the sweep continues", () =>
    Effect.gen(function*() {
      yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
      yield* sql("UPDATE orders SET status = 'valid', certificate = 'unreadable'")
      yield* breakWrites(backend.dialect, { operation: "UPDATE", table: "orders" })
      yield* sweeps.sweepOrders(config)
      yield* mend(backend.dialect)
      assert.include(String(said("notify_expiry_backfill_failed")[0]?.["error"]), "planted")
      assert.include(records.map(({ event }) => event), "order_reaper_swept")
    }))
})
