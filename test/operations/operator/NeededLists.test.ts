import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { readStoredChain } from "../../../src/crypto/x509/Chain.ts"
import { make } from "../../../src/operations/operator/NeededLists.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"

/* Lists of CAs that no profile has any more. */

const config = configOf()
const none = new Set<string>()

describe.each(databases)("a revocation list on $name", (backend) => {
  const { test } = useOwnCa(backend)

  const issued = Effect.gen(function*() {
    const { chain } = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
    return readStoredChain(chain)?.issuerId ?? ""
  })
  const issuersOf = (needed: ReturnType<typeof make>) => Effect.map(needed, (rows) => rows.map(({ issuer }) => issuer))

  test("is needed as long as a profile has its CA, or a certificate of its CA is valid", () =>
    Effect.gen(function*() {
      const issuer = yield* issued
      const ofNobody = issuersOf(make(none))
      assert.deepStrictEqual(yield* ofNobody, [issuer])
      yield* TestClock.adjust("365 days")
      assert.deepStrictEqual(yield* ofNobody, [])
      assert.deepStrictEqual(yield* issuersOf(make(new Set([issuer]))), [issuer])
    }))

  test("is needed until the last revoked certificate has expired", () =>
    Effect.gen(function*() {
      const issuer = yield* issued
      yield* sql("UPDATE orders SET revoked_at = 1")
      const ofNobody = issuersOf(make(none))
      assert.deepStrictEqual(yield* ofNobody, [])
      yield* sql(`INSERT INTO revocations (issuer, serial, revoked_at, not_after)
        SELECT '${issuer}', cert_serial, 1, cert_not_after FROM orders`)
      assert.deepStrictEqual(yield* ofNobody, [issuer])
      yield* TestClock.adjust("365 days")
      assert.deepStrictEqual(yield* ofNobody, [])
    }))

  test("may be needed until all certificates were looked at, and while one cannot be read", () =>
    Effect.gen(function*() {
      const issuer = yield* issued
      yield* Effect.forEach(
        ["b", "c"],
        (name) => Effect.flatMap(callerAt(profileOf(config)), (caller) => issueTo(caller, [`${name}.example`]))
      )
      yield* sql("UPDATE orders SET certificate = 'kept elsewhere', leaf = NULL")
      const byTwo = issuersOf(make(none, 2))
      assert.deepStrictEqual([yield* byTwo, yield* byTwo], [[issuer], []])
      yield* sql("UPDATE orders SET identifiers = 'unreadable'")
      assert.deepStrictEqual(yield* issuersOf(make(none)), [issuer])
    }))
})
