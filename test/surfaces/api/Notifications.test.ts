import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Notifier, notify } from "../../../src/services/notify/Notifier.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import { databases } from "../../support/Databases.ts"
import { column } from "../../support/Graph.ts"
import { work } from "../../support/Issued.ts"

/* Notifications over the API. The receivers of this world accept everything. */

const toml = `[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/SECRETPATH"
`

describe.each(databases)("notifications over the API on $name", (backend) => {
  const { config, test } = useApi(backend, toml)

  test("can be tested by operators, who see the answer of the receiver", (asking) =>
    Effect.gen(function*() {
      const held = yield* signedIn(asking, "jane", "operator")
      const tested = yield* asking.ask("/api/notify/test", {
        method: "POST",
        body: { target: "chat", event: "certificate_issued" },
        ...held
      })
      assert.strictEqual(tested.status, 200)
      assert.deepStrictEqual(tested.json, {
        items: [{
          profile: "default",
          backend: "webhook",
          entry: "chat",
          event: "certificate_issued",
          delivered: true,
          answer: "taken"
        }, {
          profile: "other",
          backend: "webhook",
          entry: "chat",
          event: "certificate_issued",
          delivered: true,
          answer: "taken"
        }]
      } as never)
      assert.deepStrictEqual(yield* column("SELECT actor_id FROM audit_log WHERE event = 'notifications_tested'"), [
        "jane"
      ])
      const nothing = yield* asking.ask("/api/notify/test", { method: "POST", body: { target: "pager" }, ...held })
      assert.strictEqual(nothing.status, 400)
    }))

  test("cannot be tested by viewers, who may read the deliveries", (asking) =>
    Effect.gen(function*() {
      const held = yield* signedIn(asking, "jane", "viewer")
      const refused = yield* asking.ask("/api/notify/test", { method: "POST", body: {}, ...held })
      assert.strictEqual(refused.status, 403)
      yield* Effect.provide(
        notify({ event: "account_deactivated", scope: "default", fields: { account_id: "a" } }),
        Notifier.layer(() => config)
      )
      yield* work("notify_deliver")
      const listed = yield* asking.ask("/api/notify/deliveries", held)
      const [item] = (listed.json as unknown as { readonly items: ReadonlyArray<object> }).items
      assert.deepInclude({ ...item }, {
        profile: "default",
        backend: "webhook",
        entry: "chat",
        event: "account_deactivated",
        status: "done",
        attempts: 1
      })
      assert.notInclude(JSON.stringify(listed.json), "SECRETPATH")
    }))
})
