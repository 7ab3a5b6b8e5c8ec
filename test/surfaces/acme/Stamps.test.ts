import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { databases } from "../../support/Databases.ts"
import { column, configOf, sql } from "../../support/Graph.ts"
import { acmeKey, at, byAccount, headerOf, newClient, register, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Accounts, orders and the audit trail store the address and the reverse name of the client. */

describe.each(databases)("the sender of a request, on $name", (backend) => {
  const { test } = useWorld(backend)

  test(
    "is stored with its address and reverse name in the account, the order and the audit row",
    () =>
      Effect.gen(function*() {
        const app = yield* surfaceOf(configOf())
        const key = acmeKey()
        const kid = yield* register(app, key)
        const order = yield* Effect.flatMap(
          byAccount(key, kid, at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }),
          app.handle
        )
        assert.strictEqual(order.status, 201)
        const account = kid.slice(urlOf("").length)
        yield* Effect.flatMap(byAccount(key, kid, account, { contact: ["mailto:a@b.example"] }), app.handle)
        const [accountRow] = yield* sql("SELECT created_ip, created_ptr, last_seen_ip, last_seen_ptr FROM accounts")
        assert.deepStrictEqual({ ...accountRow }, {
          created_ip: "192.0.2.1",
          created_ptr: "client.example",
          last_seen_ip: "192.0.2.1",
          last_seen_ptr: "client.example"
        })
        const [orderRow] = yield* sql("SELECT created_ip, created_ptr FROM orders")
        assert.deepStrictEqual({ ...orderRow }, { created_ip: "192.0.2.1", created_ptr: "client.example" })
        const [auditRow] = yield* sql("SELECT client_ip, client_ptr FROM audit_log")
        assert.deepStrictEqual({ ...auditRow }, { client_ip: "192.0.2.1", client_ptr: "client.example" })
        // A poll updates the account's last request once a minute, and looks up the name only then.
        yield* sql("UPDATE accounts SET last_seen_ptr = NULL, last_seen_at = 0")
        yield* TestClock.adjust("61 seconds")
        yield* Effect.flatMap(byAccount(key, kid, headerOf(order, "location").slice(urlOf("").length)), app.handle)
        const [polled] = yield* sql("SELECT last_seen_ptr FROM accounts")
        assert.strictEqual(polled?.last_seen_ptr, "client.example")
      }),
    { names: { "192.0.2.1": ["client.example"] } }
  )

  test("is stored in the account at once if the address has changed", () =>
    Effect.gen(function*() {
      const app = yield* surfaceOf(configOf())
      const { kid, send } = yield* newClient(app)
      const elsewhere = yield* newClient(app, { clientIp: "192.0.2.8" })
      const seen = column("SELECT last_seen_ip FROM accounts ORDER BY last_seen_ip")
      yield* send(`${kid}/orders`)
      yield* elsewhere.send(`${elsewhere.kid}/orders`)
      assert.deepStrictEqual(yield* seen, ["192.0.2.1", "192.0.2.8"])
    }), { names: { "192.0.2.1": ["client.example"] } })
})
