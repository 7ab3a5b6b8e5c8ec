import { Effect, Layer } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Database } from "../../../src/kernel/sql/Database.ts"
import type { Connection, Driver } from "../../../src/kernel/sql/Driver.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { column, configOf, count, eventsOf, sql, world } from "../../support/Graph.ts"
import { at, bodyOf, byAccount, newClient, surfaceOf, urlOf } from "../../support/Handle.ts"
import { policiesOf } from "../../support/Policies.ts"
import { shellScript } from "../../support/Script.ts"
import type { Making } from "../../support/UseTests.ts"
import { onSystemClock, useStore } from "../../support/UseTests.ts"

/* The nonce of a request that writes (docs/decisions/nonces.md, "With what a request writes"). */

const identifiers = [{ type: "dns", value: "a.example" }]
const csrFor = (...names: ReadonlyArray<string>) => makeCsr({ names }).csr.toString("base64url")

describe.each(databases)("the nonce of a request that writes on $name", (backend) => {
  let config = configOf()
  let ran = ""
  const { database, records, test } = useStore(backend, {
    layer: ({ name, records, script }: Making<() => string>) => {
      config = configOf(script?.() ?? "")
      return world({ records, seed: name, policies: Layer.fresh(policiesOf(config)) })
    },
    first: () => Effect.flatMap(surfaceOf(config), (app) => Effect.map(newClient(app), (client) => ({ app, client }))),
    around: onSystemClock
  })

  /** The same request twice: the answer of the first, and whether the second was told of its nonce and of nothing else. */
  const twice = Effect.fnUntraced(function*(
    { app, client: { key, kid } }: {
      readonly app: Effect.Success<ReturnType<typeof surfaceOf>>
      readonly client: Effect.Success<ReturnType<typeof newClient>>
    },
    to: string,
    payload: object
  ) {
    const request = yield* byAccount(key, kid, to.startsWith("/") ? to : to.slice(urlOf("").length), payload)
    const first = yield* app.handle(request)
    const rows = Effect.all(["orders", "jobs", "audit_log"].map((table) => count(`SELECT count(*) FROM ${table}`)))
    const before = yield* rows
    records.length = 0
    const again = yield* app.handle(request)
    assert.deepStrictEqual([again.status, bodyOf(again).type], [400, "urn:ietf:params:acme:error:badNonce"])
    assert.include(eventsOf(records), "nonce_replayed")
    for (const event of ["audit_write_failed", "csr_rejected"]) assert.notInclude(eventsOf(records), event)
    assert.notInclude(eventsOf(records), "request_handler_panicked")
    assert.deepStrictEqual(yield* rows, before, "nothing was written")
    return first
  })

  test("is spent once, whatever was written with it, or not", (given) =>
    Effect.gen(function*() {
      const { send } = given.client
      const order = yield* twice(given, at("/newOrder"), { identifiers })
      assert.strictEqual(order.status, 201)
      assert.strictEqual(
        (yield* twice(given, at("/newOrder"), { identifiers: [] })).status,
        400,
        "refused before a write"
      )
      assert.strictEqual((yield* twice(given, at("/chall/nothing"), {})).status, 404)
      const { authorizations: [authz = ""], finalize } = bodyOf(order) as unknown as {
        readonly authorizations: ReadonlyArray<string>
        readonly finalize: string
      }
      const { challenges: [challenge] } = bodyOf(yield* send(authz)) as unknown as {
        readonly challenges: ReadonlyArray<{ readonly url: string }>
      }
      assert.strictEqual((yield* twice(given, challenge?.url ?? "", {})).status, 200)
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("a.example") })).status, 403, "not ready")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("b.example") })).status, 400)
      assert.deepStrictEqual(yield* column("SELECT event FROM audit_log"), ["certificate_issue_failed"])
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("a.example") })).status, 200)
    }))

  test("is spent first where the account may not ask, and where its last request is to be recorded", (given) =>
    Effect.gen(function*() {
      const { key, kid } = given.client
      const used = yield* byAccount(key, kid, at("/newOrder"), { identifiers })
      assert.strictEqual((yield* given.app.handle(used)).status, 201)
      yield* sql("UPDATE accounts SET last_seen_at = 1")
      assert.strictEqual(bodyOf(yield* given.app.handle(used)).type, "urn:ietf:params:acme:error:badNonce")
      assert.deepStrictEqual(yield* column("SELECT last_seen_at FROM accounts"), ["1"], "a replay was not seen")
      yield* sql("UPDATE accounts SET status = 'deactivated', last_seen_at = 4102444800")
      assert.strictEqual((yield* twice(given, at("/newOrder"), { identifiers })).status, 401)
    }))

  test("is spent before a script judges what is asked for", (given) =>
    Effect.gen(function*() {
      assert.strictEqual((yield* twice(given, at("/newOrder"), { identifiers })).status, 201)
      assert.strictEqual(readFileSync(ran, "utf8"), "x", "the script ran once")
    }), () => {
    ran = join(freshDirectory(), "ran")
    writeFileSync(ran, "")
    return `filter.check.counted = { type = "custom", script_path = "${
      shellScript(`printf x >> ${ran}`)
    }", stages = ["identifiers"] }
filter.rules = ["all"]
filter.rule.all = { when = "counted", then = "allow" }
`
  })
  test("is spent in the transaction of the order, where commits are shared, and apart from it elsewhere", ({ client }) =>
    Effect.gen(function*() {
      const driver = database.driver()
      const transactions: Array<Array<string>> = []
      const listening: Driver = {
        ...driver,
        transact: (body) =>
          driver.transact((connection) => {
            const sent: Array<string> = []
            transactions.push(sent)
            const execute: Connection["execute"] = (text, params) => {
              sent.push(text.split(" ").slice(0, 3).join(" "))
              return connection.execute(text, params)
            }
            return body({ executeRaw: connection.executeRaw, execute })
          })
      }
      const answer = yield* Effect.provideService(client.send(at("/newOrder"), { identifiers }), Database, listening)
      assert.strictEqual(answer.status, 201)
      assert.deepStrictEqual(transactions, [[
        ...backend.dialect === "sqlite" ? ["DELETE FROM nonces"] : [],
        "INSERT INTO orders",
        "INSERT INTO order_identifiers",
        "INSERT INTO authorizations",
        "INSERT INTO challenges"
      ]])
    }))
})
