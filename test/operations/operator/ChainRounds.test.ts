import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { nameOfHead } from "../../../src/domain/AuditChain.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import { checkStep } from "../../../src/operations/operator/ChainRounds.ts"
import { chainRows } from "../../../src/operations/work/AuditChaining.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import * as checks from "../../../src/store/ChainChecks.ts"
import * as links from "../../../src/store/ChainLinks.ts"
import { databases } from "../../support/Databases.ts"
import { killedAfter } from "../../support/Faults.ts"
import { column, sql } from "../../support/Graph.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"
import { useStore } from "../../support/UseTests.ts"

const row = audit.insert({
  event: "crl_number_raised",
  actorKind: "cli",
  actorId: undefined,
  detail: { issuer: "a", before: 1, after: 2 }
})

/** Writes rows, and chains them in links of one row. */
const linked = (many: number) => Effect.replicateEffect(Effect.andThen(row, chainRows(1)), many, { discard: true })

const step = checkStep("")

/** Runs steps until the check waits. Returns how many there were, and the wait in seconds. */
const round = Effect.gen(function*() {
  for (let steps = 1;; steps++) {
    const wait = yield* step
    if (wait > 0) return { steps, wait }
    assert.isBelow(steps, 200)
  }
})

describe.each(databases)("the daily check of the audit chain on $name", (backend) => {
  const { records, test } = useStore(backend, { startsAt: madeAt })
  const told = (event: string) => records.filter((record) => record.event === event).map(({ fields }) => fields)

  test("reads the whole chain in steps, says what it found, and begins again a day later", () =>
    Effect.gen(function*() {
      yield* chainRows(1)
      yield* linked(12)
      assert.deepStrictEqual(yield* round, { steps: 1, wait: daySeconds })
      const head = yield* links.head
      const name = head === undefined ? "" : nameOfHead(head)
      assert.deepStrictEqual(told("audit_chain_checked"), [{ rows_verified: 12, faults: 0, head: name }])
      assert.strictEqual(yield* step, daySeconds, "nothing is read before a day has passed")
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* step, daySeconds - 3600)
      assert.lengthOf(told("audit_chain_checked"), 1)
      yield* linked(1)
      yield* TestClock.adjust("23 hours")
      yield* round
      assert.deepStrictEqual(told("audit_chain_checked").map(({ rows_verified }) => rows_verified), [12, 13])
    }))

  test("takes several steps for a long chain, and continues where the last one ended", () =>
    Effect.gen(function*() {
      yield* chainRows(1)
      yield* linked(60)
      const small = checkStep("", 1)
      // A step ends at the end of a page of 25 links.
      assert.deepStrictEqual([yield* small, (yield* checks.find)?.nextSequence], [0, 25])
      assert.deepStrictEqual([yield* small, (yield* checks.find)?.nextSequence], [0, 50])
      assert.deepStrictEqual([yield* small, (yield* checks.find)?.nextSequence], [daySeconds, undefined])
      assert.deepStrictEqual(told("audit_chain_checked").map(({ rows_verified }) => rows_verified), [60])
    }))

  test("tells of a row that was changed, and shows it in the result until it is gone", () =>
    Effect.gen(function*() {
      yield* chainRows(1)
      yield* linked(3)
      yield* sql("DELETE FROM audit_log WHERE id = (SELECT max(id) - 1 FROM audit_log)")
      yield* round
      assert.deepInclude(told("audit_chain_faulty")[0], { total: 1, kind: "removed" })
      assert.strictEqual((yield* checks.find)?.endedFaults, 1)
      yield* TestClock.adjust("1 day")
      yield* step
      assert.strictEqual((yield* checks.find)?.endedFaults, 1)
    }))

  test("finds that the newest links and their rows were removed since the last check", () =>
    Effect.gen(function*() {
      yield* chainRows(1)
      yield* linked(3)
      yield* round
      const removed = "SELECT last_id FROM audit_chain ORDER BY sequence DESC LIMIT 1"
      yield* sql(`DELETE FROM audit_log WHERE id = (${removed})`)
      yield* sql("DELETE FROM audit_chain WHERE sequence = (SELECT max(sequence) FROM audit_chain)")
      yield* TestClock.adjust("1 day")
      yield* round
      assert.deepInclude(told("audit_chain_faulty")[0], { total: 1, kind: "removed" })
    }))

  test("ends at once while there is no chain", () =>
    Effect.gen(function*() {
      yield* row
      assert.deepStrictEqual(yield* round, { steps: 1, wait: daySeconds })
      assert.deepStrictEqual(told("audit_chain_checked"), [{ rows_verified: 0, faults: 0, head: undefined }])
    }))

  test("begins again if the clock was a day ahead, or if the link was deleted where it should continue", () =>
    Effect.gen(function*() {
      yield* chainRows(1)
      yield* linked(2)
      yield* checks.begin(madeAt)
      yield* checks.step({ from: undefined, next: 77, verified: 5, faults: 1 })
      yield* round
      assert.deepInclude(told("audit_chain_checked").at(-1), { rows_verified: 2, faults: 0 })
      yield* checks.begin(madeAt + 10 * daySeconds)
      yield* round
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* round).wait, daySeconds - 60)
    }))

  test("tells one result if the process is killed between any two statements", () =>
    Effect.gen(function*() {
      const driver = yield* Database
      yield* chainRows(1)
      yield* linked(4)
      let isKilled = true
      for (let statements = 0; isKilled; statements++) {
        yield* sql("DELETE FROM audit_chain_checks")
        const mortal = yield* killedAfter(driver, statements)
        isKilled = (yield* Effect.exit(Effect.provideService(round, Database, mortal.driver)))._tag === "Failure"
        yield* round
        const [found] = yield* column("SELECT ended_verified FROM audit_chain_checks")
        assert.strictEqual(found, "4", `killed after ${statements} statements`)
        assert.isBelow(statements, 60)
      }
    }))
})
