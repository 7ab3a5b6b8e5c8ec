import { Effect, Stream } from "effect"
import { assert, describe, it } from "vitest"
import * as eab from "../../../src/operations/operator/Eab.ts"
import * as expiring from "../../../src/operations/operator/ExpiringRecords.ts"
import type { Exported, Wish } from "../../../src/operations/operator/Exports.ts"
import * as files from "../../../src/operations/operator/Exports.ts"
import { exportText } from "../../../src/operations/operator/ExportText.ts"
import * as orders from "../../../src/operations/operator/OrderRecords.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"
import { orders as populatedOrders, populate } from "../../support/Populated.ts"
import { useWorld } from "../../support/UseWorld.ts"

const config = configOf()

const written = (columns: ReadonlyArray<string>, ...rows: ReadonlyArray<{ readonly [name: string]: unknown }>) =>
  Effect.runSync(
    Stream.runCollect(exportText("csv", columns, Stream.succeed(rows))).pipe(
      Effect.map((parts) => parts.join(""))
    )
  )

const quoted = (text: string) => /[";\t\n]/.test(text) ? `"${text.replaceAll("\"", "\"\"")}"` : text

describe("a CSV file", () => {
  it("begins with a line of names, ends each line with CRLF, and separates the items of a list by blanks", () => {
    const row = { a: 1, b: ["x", "y"], c: [{ type: "dns", value: "a.example" }, { type: "dns", value: "b.example" }] }
    assert.strictEqual(written(["a", "b", "c", "d"], row), "a,b,c,d\r\n1,x y,a.example b.example,\r\n")
    assert.strictEqual(written(["a"]), "a\r\n")
  })

  it("quotes values that a reader would otherwise split", () => {
    assert.strictEqual(
      written(["a"], { a: "x,y" }, { a: "say \"no\"" }, { a: "one\ntwo" }, { a: "one\rtwo" }, { a: { k: 1 } }),
      `a\r\n"x,y"\r\n"say ""no"""\r\n"one\ntwo"\r\n"one\rtwo"\r\n"{""k"":1}"\r\n`
    )
  })

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "=cmd|' /C calc'!A0"])(
    "escapes %j, which a spreadsheet would run",
    (text) => {
      const [, line = ""] = written(["a"], { a: text }).split("a\r\n")
      assert.match(line, /^"?'/)
      const [, listed = ""] = written(["a"], { a: [text, "x"] }).split("a\r\n")
      assert.match(listed, /^"?'/)
    }
  )

  it.each([
    ["a;=1+1", "a;'=1+1"],
    ["a; \t-1", "a;' \t'-1"],
    [";\"=1+1\"", ";'\"=1+1\""],
    ["a\n@SUM(A1)", "a\n'@SUM(A1)"],
    ["a\t+1", "a\t'+1"],
    [" =1", "' =1"],
    ["\u00a0\u200b=1", "'\u00a0\u200b=1"],
    ["\uff1d1", "'\uff1d1"],
    ["\uff0b1", "'\uff0b1"],
    ["\uff0d1", "'\uff0d1"],
    ["\uff20A1", "'\uff20A1"]
  ])("escapes %j wherever a spreadsheet may begin a cell", (text, shown) => {
    assert.strictEqual(written(["a"], { a: `${text}` }).slice(3), `${quoted(shown)}\r\n`)
  })

  it("leaves a value unchanged if a character that begins a formula is only inside the value", () => {
    assert.strictEqual(
      written(["a"], { a: "a=b" }, { a: "2027-01-15T08:00:00Z" }),
      "a\r\na=b\r\n2027-01-15T08:00:00Z\r\n"
    )
  })
})

/** The whole text of a file, as a client would get it. */
const textOf = ({ text }: Exported) => Effect.map(Stream.runCollect(text), (parts) => parts.join(""))
const itemsOf = <E, R>(file: Effect.Effect<Exported, E, R>) =>
  Effect.map(
    Effect.flatMap(file, textOf),
    (text) => (JSON.parse(text) as { readonly items: ReadonlyArray<{ readonly [name: string]: unknown }> }).items
  )
const json: Wish = { format: "json" }

/** Fills every table, but removes the expiry of each order, because one expiry is too large for an exact integer. */
const peopled = Effect.andThen(populate, Effect.suspend(() => sql("UPDATE orders SET cert_not_after = NULL")))

describe.each(databases)("exports on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt: 1_800_000_000 })

  test("contain every order, newest first, in more than one batch", () =>
    Effect.gen(function*() {
      yield* peopled
      const items = yield* itemsOf(files.ordersFile(config, {}, json))
      assert.strictEqual(items.length, populatedOrders)
      assert.strictEqual(new Set(items.map(({ id }) => id)).size, populatedOrders)
      const times = items.map(({ createdAt }) => String(createdAt))
      assert.deepStrictEqual(times, times.toSorted().toReversed())
      const csv = yield* Effect.flatMap(files.ordersFile(config, {}, { format: "csv" }), textOf)
      assert.strictEqual(csv.split("\r\n").length, populatedOrders + 2)
      assert.notInclude(csv + JSON.stringify(items), "BEGIN CERTIFICATE")
    }))

  test("contain the same rows as the list if they have the same filters", () =>
    Effect.gen(function*() {
      yield* peopled
      const filters = { profile: "default", status: "valid" } as const
      const listed = yield* orders.list(filters, { limit: 50, offset: 0 })
      assert.deepStrictEqual(
        (yield* itemsOf(files.ordersFile(config, filters, json))).map(({ id }) => id),
        listed.items.map(({ id }) => id)
      )
      const part = { identifierContains: "A.EXAM" }
      assert.lengthOf(yield* itemsOf(files.ordersFile(config, part, json)), 1)
      assert.lengthOf(yield* itemsOf(files.accountsFile({ profile: "other" }, json)), 2)
      assert.lengthOf(yield* itemsOf(files.accountsFile({}, json)), 3)
      assert.lengthOf(yield* itemsOf(files.auditFile({}, json)), 4)
      assert.lengthOf(yield* itemsOf(files.auditFile({ requestId: "request-1" }, json)), 1)
      const credentials = yield* itemsOf(files.eabFile({ status: undefined }, json))
      assert.lengthOf(credentials, 2)
      assert.notInclude(JSON.stringify(credentials), "secret")
      assert.lengthOf(yield* itemsOf(files.eabFile({ status: "revoked" }, json)), 1)
    }))

  test("contain an empty list or only the first line if there are no rows", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Effect.flatMap(files.accountsFile({}, json), textOf), `{"items":[]}\n`)
      const csv = yield* Effect.flatMap(files.eabFile({ status: undefined }, { format: "csv" }), textOf)
      assert.strictEqual(csv, "kid,label,profile,status,createdAt,accounts\r\n")
    }))

  test("have file names with the kind of content and the time of the request", () =>
    Effect.gen(function*() {
      const { fileName, mediaType } = yield* files.auditFile({}, { format: "csv" })
      assert.deepStrictEqual([fileName, mediaType], [
        "acme-svc-audit-20270115T080000Z.csv",
        "text/csv; charset=utf-8; header=present"
      ])
    }))

  test("are refused before the first row if they would have more rows than requested", () =>
    Effect.gen(function*() {
      yield* peopled
      const refusal = yield* Effect.flip(files.ordersFile(config, {}, { ...json, most: populatedOrders - 1 }))
      assert.deepInclude(refusal, { _tag: "ExportTooLarge", rows: populatedOrders, most: populatedOrders - 1 } as const)
      assert.lengthOf(
        yield* itemsOf(files.ordersFile(config, {}, { ...json, most: populatedOrders })),
        populatedOrders
      )
      assert.strictEqual(files.mostOverApi, 100_000)
    }))

  test("escape the texts of others that a spreadsheet would run as formulas", () =>
    Effect.gen(function*() {
      yield* eab.create({ kind: "cli", id: "x" }, { label: "=HYPERLINK(\"http://evil\")", profile: undefined })
      const csv = yield* Effect.flatMap(files.eabFile({ status: undefined }, { format: "csv" }), textOf)
      assert.include(csv, `,"'=HYPERLINK(""http://evil"")",`)
    }))

  test("contain all rows of a request, or are refused if the search for these rows ends early", () =>
    Effect.gen(function*() {
      yield* peopled
      const isSqlite = backend.dialect === "sqlite"
      const numbers = isSqlite ? "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) " : ""
      yield* sql(
        `INSERT INTO audit_log (id, created_at, event, outcome, actor_kind, request_id)
         ${
          isSqlite ? "" : "OVERRIDING SYSTEM VALUE"
        } ${numbers}SELECT 1000 + i, i / 7, 'eab_created', 'success', 'cli', 'request-1'
         FROM ${isSqlite ? "n" : "generate_series(1, 9999) AS n(i)"}`
      )
      const filters = { requestId: "request-1" }
      assert.lengthOf(yield* itemsOf(files.auditFile(filters, json)), 10_000)
      const refusal = yield* Effect.flip(files.auditFile(filters, { ...json, most: files.mostOverApi }))
      assert.strictEqual(refusal._tag, "BadRequest")
      const narrowed = { requestId: "request-1", outcome: "failure" } as const
      assert.lengthOf(yield* itemsOf(files.auditFile(narrowed, json)), 0)
    }))

  test("contain rows that were made in the same second once each", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      for (let at = 0; at < 5; at++) yield* orderOf(caller, `a${at}.example`)
      yield* sql("UPDATE orders SET created_at = 7")
      assert.lengthOf(yield* itemsOf(files.ordersFile(config, {}, json)), 5)
    }))
})

describe.each(databases)("the export of expiring certificates on $name", (backend) => {
  const { test } = useOwnCa(backend)

  test("contains the same as the list, with and without the certificates that were replaced", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const first = yield* issueTo(caller, ["a.example"])
      yield* issueTo(caller, ["b.example"])
      const second = yield* issueTo(caller, ["a.example"])
      yield* sql("UPDATE orders SET cert_not_after = cert_not_after + 100")
      const quote = backend.dialect === "sqlite" ? "X" : ""
      const plain = backend.dialect === "sqlite" ? second.orderId.replaceAll("-", "") : second.orderId
      yield* sql(`UPDATE orders SET cert_not_after = cert_not_after + 100 WHERE id = ${quote}'${plain}'`)
      for (const hideSuperseded of [false, true]) {
        const wanted = { days: 10_000, hideSuperseded }
        const listed = yield* expiring.list(wanted, { limit: 50, offset: 0 })
        const items = yield* itemsOf(files.expiringFile(wanted, json))
        assert.deepStrictEqual(items.map(({ orderId }) => orderId), listed.items.map(({ order }) => order.id))
        assert.strictEqual(items.some(({ orderId }) => orderId === first.orderId), !hideSuperseded)
      }
    }))
})
