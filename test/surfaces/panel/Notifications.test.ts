import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Notifier, notify } from "../../../src/services/notify/Notifier.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { work } from "../../support/Issued.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"

/* The page of notifications: the deliveries, and a test on demand (docs/contribute/decisions/notifications.md). */

const page = "/ui/notifications"

const toml = `[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/SECRETPATH"
events = ["account_deactivated", "certificate_issued"]
`

describe.each(databases)("the page of notifications on $name", (backend) => {
  const { config, test } = usePanel(backend, toml)

  const told = Effect.provide(
    notify({ event: "account_deactivated", scope: "default", fields: { account_id: "a" } }),
    Notifier.layer(() => config)
  )

  test("says that nothing has been delivered yet", ({ ask }) =>
    Effect.gen(function*() {
      const shown = yield* ask(page, yield* entered({ ask }, "ann", "viewer"))
      assert.strictEqual(shown.status, 200)
      assert.include(shown.text, "Nothing has been delivered yet.")
      assert.include(shown.text, `<a href="${page}" aria-current="page">Notifications</a>`)
    }))

  test("lists deliveries with their last error, and refreshes while one can change", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      yield* told
      const waiting = yield* ask(page, held)
      assert.include(waiting.text, "data-poll=")
      assert.include(wordsOf(waiting), "account_deactivated webhook chat default ready 0 of 3")
      yield* work("notify_deliver")
      yield* work("notify_deliver")
      const done = yield* ask(page, held)
      assert.include(wordsOf(done), "account_deactivated webhook chat default done 1 of 3")
      assert.notInclude(done.text, "data-poll=")
      yield* told
      yield* sql("UPDATE jobs SET status = 'running' WHERE status = 'ready'")
      assert.include((yield* ask(page, held)).text, "data-poll=", "one of two goes on")
      yield* sql("DELETE FROM jobs WHERE status = 'running'")
      yield* sql(
        `UPDATE jobs SET status = 'failed', last_error = ${backend.dialect === "sqlite" ? "?" : "$1"}`,
        [hostile]
      )
      const failed = yield* ask(page, held)
      assertHarmless(failed.text)
      assert.include(failed.text, "1–1 of 1")
      assert.notInclude(failed.text, "SECRETPATH")
      const fragment = yield* ask(page, { ...held, headers: { "hx-request": "true" } })
      assert.notInclude(fragment.text, "<html")
    }))

  test("lets operators and admins run a delivery at once", ({ ask }) =>
    Effect.gen(function*() {
      yield* told
      yield* sql("UPDATE jobs SET status = 'failed', attempts = max_attempts, last_error = 'planted'")
      const viewer = yield* entered({ ask }, "vera", "viewer")
      assert.notMatch((yield* ask(page, viewer)).text, /Run now|hx-post="\/ui\/notifications/)
      const held = yield* entered({ ask }, "otto", "operator")
      const [, id = ""] = /name="id" value="([0-9a-f-]{36})">Run now/.exec((yield* ask(page, held)).text) ?? []
      assert.isTrue(isBeside(yield* send({ ask }, viewer, `${page}/run`, { id }), 403, "insufficient_role"))
      const done = yield* send({ ask }, held, `${page}/run`, { id })
      assert.strictEqual(done.headers["hx-redirect"], `${page}?done=advanced`)
      assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["ready"])
      assert.include((yield* ask(`${page}?done=advanced`, held)).text, "The delivery is due now")
      yield* sql("UPDATE jobs SET status = 'running'")
      assert.isTrue(isBeside(yield* send({ ask }, held, `${page}/run`, { id }), 409, "job_not_runnable"))
      assert.strictEqual((yield* send({ ask }, held, `${page}/run`, { id: "x" })).status, 404)
    }))

  test("lets operators and admins send a test", ({ ask }) =>
    Effect.gen(function*() {
      const viewer = yield* entered({ ask }, "vera", "viewer")
      assert.notInclude((yield* ask(page, viewer)).text, "Send a test")
      assert.isTrue(isBeside(yield* send({ ask }, viewer, `${page}/test`), 403, "insufficient_role"))
      const held = yield* entered({ ask }, "otto", "operator")
      const offered = yield* ask(page, held)
      for (const word of ["chat", "webhook", "certificate_issued"]) assert.include(offered.text, `<option>${word}`)
      assert.notInclude(offered.text, "<option>challenge_failed")
      const fields = { target: "chat", event: "certificate_issued", profile: "other" }
      const tried = yield* send({ ask }, held, `${page}/test`, fields)
      assert.include(wordsOf(tried), "1 sample delivered. Receiver Event Profile Result Answer ")
      assert.include(wordsOf(tried), "webhook chat certificate_issued other delivered taken")
      assert.deepStrictEqual(yield* column("SELECT actor_id FROM audit_log WHERE event = 'notifications_tested'"), [
        "otto"
      ])
      const all = yield* send({ ask }, held, `${page}/test`, { target: "", event: "", profile: "" })
      assert.include(wordsOf(all), "4 samples delivered.")
      assert.isTrue(isBeside(yield* send({ ask }, held, `${page}/test`, { target: "pager" }), 400, "bad_request"))
      const bare = { cookie: held.cookie, csrf: "" }
      assert.isTrue(isBeside(yield* send({ ask }, bare, `${page}/test`), 403, "csrf_failed"))
    }))
})

describe("the page of notifications without a receiver", () => {
  const { test } = usePanel(sqlite)

  test("says that nobody is told of anything, and offers no test", ({ ask }) =>
    Effect.gen(function*() {
      const shown = yield* ask(page, yield* entered({ ask }, "otto", "operator"))
      assert.include(shown.text, "Nobody is told of anything.")
      assert.notInclude(shown.text, "Send a test")
    }))
})

describe("the page of notifications with several receivers", () => {
  const { test } = usePanel(
    sqlite,
    `[notify]
enabled = ["email", "webhook"]
webhook_enabled = ["pager"]
[notify.email]
smtp_host = "mail.example.org"
smtp_security = "none"
from = "a@example.org"
to = ["b@example.org"]
events = ["certificate_issued"]
[notify.webhook.pager]
url = "https://pager.example/"
events = ["challenge_failed"]
[profiles.silent.notify]
enabled = []
`
  )

  test("offers every receiver, every event that a receiver wants, and only profiles that have a receiver", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const [target, event, of] = (yield* ask(page, held)).text.split("<select ").slice(1).map((select) =>
        [...select.split("</select>")[0]?.matchAll(/<option(?: value="([^"]+)")?>([^<]*)/g) ?? []]
          .map(([, value, text]) => value ?? text)
      )
      assert.deepStrictEqual(target, ["email", "pager", "webhook"])
      assert.sameMembers(event ?? [], ["certificate_issued", "challenge_failed"])
      assert.deepStrictEqual(of, ["default", "other"])
      const tried = yield* send({ ask }, held, `${page}/test`, { target: "email", profile: "other" })
      assert.include(wordsOf(tried), "email certificate_issued other delivered taken")
      assert.match(tried.text, />email</, "the only mail server has no name of its own")
    }))
})
