import { assert, describe, it } from "vitest"
import { tableOf } from "../../../src/engine/config/Salvage.ts"

const database = (...lines: ReadonlyArray<string>) => tableOf(lines.join("\n"), "database")

describe("a table of a broken file", () => {
  it("is found at any place and in any notation", () => {
    const url = "url = \"sqlite://a.db\""
    assert.strictEqual(database("[server", "[database]", url, "[admin]", "enabled = maybe"), `[database]\n${url}`)
    assert.strictEqual(
      database("x = = 1", "[ \"database\" ] # ours", url, "", "[server]"),
      `[ "database" ] # ours\n${url}\n`
    )
    assert.strictEqual(
      database("[database]", url, "[server]", "a = ", "[database.sqlite]", "synchronous = \"full\""),
      `[database]\n${url}\n[database.sqlite]\nsynchronous = "full"`
    )
    assert.strictEqual(database("a = '", "database.url = \"x\"", "databases.url = 1"), "database.url = \"x\"")
    assert.strictEqual(
      database("database = { url = \"x\" }", "[other", "database.url = 2"),
      "database = { url = \"x\" }"
    )
  })

  it("never includes a line of another table, even if the header of that table is broken", () => {
    assert.strictEqual(database("[database]", "[notify.webhook.chat", "url = \"https://a\"", "[x]"), "[database]")
    assert.strictEqual(database("[database", "url = \"sqlite://a.db\""), "")
    assert.strictEqual(database("[database.url]x", "[databases]", "url = 1"), "[database.url]x")
  })

  it("is not searched for if a string of several lines may look like a table", () => {
    for (const quotes of ["\"\"\"", "'''"]) {
      assert.isUndefined(database(`a = ${quotes}`, "[database]", "url = \"sqlite://a.db\"", quotes, "x = ="))
    }
  })
})
