import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { namedLeafOf } from "../../../src/crypto/x509/CertId.ts"
import { hourSeconds } from "../../../src/domain/RenewalHour.ts"
import { renewalInfo } from "../../../src/operations/Renewal.ts"
import { RenewalHours } from "../../../src/services/signing/RenewalHours.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import { callerAt, column, configOf, eventsOf, profileOf } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"

/* Renewal windows that are spread by load (docs/clients/renewal.md). */

const spread = configOf("[renewal]\nspread = true")
const life = { notBefore: madeAt, notAfter: madeAt + 90 * daySeconds }
/** The whole hours between two thirds and three quarters of ninety days. */
const hours = 180

const serialOf = (index: number): string => (index * 2_654_435_761 % 2 ** 32).toString(16).padStart(8, "0")

describe.each(databases)("spread renewal windows on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

  const rows = Effect.map(
    column("SELECT windows FROM renewal_hours ORDER BY hour"),
    (found) => found.map(Number)
  )
  const another = Effect.provide(RenewalHours, RenewalHours.layer, { local: true })
  const chooseMany = ({ choose }: RenewalHours["Service"], many: number) =>
    Effect.forEach(Array.from({ length: many }, (_, index) => index), (index) => choose(life, serialOf(index)))

  test("last an hour, and are the same at each request", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(spread))
      const { chain, leaf } = yield* issueTo(caller, ["a.example"], undefined, spread)
      const info = renewalInfo("default", namedLeafOf(chain)?.certId ?? "")
      const { end, isRevoked, start } = yield* info
      assert.strictEqual(end - start, hourSeconds)
      assert.isFalse(isRevoked)
      const [from, to] = [Date.parse(leaf.validFrom) / 1000, Date.parse(leaf.validTo) / 1000]
      assert.isAtLeast(start, from + (to - from) * 2 / 3)
      assert.isAtMost(end, from + (to - from) * 3 / 4)
      yield* TestClock.adjust("2 hours")
      assert.deepInclude(yield* info, { start, end })
    }))

  test("are all of the usual time if nothing is spread", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(configOf()))
      const { chain } = yield* issueTo(caller, ["a.example"])
      const { end, start } = yield* renewalInfo("default", namedLeafOf(chain)?.certId ?? "")
      assert.isAbove(end - start, 7 * daySeconds)
      assert.deepStrictEqual(yield* rows, [])
    }))

  test("fill the hours evenly, also after other processes have counted", () =>
    Effect.gen(function*() {
      const one = yield* RenewalHours
      yield* chooseMany(one, 5 * hours)
      yield* one.refresh
      assert.deepStrictEqual(new Set(yield* rows), new Set([5]))
      const other = yield* another
      yield* chooseMany(other, hours)
      yield* other.refresh
      assert.deepStrictEqual(yield* rows, Array.from({ length: hours }, () => 6))
      yield* one.refresh
      yield* chooseMany(one, hours)
      yield* one.refresh
      assert.deepStrictEqual(yield* rows, Array.from({ length: hours }, () => 7))
    }))

  test("are counted later if the database refuses the write, and hours that are over are removed", () =>
    Effect.gen(function*() {
      const { choose, keepCounting } = yield* RenewalHours
      yield* choose(life, serialOf(1))
      yield* breakWrites(backend.dialect, { operation: "INSERT", table: "renewal_hours" })
      const counting = yield* Effect.forkChild(keepCounting)
      yield* TestClock.adjust("20 seconds")
      yield* Effect.repeat(Effect.yieldNow, { until: () => eventsOf(records).includes("renewal_hours_unwritten") })
      assert.deepStrictEqual(yield* rows, [])
      yield* mend(backend.dialect)
      yield* TestClock.adjust("20 seconds")
      yield* Effect.repeat(rows, { until: (found) => found.length > 0 })
      yield* Fiber.interrupt(counting)
      yield* TestClock.adjust("80 days")
      const { refresh } = yield* RenewalHours
      const from = { notBefore: life.notBefore + 80 * daySeconds, notAfter: life.notAfter + 80 * daySeconds }
      const [hour] = [yield* choose(from, serialOf(2))]
      yield* refresh
      assert.deepStrictEqual(
        (yield* column("SELECT hour FROM renewal_hours")).map((found) => Number(found) * hourSeconds),
        [hour]
      )
    }))
})
