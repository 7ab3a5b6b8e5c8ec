import { Deferred, Effect, Exit, Fiber } from "effect"
import { assert, describe } from "vitest"
import { enqueueJob, handler } from "../../../src/domain/words/JobKind.ts"
import { shareOf } from "../../../src/engine/queue/Job.ts"
import type { AnyHandler } from "../../../src/engine/queue/Kind.ts"
import type { Outcome } from "../../../src/engine/queue/Outcome.ts"
import { Done } from "../../../src/engine/queue/Outcome.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import { transaction } from "../../../src/engine/sql/Database.ts"
import { databases } from "../../support/Databases.ts"
import { column, eventsOf, sql } from "../../support/Graph.ts"
import { useQueue } from "../../support/UseQueue.ts"

/** There are 16 slots for validations. The first four are given in order of arrival. */
const firstCome = 4
const options = {
  poll_interval_ms: 1000,
  max_concurrent: 1,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600,
  owner: "host:1:a"
}

const done: Outcome<Database> = Done()

const validation = (run: (key: string) => Effect.Effect<void>): AnyHandler<Database> =>
  handler<"challenge_validate", Database>({
    kind: "challenge_validate",
    budgetMillis: () => 10_000,
    run: ({ challenge_id }) => Effect.as(run(challenge_id), done),
    abandon: () => Effect.void
  })

const enqueue = (key: string, more: { readonly runAt?: number; readonly share?: string } = {}) =>
  enqueueJob({
    kind: "challenge_validate",
    dedupKey: key,
    payload: { challenge_id: key, profile: "p", thumbprint: "t" },
    ...more
  })

const statesBy = (key: string) =>
  Effect.map(
    sql(`SELECT status, attempts, lease_owner FROM jobs WHERE dedup_key = '${key}'`),
    ([row]) => [row?.["status"], Number(row?.["attempts"]), row?.["lease_owner"] ?? undefined]
  )

const born = ["running", 1, options.owner]
const waiting = ["ready", 0, undefined]

describe.each(databases)("a job that is enqueued in the process of a runner, on $name", (backend) => {
  const { records, test } = useQueue(backend)

  /** A runner that has queried the queue once. Its attempts wait until the test opens the gate. */
  const runner = Effect.gen(function*() {
    const queue = yield* Queue
    const gate = yield* Deferred.make<void>()
    const begun: Array<string> = []
    const made = yield* Runner.make(options, [
      validation((key) => Effect.suspend(() => (begun.push(key), Deferred.await(gate))))
    ])
    queue.reservedSlots.offer(made.reservedSlots)
    yield* made.pass
    return { ...made, begun, open: Deferred.succeed(gate, undefined) }
  })

  const begins = (begun: ReadonlyArray<string>, count: number) =>
    Effect.repeat(Effect.yieldNow, { until: () => begun.length >= count })

  test("begins at the commit without a further query", () =>
    Effect.gen(function*() {
      const { begun, idle, open } = yield* runner
      yield* transaction(enqueue("a"))
      assert.deepStrictEqual(yield* statesBy("a"), born)
      yield* begins(begun, 1)
      yield* open
      yield* idle
      assert.deepStrictEqual(yield* statesBy("a"), ["done", 1, undefined])
      assert.deepStrictEqual(eventsOf(records).filter((event) => event.startsWith("job_")), [
        "job_enqueued",
        "job_run_completed"
      ])
    }))

  test("is written as ready if the runner cannot begin it at the commit", () =>
    Effect.gen(function*() {
      yield* runner
      yield* transaction(enqueue("later", { runAt: 1000 }))
      yield* enqueue("alone")
      const payload = { order_id: "o", profile: "p", csr: "", client: {} }
      yield* transaction(enqueueJob({ kind: "signer_issue", dedupKey: "other", payload }))
      for (const key of ["later", "alone", "other"]) assert.deepStrictEqual(yield* statesBy(key), waiting, key)
    }))

  test("is written as ready before the runner's first query", () =>
    Effect.gen(function*() {
      const queue = yield* Queue
      const made = yield* Runner.make(options, [validation(() => Effect.void)])
      queue.reservedSlots.offer(made.reservedSlots)
      yield* transaction(enqueue("early"))
      assert.deepStrictEqual(yield* statesBy("early"), waiting)
    }))

  test("does not overtake jobs that wait for a slot of its kind", () =>
    Effect.gen(function*() {
      const { begun, idle, open, pass } = yield* runner
      const share = shareOf("p", "many")
      for (let i = 0; i <= firstCome; i++) yield* transaction(enqueue(`${i}`, { share }))
      assert.deepStrictEqual(yield* statesBy(`${firstCome - 1}`), born)
      assert.deepStrictEqual(yield* statesBy(`${firstCome}`), waiting)
      yield* begins(begun, firstCome)
      yield* open
      yield* idle
      // There are free slots again, but one row still waits.
      yield* transaction(enqueue("next", { share }))
      assert.deepStrictEqual(yield* statesBy("next"), waiting)
      yield* Effect.repeat(Effect.andThen(pass, idle), { until: () => begun.includes("next") })
      assert.isBelow(begun.indexOf(`${firstCome}`), begun.indexOf("next"))
      yield* pass
      yield* transaction(enqueue("last", { share }))
      // The last job begins without a query.
      yield* begins(begun, firstCome + 3)
      yield* idle
    }))

  test("keeps no slot after a rollback, even if the body of the transaction runs twice", () =>
    Effect.gen(function*() {
      const { begun, idle, open } = yield* runner
      for (let i = 0; i < firstCome; i++) {
        assert.isTrue(
          Exit.isFailure(yield* Effect.exit(transaction(Effect.andThen(enqueue("undone"), Effect.fail("no")))))
        )
      }
      // On SQLite, the failure of the other transaction causes the first body to run again.
      for (let i = 0; i < firstCome - 1; i++) {
        yield* Effect.all([transaction(enqueue(`${i}`)), Effect.exit(transaction(Effect.fail("no")))], {
          concurrency: "unbounded"
        })
      }
      yield* transaction(enqueue("last"))
      assert.deepStrictEqual(yield* statesBy("last"), born)
      yield* begins(begun, firstCome)
      yield* open
      yield* idle
      assert.deepStrictEqual(yield* column("SELECT dedup_key FROM jobs WHERE status = 'done' ORDER BY dedup_key"), [
        "0",
        "1",
        "2",
        "last"
      ])
      assert.deepStrictEqual(begun.toSorted(), ["0", "1", "2", "last"])
    }))

  test("keeps no slot if it joins the live job of its key", () =>
    Effect.gen(function*() {
      const { begun, idle, open } = yield* runner
      const id = yield* transaction(enqueue("a"))
      for (let i = 0; i <= firstCome; i++) assert.strictEqual(yield* transaction(enqueue("a")), id)
      yield* transaction(enqueue("b"))
      assert.deepStrictEqual(yield* statesBy("b"), born)
      yield* begins(begun, 2)
      yield* open
      yield* idle
      assert.deepStrictEqual(begun, ["a", "b"])
    }))

  test("is handed back if it is committed while the runner drains", () =>
    Effect.gen(function*() {
      const { begun, drain } = yield* runner
      const [enqueued, drained] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const held = Effect.andThen(Deferred.succeed(enqueued, undefined), Deferred.await(drained))
      const enqueuing = yield* Effect.forkChild(transaction(Effect.tap(enqueue("a"), held)))
      yield* Deferred.await(enqueued)
      yield* drain
      yield* Deferred.succeed(drained, undefined)
      yield* Fiber.join(enqueuing)
      assert.deepStrictEqual(yield* statesBy("a"), waiting)
      yield* transaction(enqueue("b"))
      assert.deepStrictEqual(yield* statesBy("b"), waiting)
      assert.deepStrictEqual(begun, [])
    }))
})
