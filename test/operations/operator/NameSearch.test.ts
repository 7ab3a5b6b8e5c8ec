import { it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { AccountId } from "../../../src/domain/Id.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { ordersFile } from "../../../src/operations/operator/Exports.ts"
import * as orders from "../../../src/operations/operator/OrderRecords.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { configOf, sql } from "../../support/Graph.ts"

/*
 * Tests searches among so many names that a search has to read one name after another
 * (docs/contribute/decisions/data-model.md, "Names that contain a text").
 */

const many = 25_000

describe.each(databases)("names that are read one after another on $name", (backend) => {
  const database = useDatabase(backend)
  const { dialect } = backend

  const id = (prefix: string, number: string) =>
    dialect === "sqlite"
      ? `unhex(printf('${prefix}70008000%012x', ${number}))`
      : `('${prefix}70008000' || lpad(to_hex(${number}), 12, '0'))::uuid`
  const accountOf = (number: number) => AccountId(`01900000-0000-7000-8000-${String(number).padStart(12, "0")}`)

  /**
   * Makes one order for each second since the epoch, by two accounts at two profiles. Every tenth order has failed.
   */
  const insert = Effect.fnUntraced(function*(prefix: string, from: number, to: number, name: string) {
    const numbers = dialect === "sqlite"
      ? `WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) `
      : ""
    const source = dialect === "sqlite" ? "FROM n" : `FROM generate_series(${from}::bigint, ${to}::bigint) AS n(i)`
    const profile = "CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END"
    yield* sql(
      `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at) ${numbers}SELECT ${
        id(prefix, "i")
      }, ${profile}, ${id("019000000000", "i % 2")}, CASE WHEN i % 10 = 0 THEN 'invalid' ELSE 'valid' END,
       '[{"type":"dns","value":"' || ${name} || '"}]', i ${source}`
    )
    yield* sql(
      `INSERT INTO order_identifiers (order_id, profile, name, name_rev) ${numbers}SELECT ${
        id(prefix, "i")
      }, ${profile}, ${name}, ${dialect === "sqlite" ? "'elpmaxe.ynam.' || i || 'h'" : `reverse(${name})`} ${source}`
    )
  })

  const filled = Effect.gen(function*() {
    yield* TestClock.setTime(1_800_000_000_000) // the ids of the rows begin with an earlier time
    for (const number of [0, 1]) {
      yield* sql(
        `INSERT INTO accounts (id, profile, pubkey, status, created_at) VALUES (${id("019000000000", String(number))},
         '${number === 0 ? "even" : "odd"}', ${dialect === "sqlite" ? `x'0${number}'` : `'\\x0${number}'`}, 'valid', 0)`
      )
    }
    yield* insert("019000000001", 1, many, "'h' || i || '.many.example'")
  })

  const numbersOf = (filters: orders.ListFilters, limit = 5, offset = 0, isTotalWanted = true) =>
    Effect.map(orders.list(filters, { limit, offset }, isTotalWanted), ({ items, total, truncated }) => ({
      numbers: items.map(({ createdAt }) => createdAt),
      total,
      truncated
    }))

  const found = (numbers: ReadonlyArray<number>, total: number, truncated = false) => ({ numbers, total, truncated })

  it.effect("are found by a part of the name, newest first and in pages, however old they are", () =>
    database.use(Effect.gen(function*() {
      yield* filled
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: "H24999." }), found([24_999], 1))
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: "h1.ma" }), found([1], 1))
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: "nowhere" }), found([], 0))
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: "%.many" }), found([], 0), "taken literally")
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: "9" }, 1), found([24_999], 8233))
      const every = { identifierContains: ".many." }
      assert.deepStrictEqual(yield* numbersOf(every), found([25_000, 24_999, 24_998, 24_997, 24_996], many))
      assert.deepStrictEqual(yield* numbersOf(every, 2, 20_000), found([5000, 4999], many))
      assert.deepStrictEqual(yield* numbersOf(every, 5, many - 2), found([2, 1], many))
      assert.deepStrictEqual(yield* numbersOf(every, 5, many), found([], many))
    })))

  it.effect("can be filtered by profile, account, status and time", () =>
    database.use(Effect.gen(function*() {
      yield* filled
      const part = { identifierContains: "h2499" } as const
      assert.deepStrictEqual(
        yield* numbersOf(part, 20),
        found([24_999, 24_998, 24_997, 24_996, 24_995, 24_994, 24_993, 24_992, 24_991, 24_990, 2499], 11)
      )
      assert.deepStrictEqual(
        yield* numbersOf({ ...part, profile: "odd" }, 2),
        found([24_999, 24_997], 6)
      )
      assert.deepStrictEqual(yield* numbersOf({ ...part, accountId: accountOf(0) }, 2), found([24_998, 24_996], 5))
      assert.deepStrictEqual(yield* numbersOf({ ...part, status: "invalid" }), found([24_990], 1))
      yield* sql("UPDATE orders SET revoked_at = 30000 WHERE created_at IN (3, 2499, 24991, 24995)")
      const revoked = { ...part, status: "revoked" } as const
      assert.deepStrictEqual(yield* numbersOf(revoked), found([24_995, 24_991, 2499], 3))
      assert.deepStrictEqual(yield* numbersOf({ ...revoked, since: 2500, until: 24_995 }), found([24_991], 1))
      assert.deepStrictEqual(yield* numbersOf({ ...revoked, accountId: accountOf(0) }), found([], 0))
      assert.deepStrictEqual(yield* numbersOf({ ...part, since: 24_998 }), found([24_999, 24_998], 2))
      assert.deepStrictEqual(yield* numbersOf({ ...part, until: 24_991 }), found([24_990, 2499], 2))
      assert.deepStrictEqual(
        yield* numbersOf({
          ...part,
          since: 2000,
          until: 24_993,
          accountId: accountOf(0),
          status: "valid",
          profile: "even"
        }),
        found([24_992], 1)
      )
    })))

  it.effect("are found by a common ending, which must begin with a label", () =>
    database.use(Effect.gen(function*() {
      yield* filled
      assert.deepStrictEqual(yield* numbersOf({ identifierSuffix: "many.example" }, 2), found([25_000, 24_999], many))
      assert.deepStrictEqual(yield* numbersOf({ identifierSuffix: "h77.many.example" }), found([77], 1))
      assert.deepStrictEqual(yield* numbersOf({ identifierSuffix: "7.many.example" }), found([], 0))
      assert.deepStrictEqual(
        yield* numbersOf({ identifierSuffix: "many.example", since: 5, until: 7 }),
        found([6, 5], 2)
      )
      const first = yield* numbersOf({ identifierSuffix: "many.example" }, 2, 0, false)
      assert.deepInclude(
        first,
        { numbers: [25_000, 24_999], truncated: true },
        "who needs a page alone waits for no total"
      )
      const refused = yield* Effect.flip(
        ordersFile(configOf(), { identifierSuffix: "many.example" }, { format: "csv", most: 100 })
      )
      assert.deepInclude(refused, { _tag: "ExportTooLarge", rows: many })
    })))

  it.effect("are read in parts whose limits are determined once, and matches are counted only beyond the page", () =>
    database.use(Effect.gen(function*() {
      yield* filled
      const driver = database.driver()
      const asked: Array<string> = []
      const listening: Driver = {
        ...driver,
        aside: undefined,
        single: (statement, params) =>
          Effect.suspend(() => (asked.push(statement.text), driver.single(statement, params)))
      }
      const found = (identifierContains: string, offset: number) =>
        Effect.gen(function*() {
          asked.length = 0
          yield* Effect.provideService(
            orders.list({ identifierContains }, { limit: 5, offset }, true),
            Database,
            listening
          )
          const met = (shape: RegExp) => asked.filter((text) => shape.test(text)).length
          return { ends: met(/LIMIT 1 OFFSET/), counts: met(/AS met$/) }
        })
      // The walk goes on to the last name of the new rows, of the second stretch, and of the ids that do not begin with
      // a time.
      assert.deepStrictEqual(yield* found("nowhere", 0), { ends: 4, counts: 0 })
      assert.deepStrictEqual(yield* found("nowhere", 0), { ends: 2, counts: 0 })
      assert.deepStrictEqual(yield* found("h2499", 8), { ends: 2, counts: 0 }, "few match: the page is among them")
      assert.deepStrictEqual(yield* found("h24", 0), { ends: 3, counts: 5 }, "the page is full in the first stretch")
      assert.deepStrictEqual(yield* found("h24", 500), { ends: 2, counts: 7 }, "a page further back")
    })))

  it.effect("are read only once for some time if few names match, except for new names", () =>
    database.use(Effect.gen(function*() {
      yield* filled
      yield* TestClock.adjust("1 day") // forgets the limits of the parts in other tests
      yield* insert("019000000001", many + 1, 80_000, "'h' || i || '.many.example'")
      const part = { identifierContains: "h1234." } as const
      assert.deepStrictEqual(yield* numbersOf(part), found([1234], 1))
      const recent = (1_800_086_400_000 - 60_000).toString(16).padStart(12, "0")
      yield* insert(recent, 200_000, 200_000, "'h1234.new.example'")
      yield* insert("019000000002", 200_001, 200_001, "'h1234.old.example'")
      assert.deepStrictEqual(yield* numbersOf(part), found([200_000, 1234], 2), "a settled name is met later")
      const valid = { ...part, status: "valid" } as const
      assert.deepStrictEqual(yield* numbersOf(valid), found([1234], 1), "the new one has failed")
      yield* sql("UPDATE orders SET status = 'invalid' WHERE created_at = 1234")
      assert.deepStrictEqual(yield* numbersOf(valid), found([], 0), "a status is never kept")
      yield* sql("DELETE FROM order_identifiers WHERE name = 'h1234.many.example'")
      yield* sql("DELETE FROM orders WHERE created_at = 1234")
      assert.deepStrictEqual(yield* numbersOf(part), found([200_001, 200_000], 2), "walked again where one is gone")
      yield* TestClock.adjust("15 minutes")
      assert.deepStrictEqual(yield* numbersOf(part), found([200_001, 200_000], 2))
    })))

  it.effect("are also found in converted rows, whose ids do not begin with a time", () =>
    database.use(Effect.gen(function*() {
      yield* filled
      yield* insert("f19000000001", many + 1, many + 3, "'old-' || i || '.many.example'")
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: "old-" }), found([25_003, 25_002, 25_001], 3))
      assert.deepStrictEqual(yield* numbersOf({ identifierContains: ".many." }, 1), found([25_000], many + 3))
    })))
})
