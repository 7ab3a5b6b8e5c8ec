import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import { jobObject } from "../../../src/operations/operator/Objects.ts"
import * as orders from "../../../src/operations/operator/OrderRecords.ts"
import { SigningFailed } from "../../../src/services/signing/Signer.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, count, eventsOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useForeignSigner, work } from "../../support/Issued.ts"

/*
 * Tests that signer_revoke asks the signer first and then marks the order as revoked
 * (docs/contribute/decisions/job-outcomes.md, "Signing").
 */

const config = configOf("[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\"")
const operator = { kind: "cli", id: "tester" } as const
const failing = new SigningFailed({ cause: "script_failed", detail: "the HSM is away" })

describe.each(databases)("revocation by another signer on $name", (backend) => {
  const asked: Array<{ readonly leaf: Buffer; readonly reason: number | undefined }> = []
  let answer: Effect.Effect<void, SigningFailed> = Effect.void
  const { records, test } = useForeignSigner(backend, {
    first: () =>
      Effect.sync(() => {
        asked.length = 0
        answer = Effect.void
      }),
    revoke: (leaf, reason) =>
      Effect.suspend(() => {
        asked.push({ leaf: Buffer.from(leaf), reason })
        return answer
      })
  })

  const issued = Effect.flatMap(callerAt(profileOf(config)), (caller) => issueTo(caller, ["a.example"]))
  const revoke = (id: string, reason?: number) => orders.revoke(config, operator, id, reason)
  const stamps = Effect.map(
    sql("SELECT revoked_at, revocation_reason FROM orders"),
    (rows) => rows.map((row) => [row["revoked_at"] === null ? "no" : "yes", row["revocation_reason"]])
  )
  const rows = sql(
    "SELECT event, actor_kind, actor_id, reason, detail FROM audit_log WHERE event LIKE 'certificate_rev%'"
  )
  const number = (value: unknown) => value === null ? null : Number(value)

  test("sends the leaf and the reason, and marks the order after a success", () =>
    Effect.gen(function*() {
      const { der, orderId } = yield* issued
      const { isRevoked, job } = yield* revoke(orderId, 4)
      assert.isFalse(isRevoked)
      assert.deepStrictEqual(yield* stamps, [["no", null]])
      assert.deepStrictEqual(yield* rows, [])
      yield* work("signer_revoke")
      assert.deepStrictEqual(asked, [{ leaf: der, reason: 4 }])
      assert.deepStrictEqual((yield* stamps).map(([is, reason]) => [is, number(reason)]), [["yes", 4]])
      assert.strictEqual((yield* jobs.find(job)).status, "done")
      assert.deepStrictEqual(yield* rows, [{
        event: "certificate_revoked",
        actor_kind: "cli",
        actor_id: "tester",
        reason: "4",
        detail: `{"authorized_by":"operator"}`
      }])
      assert.includeMembers([...eventsOf(records)], [
        "certificate_revoke_queued",
        "admin_order_revoke_queued",
        "certificate_revoked"
      ])
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'local_ca_crl_regenerate'"), 0)
    }))

  test("sends no reason if the revocation has no reason", () =>
    Effect.gen(function*() {
      yield* revoke((yield* issued).orderId)
      yield* work("signer_revoke")
      assert.deepStrictEqual(asked.map(({ reason }) => reason), [undefined])
      assert.deepStrictEqual(yield* stamps, [["yes", null]])
    }))

  test("joins a second request to the first request, and the reason of the first counts", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      const first = yield* revoke(orderId, 1)
      assert.deepStrictEqual(yield* revoke(orderId, 4), first)
      yield* work("signer_revoke")
      assert.deepStrictEqual(asked.map(({ reason }) => reason), [1])
      assert.lengthOf(yield* rows, 1)
      assert.strictEqual((yield* Effect.flip(revoke(orderId, 4)))._tag, "AlreadyRevoked")
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'signer_revoke'"), 1)
    }))

  test("is tried again after a failure and leaves the order unchanged while attempts remain, and then ends with a row in the trail", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      answer = failing
      const { job } = yield* revoke(orderId, 4)
      yield* work("signer_revoke")
      assert.deepInclude(jobObject(yield* jobs.find(job)), {
        status: "ready",
        lastError: "script_failed: the HSM is away"
      })
      assert.deepStrictEqual(yield* stamps, [["no", null]])
      const failed = records.find(({ event }) => event === "certificate_revoke_signer_failed")
      assert.deepStrictEqual(failed?.fields, { order_id: orderId, job_id: job, error: "the HSM is away" })
      for (let attempt = 2; attempt <= 3; attempt++) {
        yield* TestClock.adjust("1 hour")
        yield* work("signer_revoke")
      }
      assert.lengthOf(asked, 3)
      assert.strictEqual((yield* jobs.find(job)).status, "failed")
      assert.deepStrictEqual(yield* stamps, [["no", null]])
      assert.deepStrictEqual(yield* rows, [{
        event: "certificate_revoke_failed",
        actor_kind: "cli",
        actor_id: "tester",
        reason: "serverInternal",
        detail: `{"cause":"script_failed","error":"script_failed: the HSM is away"}`
      }])
      assert.include(eventsOf(records), "certificate_revoke_abandoned")
      // A repeated request asks the signer again.
      answer = Effect.void
      assert.notStrictEqual((yield* revoke(orderId)).job, job)
      yield* work("signer_revoke")
      assert.deepStrictEqual(yield* stamps, [["yes", null]])
    }))

  for (
    const [problemType, reason] of [["badRevocationReason", "badRevocationReason"], ["unauthorized", "serverInternal"]]
  ) {
    test(`is not tried again if an upstream refuses it with ${problemType}, and the trail says ${reason}`, () =>
      Effect.gen(function*() {
        const { orderId } = yield* issued
        answer = new SigningFailed({ cause: "upstream_refused", detail: "no", problemType: problemType ?? "" })
        const { job } = yield* revoke(orderId, 1)
        for (let attempt = 1; attempt <= 3; attempt++) {
          yield* work("signer_revoke")
          yield* TestClock.adjust("2 hours")
        }
        assert.lengthOf(asked, 1)
        assert.deepStrictEqual(yield* stamps, [["no", null]])
        const { lastError, status } = jobObject(yield* jobs.find(job))
        const way = problemType === "badRevocationReason"
          ? "; signer.relay.revocation_reasons = false sends no reason to an upstream that takes none"
          : ""
        assert.deepStrictEqual([status, lastError], ["failed", `upstream_refused: no${way}`])
        const [row] = yield* rows
        assert.deepInclude(row, { event: "certificate_revoke_failed", reason })
        assert.strictEqual(
          (JSON.parse(String(row?.["detail"])) as { readonly cause: string }).cause,
          "upstream_refused"
        )
      }))
  }

  test("waits as long as an upstream demands", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      answer = new SigningFailed({ cause: "signer_failed", detail: "later", again: { atLeast: 7201, atMost: 86_400 } })
      yield* revoke(orderId)
      yield* work("signer_revoke")
      yield* TestClock.adjust("2 hours")
      yield* work("signer_revoke")
      assert.lengthOf(asked, 1)
      yield* TestClock.adjust("1 second")
      yield* work("signer_revoke")
      assert.lengthOf(asked, 2)
    }))

  test("keeps the wait of the previous request if it is requested again, whether that request was abandoned or cancelled", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      answer = new SigningFailed({ cause: "signer_failed", detail: "later", again: { atLeast: 7201, atMost: 86_400 } })
      const { job: first } = yield* revoke(orderId)
      for (let attempt = 1; attempt <= 3; attempt++) {
        yield* work("signer_revoke")
        yield* TestClock.adjust(attempt === 3 ? "2 hours" : "7201 seconds")
      }
      assert.lengthOf(asked, 3)
      assert.strictEqual((yield* jobs.find(first)).status, "failed")
      const { job: second } = yield* revoke(orderId)
      yield* work("signer_revoke")
      assert.lengthOf(asked, 3)
      yield* TestClock.adjust("1 second")
      yield* work("signer_revoke")
      assert.lengthOf(asked, 4)
      yield* jobs.cancel(operator, second)
      yield* revoke(orderId)
      yield* TestClock.adjust("2 hours")
      yield* work("signer_revoke")
      assert.lengthOf(asked, 4)
      answer = Effect.void
      yield* TestClock.adjust("1 second")
      yield* work("signer_revoke")
      assert.lengthOf(asked, 5)
      assert.deepStrictEqual((yield* stamps).map(([is]) => is), ["yes"])
    }))

  test("is requested again if the process crashes after it has asked the signer and before it has marked the order", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      yield* revoke(orderId, 4)
      const [started, never] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
      answer = Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(never))
      const working = yield* Effect.forkChild(work("signer_revoke"))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(working)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(working)))
      answer = Effect.void
      yield* sql(
        "UPDATE jobs SET status = 'ready', run_at = 0, lease_until = NULL, lease_owner = NULL WHERE status = 'running'"
      )
      yield* work("signer_revoke")
      assert.lengthOf(asked, 2)
      assert.deepStrictEqual((yield* stamps).map(([is]) => is), ["yes"])
    }))

  test("ends if an operator cancels its job, and the trail names the operator", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      const { job } = yield* revoke(orderId, 4)
      yield* jobs.cancel({ kind: "cli", id: "other" }, job)
      yield* work("signer_revoke")
      assert.deepStrictEqual(asked, [])
      assert.deepStrictEqual(yield* stamps, [["no", null]])
      const [row] = yield* rows
      assert.deepInclude(row, {
        event: "certificate_revoke_failed",
        actor_id: "other",
        detail: `{"cause":"cancelled","error":"cancelled by an operator"}`
      })
    }))

  test("waits if its profile is not served, and ends without a failure if the order was deleted", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issued
      const { job } = yield* revoke(orderId)
      yield* sql("UPDATE jobs SET payload = replace(payload, '\"default\"', '\"gone\"')")
      yield* work("signer_revoke")
      assert.deepInclude(jobObject(yield* jobs.find(job)), {
        status: "ready",
        lastError: "profile gone is not mounted here"
      })
      yield* sql("DELETE FROM orders")
      yield* TestClock.adjust("1 hour")
      yield* work("signer_revoke")
      assert.strictEqual((yield* jobs.find(job)).status, "done")
      assert.deepStrictEqual(asked, [])
    }))
})
