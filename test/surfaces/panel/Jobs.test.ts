import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { rfc3339 } from "../../../src/engine/Time.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The pages of jobs (docs/contribute/decisions/panel.md). */

const nobody = "01890a5d-ac96-774b-bcce-b302099a8057"
const fragment = { headers: { "hx-request": "true" } }
const plain = (html: string) => html.replaceAll("&#x2f;", "/").replaceAll("&amp;", "&")

describe.each(databases)("the pages of jobs on $name", (backend) => {
  const { config, test } = usePanel(backend)

  /** Makes an order whose certificate was requested, and returns the job that signs it. */
  const finalized = Effect.gen(function*() {
    const caller = yield* callerAt(profileOf(config))
    const { id: orderId } = yield* orderOf(caller, "a.example")
    yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
    yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
    yield* finalize(caller, orderId, makeCsr({ names: ["a.example"] }).csr.toString("base64url"))
    const [job] = (yield* jobs.list({ orderId }, { limit: 1, offset: 0 })).items
    return { orderId, id: job?.id ?? assert.fail("no job") }
  })

  test("say that the queue is empty, and that no worker runs", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/jobs", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "The queue is empty.")
      assert.include(told.text, "No process with the worker role is running")
      assert.notInclude(told.text, "data-poll")
    }))

  test("say whether a worker runs, which job was done last, and since when a job has been due", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const shown = ask("/ui/jobs", held)
      const isMissing = Effect.map(
        shown,
        (told) => wordsOf(told).includes("No process with the worker role is running")
      )
      const present = (owner: string, roles: string, now: number) =>
        workers.present({ owner, roles, version: "0.1.0", startedAt: startsAt - 100, now })
      yield* present("a:1:x", "acme,admin", startsAt)
      yield* present("b:1:x", "worker", startsAt - 31)
      assert.isTrue(yield* isMissing, "of whom one does not work, and the other is gone")
      yield* present("c:1:x", "acme,worker", startsAt)
      assert.isFalse(yield* isMissing)
      const { id } = yield* finalized
      yield* sql("UPDATE jobs SET status = 'done'")
      const done = yield* shown
      assert.include(wordsOf(done), "The last job that was done:")
      assert.include(plain(done.text), `/ui/jobs/${id}`)
      for (
        const [status, runAt, isLive, due] of [
          ["ready", startsAt - 100, true, rfc3339(startsAt - 100)],
          ["ready", startsAt - 1, true, rfc3339(startsAt - 1)],
          ["ready", startsAt, true, undefined],
          ["ready", startsAt + 100, true, undefined],
          ["running", startsAt - 100, true, undefined]
        ] as const
      ) {
        yield* sql(`UPDATE jobs SET status = '${status}', run_at = ${runAt}`)
        const told = yield* shown
        assert.notInclude(wordsOf(told), "The last job")
        const [, queue = ""] = /<details class="queue"([\s\S]*?)<\/details>/.exec(told.text) ?? []
        assert.strictEqual(/since/.test(queue), due !== undefined, `${status} ${runAt}`)
        if (due !== undefined) assert.include(queue, due.replace("T", " "))
        assert.strictEqual(told.text.includes("data-poll"), isLive)
      }
      yield* sql(`UPDATE jobs SET status = 'ready', run_at = ${startsAt + 100}`)
      const operator = yield* entered({ ask }, "otto", "operator")
      assert.notInclude((yield* ask(`/ui/jobs/${id}`, operator)).text, "It is due already")
    }))

  test("refresh while one of the listed jobs can change", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const { id } = yield* finalized
      const told = yield* ask("/ui/jobs?kind=signer_issue", held)
      assert.include(told.text, "Queue: 1 ready, 0 running, 0 failed")
      assert.include(plain(told.text), `href="/ui/jobs/${id}"`)
      const [, poll = ""] = /id="list"[^>]* data-poll="([^"]*)"/.exec(plain(told.text)) ?? []
      assert.match(poll, /^\/ui\/jobs\?kind=signer_issue&poll=1&tag=[0-9a-f]{16}$/)
      assert.notInclude(told.text.replace(/<header[\s\S]*?<\/header>/, ""), "hx-post")
      const refresh = { ...held, headers: { "hx-request": "true", "x-panel-refresh": "1" } }
      assert.strictEqual((yield* ask(poll, refresh)).status, 204)
      yield* sql("UPDATE jobs SET status = 'done'")
      const ended = yield* ask(poll, refresh)
      assert.strictEqual(ended.status, 200)
      assert.notInclude(ended.text, "data-poll")
      assert.notInclude(ended.text, "<html")
      assert.include((yield* ask("/ui/jobs?kind=nonce_sweep&status=failed", held)).text, "No job matches.")
      for (
        const [filter, code] of [["status=lost", "invalid_status"], ["kind=none", "invalid_status"], [
          "orderId=x",
          "bad_request"
        ]] as const
      ) {
        const refused = yield* ask(`/ui/jobs?${filter}`, held)
        assert.strictEqual(refused.status, 400)
        assert.include(refused.text, code)
      }
    }))

  test("list the jobs of an order", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { id, orderId } = yield* finalized
      const { id: other } = yield* finalized
      const told = yield* ask(`/ui/jobs?orderId=${orderId}`, held)
      assert.include(plain(told.text), `href="/ui/jobs/${id}"`)
      assert.notInclude(plain(told.text), `href="/ui/jobs/${other}"`)
    }))

  test("keep the filters on the second page", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (let made = 0; made < 51; made++) yield* finalized
      const told = yield* ask("/ui/jobs?status=ready&kind=signer_issue", held)
      assert.include(plain(told.text), "href=\"/ui/jobs?kind=signer_issue&status=ready&page=2\"")
      const second = yield* ask("/ui/jobs?kind=signer_issue&status=ready&page=2", { ...held, ...fragment })
      assert.include(second.text, "51–51 of 51")
    }))

  test("show a job with its order, and the permitted actions to roles that may use them", ({ ask }) =>
    Effect.gen(function*() {
      const { id, orderId } = yield* finalized
      const viewer = yield* ask(`/ui/jobs/${id}`, yield* entered({ ask }, "vera", "viewer"))
      assert.include(plain(viewer.text), `href="/ui/orders/${orderId}"`)
      assert.include(viewer.text, "&quot;order_id&quot;")
      assert.notInclude(viewer.text, "csr")
      assert.include(viewer.text, "data-poll")
      assert.notInclude(viewer.text, "Actions")
      const held = yield* entered({ ask }, "otto", "operator")
      const operator = yield* ask(`/ui/jobs/${id}`, held)
      assert.include(operator.text, "its order ends invalid")
      assert.include(operator.text, "It is due already")
      yield* sql("UPDATE jobs SET status = 'running', lease_owner = 'host:1:x', lease_until = 4000000000")
      const running = yield* ask(`/ui/jobs/${id}`, held)
      assert.include(running.text, "host:1:x")
      assert.include(running.text, "A worker has the job; only one that is ready or failed can be run or cancelled.")
      assert.notInclude(plain(running.text), `hx-post="/ui/jobs/`)
      for (const path of [`/ui/jobs/${nobody}`, "/ui/jobs/x"]) assert.strictEqual((yield* ask(path, held)).status, 404)
    }))

  test("say what the last error of a job means, unless the job has ended otherwise", ({ ask }) =>
    Effect.gen(function*() {
      const { id } = yield* finalized
      const held = yield* entered({ ask }, "vera", "viewer")
      const shown = Effect.map(ask(`/ui/jobs/${id}`, held), ({ text }) => text)
      assert.notInclude(yield* shown, "What this means")
      yield* sql("UPDATE jobs SET attempts = 1, last_error = 'planted'")
      assert.include(yield* shown, "An attempt of a job has failed; the service tries again later.")
      yield* sql("UPDATE jobs SET status = 'failed'")
      const failed = yield* shown
      assert.include(failed, "The service has given up a job")
      assert.include(failed, "<code>acme-svc jobs run-now JOB_ID</code>")
      yield* sql("UPDATE jobs SET status = 'done'")
      assert.notInclude(yield* shown, "What this means")
      const gone = yield* ask(`/ui/jobs/${nobody}`, held)
      assert.include(gone.text, "There is no such record, or there is nothing at this path.")
    }))

  test("run a job at once, unless a worker is running it", ({ ask }) =>
    Effect.gen(function*() {
      const { id } = yield* finalized
      const held = yield* entered({ ask }, "otto", "operator")
      yield* sql("UPDATE jobs SET status = 'failed', attempts = max_attempts, last_error = 'planted'")
      assert.include((yield* ask(`/ui/jobs/${id}`, held)).text, "Gives it one more attempt.")
      const done = yield* ask(`/ui/jobs/${id}/run`, { method: "POST", ...held, ...fragment })
      assert.strictEqual(done.headers["hx-redirect"], `/ui/jobs/${id}?done=advanced`)
      assert.include((yield* ask(`/ui/jobs/${id}?done=advanced`, held)).text, "The job is due now")
      assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["ready"])
      yield* sql("UPDATE jobs SET status = 'running'")
      const refused = yield* ask(`/ui/jobs/${id}/run`, { method: "POST", ...held, ...fragment })
      assert.strictEqual(refused.status, 409)
      assert.include(refused.text, "job_not_runnable")
      assert.strictEqual(refused.headers["hx-retarget"], "find .refusal")
      const viewer = yield* entered({ ask }, "vera", "viewer")
      assert.strictEqual((yield* ask(`/ui/jobs/${id}/run`, { method: "POST", ...viewer })).status, 403)
    }))

  test("cancel a job, once", ({ ask }) =>
    Effect.gen(function*() {
      const { id } = yield* finalized
      const held = yield* entered({ ask }, "otto", "operator")
      const cancel = ask(`/ui/jobs/${id}/cancel`, { method: "POST", ...held, ...fragment })
      assert.strictEqual((yield* cancel).headers["hx-redirect"], `/ui/jobs/${id}?done=cancelled`)
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["invalid"])
      const after = yield* ask(`/ui/jobs/${id}?done=cancelled`, held)
      assert.include(after.text, "The job is cancelled; only one that is ready or failed")
      assert.notInclude(after.text, "data-poll")
      const refused = yield* cancel
      assert.strictEqual(refused.status, 409)
      assert.include(refused.text, "job_not_cancellable")
      assert.strictEqual((yield* ask(`/ui/jobs/${nobody}/cancel`, { method: "POST", ...held })).status, 404)
    }))

  test("keep the lines of an error on the job's own page", ({ ask }) =>
    Effect.gen(function*() {
      const { id } = yield* finalized
      const held = yield* entered({ ask }, "ann", "viewer")
      const shown = Effect.fnUntraced(function*(error: string) {
        yield* sql(`UPDATE jobs SET status = 'failed', last_error = '${error}'`)
        return (yield* ask(`/ui/jobs/${id}`, held)).text
      })
      assert.include(yield* shown("one\ntwo"), "<pre tabindex=\"0\"><bdi>one\ntwo</bdi></pre>")
      assert.include(yield* shown("one line"), "<bdi>one line</bdi>")
      assert.notInclude(yield* shown("one line"), "<pre tabindex=\"0\"><bdi>")
    }))

  test("escape an error", ({ ask }) =>
    Effect.gen(function*() {
      const { id } = yield* finalized
      yield* sql(`UPDATE jobs SET status = 'failed', last_error = ${backend.dialect === "sqlite" ? "?" : "$1"}`, [
        hostile
      ])
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const path of ["/ui/jobs", `/ui/jobs/${id}`]) assertHarmless((yield* ask(path, held)).text)
    }))
})
