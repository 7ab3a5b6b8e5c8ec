import { assert, describe, it } from "vitest"
import { shownAt } from "../../src/settings/Effective.ts"
import { frozenChanges } from "../../src/settings/Frozen.ts"
import { configOf } from "../support/Graph.ts"

const changes = (before: string, after: string) => frozenChanges(configOf(before), configOf(after))

describe("keys that are frozen while the service runs", () => {
  it("include every key of the database section, by name", () => {
    assert.deepStrictEqual(changes("", ""), [])
    assert.deepStrictEqual(changes("", "[server]\nmax_body_bytes = 5\n[jobs]\nmax_concurrent = 1"), [])
    assert.deepStrictEqual(changes("", `[database]\nurl = "sqlite://sqlite.db"\npool_max = 10`), [], "the defaults")
    assert.deepStrictEqual(changes("", "[database]\npool_max = 3"), ["database.pool_max"])
    assert.deepStrictEqual(
      changes("", `[database]\npool_max = 3\n[database.sqlite]\nsynchronous = "normal"`),
      ["database.pool_max", "database.sqlite.synchronous"]
    )
  })

  it("are shown with their values, but without secrets", () => {
    const [one, other] = ["acme:hunter2@one", "acme:other@two"].map((at) =>
      shownAt(configOf(`[database]\nurl = "postgres://${at}.example/acme"`), "database.url")
    )
    assert.deepStrictEqual([one, other], [
      "postgres://acme:***@one.example/acme",
      "postgres://acme:***@two.example/acme"
    ])
    assert.strictEqual(shownAt(configOf("[database]\npool_max = 3"), "database.pool_max"), "3")
  })

  it("include server.reuse_port, server.processes and tracing.endpoint", () => {
    assert.deepStrictEqual(changes("", "[server]\nreuse_port = true"), ["server.reuse_port"])
    assert.deepStrictEqual(changes("", "[server]\nreuse_port = false"), [])
    const processes = (value: string) =>
      `[database]\nurl = "postgres://acme@db.example/acme"\n[server]\nprocesses = ${value}\n`
    assert.deepStrictEqual(changes(processes("2"), processes(`"auto"`)), ["server.processes"])
    assert.deepStrictEqual(changes("", "[tracing]\nendpoint = \"http://127.0.0.1:4318/v1/traces\""), [
      "tracing.endpoint"
    ])
  })

  it("include database.url if only its password has changed", () => {
    const url = (password: string) => `[database]\nurl = "postgres://u:${password}@localhost/d"`
    assert.deepStrictEqual(changes(url("one"), url("one")), [])
    assert.deepStrictEqual(changes(url("one"), url("two")), ["database.url"])
  })
})
