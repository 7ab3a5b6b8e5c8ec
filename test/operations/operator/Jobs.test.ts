import { Effect } from "effect"
import { assert, describe } from "vitest"
import { enqueueJob, knownKinds } from "../../../src/domain/words/JobKind.ts"
import * as queue from "../../../src/engine/queue/Job.ts"
import { JobId } from "../../../src/engine/queue/Job.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import { jobDetailObject, jobObject } from "../../../src/operations/operator/Objects.ts"
import * as upstreamOrders from "../../../src/store/upstream/UpstreamOrderRows.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, count, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { useOwnCa, work } from "../../support/Issued.ts"
import { madeAt } from "../../support/LocalCa.ts"

/*
 * Tests what operators do with jobs (docs/operate/jobs.md, "By hand"; docs/contribute/decisions/job-outcomes.md,
 * "Giving up").
 */

const config = configOf()
const operator = { kind: "cli", id: "tester" } as const
const nobody = "01234567-89ab-7def-8123-456789abcdef"

describe.each(databases)("jobs as operators see them on $name", (backend) => {
  const { database, test } = useOwnCa(backend)

  /** Makes and finalizes an order, and returns the order with the job that is to sign its certificate. */
  const finalized = Effect.fnUntraced(function*(name = "a.example") {
    const caller = yield* callerAt(profileOf(config))
    const { id: orderId } = yield* orderOf(caller, name)
    yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
    yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
    yield* finalize(caller, orderId, makeCsr({ names: [name] }).csr.toString("base64url"))
    const [job] = (yield* jobs.list({ orderId }, { limit: 10, offset: 0 })).items
    return { orderId, job: job ?? assert.fail("no job"), caller }
  })

  const audited = Effect.map(
    sql("SELECT event, actor_kind, actor_id, detail FROM audit_log ORDER BY id"),
    (rows) =>
      rows.map(({ actor_id, actor_kind, detail, event }) => {
        const read: unknown = typeof detail === "string" ? JSON.parse(detail) : detail
        return { event, actor: `${String(actor_kind)} ${String(actor_id)}`, detail: read }
      })
  )

  const fail = (id: string) =>
    sql(
      `UPDATE jobs SET status = 'failed', attempts = 5, last_error = 'planted' WHERE ${`id = ${
        idLiteral(backend.dialect, id)
      }`}`
    )

  test("can be listed by kind, status and order, newest first, and are shown without the CSR", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* finalized("a.example"), yield* finalized("b.example")]
      const page = { limit: 10, offset: 0 }
      const ids = (filters: Parameters<typeof jobs.list>[0]) =>
        Effect.map(jobs.list(filters, page), ({ items, total }) => [items.map(({ id }) => id), total])
      const both = [two.job.id, one.job.id].toSorted().toReversed()
      assert.deepStrictEqual(yield* ids({ kind: "signer_issue" }), [both, 2])
      assert.deepStrictEqual(yield* ids({ orderId: one.orderId }), [[one.job.id], 1])
      assert.deepStrictEqual(yield* ids({ status: "failed" }), [[], 0])
      assert.deepStrictEqual(yield* ids({ kind: "unheard_of" }), [[], 0])
      assert.deepStrictEqual((yield* jobs.list({}, { limit: 1, offset: 1 })).items.map(({ id }) => id), both.slice(1))
      const shown = jobObject(yield* jobs.find(one.job.id))
      assert.deepInclude(shown, { kind: "signer_issue", dedupKey: one.orderId, status: "ready" })
      assert.deepInclude(shown.payload, { order_id: one.orderId, profile: "default" })
      assert.notProperty(shown.payload, "csr")
      assert.strictEqual((yield* Effect.flip(jobs.find(nobody)))._tag, "NoSuch")
      assert.strictEqual((yield* Effect.flip(jobs.find("x")))._tag, "NoSuch")
    }))

  test("are shown without the message if they deliver a message to operators", () =>
    Effect.gen(function*() {
      const payloadOf = (scope: string) =>
        Effect.gen(function*() {
          const of = { at: 1, profile: scope, hook: "admin_sign_in", delivery_id: "d" }
          const fields = { ...of, username: "jane", recipient: "jane@example.org", client_ip: "192.0.2.1" }
          const payload = { scope, backend: "email", entry: "-", event: "admin_sign_in", fields } as const
          yield* enqueueJob({ kind: "notify_deliver", dedupKey: scope, payload })
          const { items } = yield* jobs.list({ kind: "notify_deliver" }, { limit: 1, offset: 0 })
          return jobObject(items[0] ?? assert.fail("no job")).payload
        })
      assert.deepStrictEqual(yield* payloadOf("__admin__"), {
        scope: "__admin__",
        backend: "email",
        entry: "-",
        event: "admin_sign_in"
      })
      assert.property(yield* payloadOf("default"), "fields")
    }))

  test("are shown with their order, even if they are about a challenge of this order, and with the order at the upstream", () =>
    Effect.gen(function*() {
      const { job, orderId } = yield* finalized()
      const shown = () =>
        Effect.map(Effect.flatMap(jobs.find(job.id), jobs.detailOf), (found) => jobDetailObject(config, found, madeAt))
      const { dedupKey } = jobObject(job)
      assert.deepInclude(yield* shown(), { id: job.id, dedupKey, orderId })
      assert.notProperty(yield* shown(), "upstreamOrder")
      const text = backend.dialect === "sqlite" ? "lower(hex(id))" : "replace(id::text, '-', '')"
      const [challenge = ""] = yield* column(`SELECT ${text} FROM challenges LIMIT 1`)
      const id = challenge.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5")
      yield* sql(`UPDATE jobs SET kind = 'challenge_validate', dedup_key = '${id}'`)
      yield* upstreamOrders.insert({ orderId, csr: new Uint8Array(), client: {}, now: madeAt })
      const found = yield* shown()
      assert.deepInclude(found, { dedupKey: id, orderId })
      assert.deepInclude(found.upstreamOrder, { orderId, status: "processing", profile: "default" })
      for (const key of [nobody, "periodic"]) {
        yield* sql(`UPDATE jobs SET dedup_key = '${key}'`)
        assert.notProperty(yield* shown(), "orderId")
      }
    }))

  test("make the order invalid if a signing is cancelled, with two audit rows by the same actor", () =>
    Effect.gen(function*() {
      const { job, orderId } = yield* finalized()
      assert.isTrue(jobs.endsOrder(job))
      assert.strictEqual((yield* jobs.cancel(operator, job.id)).status, "cancelled")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["invalid"])
      assert.deepStrictEqual(yield* audited, [
        {
          event: "certificate_issue_failed",
          actor: "cli tester",
          detail: { cause: "cancelled", error: "cancelled by an operator" }
        },
        {
          event: "job_cancelled",
          actor: "cli tester",
          detail: { kind: "signer_issue", job_id: job.id, subject: orderId }
        }
      ])
      yield* work("signer_issue")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 0)
      const again = yield* Effect.flip(jobs.cancel(operator, job.id))
      assert.deepInclude(again, { _tag: "JobNotCancellable", status: "cancelled" })
    }))

  test("make the challenge, the authorization and the order invalid if a validation is cancelled", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { id: orderId } = yield* orderOf(caller, "a.example")
      const [challenge = ""] = yield* column(
        `SELECT ${backend.dialect === "sqlite" ? "lower(hex(id))" : "id::text"} FROM challenges`
      )
      const id = challenge.replace(/^(.{8})-?(.{4})-?(.{4})-?(.{4})-?(.{12})$/, "$1-$2-$3-$4-$5")
      yield* sql("UPDATE challenges SET status = 'processing'")
      const inserted = yield* queue.insert({
        id: JobId("01234567-89ab-7def-8123-000000000001"),
        kind: "challenge_validate",
        dedupKey: id,
        payload: JSON.stringify({ challenge_id: id, profile: "default", thumbprint: "x" }),
        runAt: madeAt + 60,
        maxAttempts: 5,
        deadline: undefined,
        now: madeAt
      })
      assert.deepStrictEqual(
        (yield* jobs.list({ orderId }, { limit: 10, offset: 0 })).items.map((job) => job.id),
        [inserted?.id]
      )
      yield* jobs.cancel(operator, inserted?.id ?? "")
      for (const table of ["challenges", "authorizations", "orders"]) {
        assert.deepStrictEqual(yield* column(`SELECT status FROM ${table}`), ["invalid"], table)
      }
    }))

  test("stay failed with their cause after their order has ended, however often they are run", () =>
    Effect.gen(function*() {
      const { job, orderId } = yield* finalized()
      yield* fail(job.id)
      yield* sql("UPDATE orders SET status = 'invalid'")
      yield* jobs.runNow(operator, job.id)
      yield* work("signer_issue")
      assert.deepInclude(yield* jobs.find(job.id), { status: "failed", lastError: "planted" })
      assert.deepStrictEqual(yield* column("SELECT order_id FROM audit_log WHERE event = 'job_advanced'"), [orderId])
      yield* jobs.runNow(operator, job.id)
      yield* sql("UPDATE orders SET status = 'valid'")
      yield* work("signer_issue")
      assert.deepInclude(yield* jobs.find(job.id), { status: "done", lastError: undefined })
    }))

  test("are cancelled without a change of the order if they have failed, and cannot be cancelled while they run", () =>
    Effect.gen(function*() {
      const { job, orderId } = yield* finalized()
      yield* fail(job.id)
      assert.isFalse(jobs.endsOrder(yield* jobs.find(job.id)))
      yield* jobs.cancel(operator, job.id)
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["processing"])
      assert.deepStrictEqual((yield* audited).map(({ event }) => event), ["job_cancelled"])
      assert.deepStrictEqual(yield* column("SELECT order_id FROM audit_log"), [orderId])

      const other = yield* finalized("b.example")
      yield* knownKinds.claim({ now: madeAt, owner: "w", until: madeAt + 60, limit: 5, kinds: ["signer_issue"] })
      assert.deepInclude(yield* Effect.flip(jobs.cancel(operator, other.job.id)), {
        _tag: "JobNotCancellable",
        status: "running"
      })
      assert.deepInclude(yield* Effect.flip(jobs.runNow(operator, other.job.id)), {
        _tag: "JobNotRunnable",
        status: "running"
      })
    }))

  test("keep running without a change of the order if they are claimed just before they would be cancelled", () =>
    Effect.gen(function*() {
      const { job } = yield* finalized()
      const driver = database.driver()
      const claim = Effect.provideService(
        knownKinds.claim({ now: madeAt, owner: "w", until: madeAt + 60, limit: 5, kinds: ["signer_issue"] }),
        Database,
        driver
      )
      let taken = false
      const late: Driver = {
        ...driver,
        transact: (body) =>
          taken ? driver.transact(body) : Effect.andThen(
            Effect.orDie(Effect.tap(claim, Effect.sync(() => (taken = true)))),
            driver.transact(body)
          )
      }
      const refused = yield* Effect.flip(Effect.provideService(jobs.cancel(operator, job.id), Database, late))
      assert.deepInclude(refused, { _tag: "JobNotCancellable", status: "running" })
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["processing"])
      assert.deepStrictEqual(yield* audited, [])
    }))

  test("become due by run-now if they wait, or get one more attempt if they have failed", () =>
    Effect.gen(function*() {
      const { job } = yield* finalized()
      yield* sql(`UPDATE jobs SET run_at = ${madeAt + 3600}`)
      assert.strictEqual((yield* jobs.runNow(operator, job.id)).runAt, madeAt)
      yield* jobs.runNow(operator, job.id) // the job is already due, so nothing changes
      assert.deepStrictEqual((yield* audited).map(({ event }) => event), ["job_advanced"])
      yield* fail(job.id)
      assert.deepInclude(yield* jobs.runNow(operator, job.id), {
        status: "ready",
        attempts: job.maxAttempts - 1,
        runAt: madeAt
      })
      yield* work("signer_issue")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"])
      assert.deepInclude(yield* Effect.flip(jobs.runNow(operator, job.id)), { _tag: "JobNotRunnable", status: "done" })
    }))

  test("cannot run again after a failure while they have an active successor", () =>
    Effect.gen(function*() {
      const { job } = yield* finalized()
      yield* fail(job.id)
      yield* queue.insert({
        id: JobId("01234567-89ab-7def-8123-000000000002"),
        kind: "signer_issue",
        dedupKey: job.dedupKey,
        payload: job.payload,
        runAt: madeAt,
        maxAttempts: 5,
        deadline: undefined,
        now: madeAt
      })
      assert.deepInclude(yield* Effect.flip(jobs.runNow(operator, job.id)), {
        _tag: "JobNotRunnable",
        status: "failed"
      })
    }))

  test("are counted by kind, with the age of the oldest job that is due", () =>
    Effect.gen(function*() {
      const { job } = yield* finalized()
      yield* finalized("b.example")
      yield* fail(job.id)
      yield* sql(`UPDATE jobs SET run_at = ${madeAt - 30}`)
      const [found] = (yield* jobs.queue).filter(({ kind }) => kind === "signer_issue")
      assert.deepStrictEqual(found, { kind: "signer_issue", ready: 1, running: 0, failed: 1, oldestReadySeconds: 30 })
    }))
})
