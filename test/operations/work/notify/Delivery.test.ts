import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Payload } from "../../../../src/domain/Notification.ts"
import { series } from "../../../../src/domain/words/Series.ts"
import * as Registry from "../../../../src/engine/telemetry/Registry.ts"
import * as jobs from "../../../../src/operations/operator/Jobs.ts"
import type { Deliveries } from "../../../../src/services/notify/Deliveries.ts"
import type { Receipt } from "../../../../src/services/notify/Delivery.ts"
import { DeliveryRefused, TargetMissing } from "../../../../src/services/notify/Delivery.ts"
import { Notifier, notify } from "../../../../src/services/notify/Notifier.ts"
import { counted } from "../../../support/Counted.ts"
import { databases } from "../../../support/Databases.ts"
import { column, configOf, count, eventsOf, sql } from "../../../support/Graph.ts"
import { work } from "../../../support/Issued.ts"
import { keyboard } from "../../../support/Operators.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/*
 * Tests what each answer of a receiver does to its delivery (docs/contribute/decisions/notifications.md, "Delivery").
 */

const config = configOf(`[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/secret"
`)

const labels = "role=\"worker\",profile=\"default\",backend=\"webhook\""

type Answer = Effect.Effect<Receipt, DeliveryRefused | TargetMissing>

describe.each(databases)("a delivery on $name", (backend) => {
  const seen: Array<Payload> = []
  let answers: Array<Answer> = []
  const to: Array<ReadonlyArray<string> | undefined> = []
  const deliver: Deliveries["Service"]["deliver"] = ({ fields, to: only }) =>
    Effect.suspend(() => {
      seen.push(fields)
      to.push(only)
      return answers.shift() ?? Effect.succeed({ answer: "taken" })
    })
  const { records, test } = useWorld(backend, { script: () => ({ deliver, maxAttempts: 5 }) })

  const happen = Effect.provide(
    Effect.suspend(() => {
      seen.length = 0
      to.length = 0
      return notify({ event: "account_deactivated", scope: "default", fields: { account_id: "a" } })
    }),
    Notifier.layer(() => config)
  )
  const state = Effect.map(
    sql("SELECT status, attempts, last_error, run_at - updated_at AS wait FROM jobs"),
    ([row]) => row ?? assert.fail("no row")
  )
  const logged = () =>
    records.flatMap(({ event, fields }) => event.startsWith("notify_") ? [[event, fields] as const] : [])

  test("is tried again with the same id after a failure, until the receiver accepts it", () =>
    Effect.gen(function*() {
      answers = [
        new DeliveryRefused({ detail: "answered 500: oh", hope: "retry", status: 500 }),
        new DeliveryRefused({ detail: "answered 503", hope: "retry", status: 503, afterSeconds: 600 }),
        new DeliveryRefused({ detail: "answered 503", hope: "retry", status: 503, afterSeconds: 1_000_000 })
      ]
      yield* happen
      assert.include(eventsOf(records), "notify_queued")
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "ready" })
      assert.isBelow(Number((yield* state)["wait"]), 31)
      yield* TestClock.adjust("30 seconds")
      yield* work("notify_deliver")
      assert.strictEqual(Number((yield* state)["wait"]), 600, "as long as it asked for")
      yield* TestClock.adjust("600 seconds")
      yield* work("notify_deliver")
      assert.strictEqual(
        Number((yield* state)["wait"]),
        config.jobs.retry_max_seconds,
        "and no longer than the queue waits"
      )
      yield* TestClock.adjust("1 hour")
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "done" })
      assert.strictEqual(new Set(seen.map(({ delivery_id }) => delivery_id)).size, 1)
      assert.lengthOf(seen, 4)
      const said = records.filter(({ event }) => event === "notify_delivered" || event.startsWith("notify_delivery_"))
      assert.deepStrictEqual(new Set(said.map(({ fields }) => fields["profile"])), new Set(["default"]))
      const runs = records.filter(({ event }) => event === "job_run_completed")
      assert.deepStrictEqual(runs.map(({ span }) => span["profile"]), ["default"])
      assert.strictEqual(
        yield* counted(`acme_svc_notify_deliveries_total{${labels},outcome="retried"}`),
        3
      )
      assert.deepInclude(logged().at(-1)?.[1], {
        backend: "webhook",
        entry: "chat",
        hook: "account_deactivated",
        attempts: 4
      })
      assert.strictEqual(eventsOf(records).filter((event) => event === "notify_delivered").length, 1)
    }).pipe(Effect.provide(Registry.layer("worker", series))))

  test("ends at once with the answer of the receiver if it is refused permanently", () =>
    Effect.gen(function*() {
      answers = [new DeliveryRefused({ detail: "answered 404: no", hope: "never", status: 404 })]
      yield* happen
      yield* work("notify_deliver")
      const { last_error, status } = yield* state
      assert.strictEqual(status, "failed")
      assert.deepStrictEqual(JSON.parse(String(last_error)), {
        _tag: "NotDelivered",
        detail: "answered 404: no",
        status: 404
      })
      const [, failed] = logged().find(([event]) => event === "notify_delivery_failed") ?? assert.fail("not logged")
      assert.deepInclude(failed, { retryable: false, status: 404, error: "answered 404: no" })
      assert.include(eventsOf(records), "notify_delivery_abandoned")
      assert.lengthOf(seen, 1)
    }))

  test("ends as failed and is logged if its program has failed, and an operator may run the delivery once more", () =>
    Effect.gen(function*() {
      answers = [new DeliveryRefused({ detail: "exit 7", hope: "never", exitCode: 7 })]
      yield* happen
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "failed" })
      const [, failed] = logged().find(([event]) => event === "notify_delivery_failed") ?? assert.fail("not logged")
      assert.deepInclude(failed, { retryable: false, exit_code: 7 })
      const [job] = (yield* jobs.list({}, { limit: 1, offset: 0 })).items
      yield* jobs.runNow(keyboard, job?.id ?? "")
      answers = []
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "done" })
      assert.lengthOf(seen, 2)
    }))

  test("is done if some of its mailboxes were reached, because a retry would reach those mailboxes again", () =>
    Effect.gen(function*() {
      answers = [new DeliveryRefused({ detail: "1 of 2 recipients refused, the others taken", hope: "ended" })]
      yield* happen
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "done" })
      assert.include(eventsOf(records), "notify_delivery_failed")
    }))

  test("is followed by another one to the mailboxes that were only deferred, which goes to no others", () =>
    Effect.gen(function*() {
      const left = ["two@example.org", "three@example.org"]
      answers = [
        new DeliveryRefused({ detail: "2 of 3 recipients refused", hope: "ended", left }),
        new DeliveryRefused({ detail: "1 of 2 recipients refused", hope: "ended", left: left.slice(1) })
      ]
      yield* happen
      yield* work("notify_deliver")
      assert.deepStrictEqual(yield* column("SELECT status FROM jobs ORDER BY created_at, id"), ["done", "ready"])
      for (const _ of left) {
        yield* TestClock.adjust("30 seconds")
        yield* work("notify_deliver")
      }
      assert.deepStrictEqual(to, [undefined, left, ["three@example.org"]])
      assert.lengthOf(new Set(seen.map(({ delivery_id }) => delivery_id)), 1)
      assert.deepStrictEqual(yield* column("SELECT DISTINCT status FROM jobs"), ["done"])
      assert.strictEqual(yield* count("SELECT count(DISTINCT deadline) FROM jobs"), 1)
    }))

  test("waits for at most a day for a process that knows the receiver if this process does not", () =>
    Effect.gen(function*() {
      answers = [new TargetMissing()]
      yield* happen
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "ready" })
      assert.include(eventsOf(records), "notify_delivery_target_missing")
      yield* TestClock.adjust("25 hours")
      yield* work("notify_deliver")
      assert.deepInclude(yield* state, { status: "failed" })
      assert.deepStrictEqual(yield* column("SELECT last_error FROM jobs"), [`{"_tag":"DeadlinePassed"}`])
      assert.lengthOf(seen, 1)
    }))
})
