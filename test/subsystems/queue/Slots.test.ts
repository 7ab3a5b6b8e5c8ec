import { it } from "@effect/vitest"
import { Deferred, Effect, Layer, TestClock } from "effect"
import type { Scope } from "effect"
import { assert, describe } from "vitest"
import { JobId } from "../../../src/domain/Id.ts"
import type { Job, JobKind } from "../../../src/domain/Job.ts"
import { mostAtOnce } from "../../../src/domain/Job.ts"
import { Entropy } from "../../../src/subsystems/crypto/Entropy.ts"
import type { Database } from "../../../src/subsystems/db/Database.ts"
import { StorageFailed } from "../../../src/subsystems/db/Database.ts"
import { EventLog } from "../../../src/subsystems/log/EventLog.ts"
import type { AnyHandler, Outcome } from "../../../src/subsystems/queue/Handler.ts"
import { Queue } from "../../../src/subsystems/queue/Queue.ts"
import * as Runner from "../../../src/subsystems/queue/Runner.ts"
import * as Slots from "../../../src/subsystems/queue/Slots.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { column } from "../../support/Graph.ts"

const job = (kind: JobKind): Job => ({
  id: JobId("00000000-0000-7000-8000-000000000000"),
  kind,
  dedupKey: "",
  payload: "{}",
  attempts: 1,
  maxAttempts: 5,
  deadline: undefined,
  createdAt: 0
})

const leases: Slots.Leases = [["challenge_validate", 40], ["signer_relay_issue", 300]]

describe("the slots of a runner", () => {
  it("leave two to others while relays are many; where there are under four, none are kept", () => {
    assert.deepStrictEqual([1, 3, 4, 8].map((slots) => mostAtOnce("signer_relay_issue", slots)), [1, 3, 2, 6])
    assert.strictEqual(mostAtOnce("signer_issue", 8), 8)
  })

  it.effect("are asked for all kinds at once, as many as any may take; a kind that has its share is passed over", () =>
    Effect.gen(function*() {
      const slots = Slots.make()
      const asked: Array<readonly [number, number, boolean]> = []
      const fill = (...answers: ReadonlyArray<ReadonlyArray<JobKind>>) =>
        slots.fill(8, leases, ({ among, leases, limit }) =>
          Effect.sync(() => {
            asked.push([limit, leases.length, among])
            return (answers[asked.length - 1] ?? []).map(job)
          })) as Effect.Effect<ReadonlyArray<Job>, StorageFailed>
      const relays = (count: number) => Array.from({ length: count }, () => "signer_relay_issue" as const)
      yield* fill(["challenge_validate", ...relays(3)])
      assert.deepStrictEqual(asked.splice(0), [[6, 2, false]])
      yield* fill(relays(3), ["challenge_validate"])
      assert.deepStrictEqual(asked.splice(0), [[3, 2, false], [1, 1, true]])
      yield* fill()
      assert.deepStrictEqual(asked, [])
      assert.isTrue(slots.release(job("signer_relay_issue")))
      yield* fill([])
      assert.deepStrictEqual(asked, [[1, 2, false]])
      assert.isFalse(slots.release(job("challenge_validate")), "nobody waits")
    }))

  it.effect("keep what was claimed when a later question fails", () =>
    Effect.gen(function*() {
      const slots = Slots.make()
      const failed = new StorageFailed({ message: "gone", statement: "job_claim" } as never)
      const claimed = yield* slots.fill(
        8,
        leases,
        ({ among, limit }) =>
          among ? failed : Effect.succeed(Array.from({ length: limit }, () => job("signer_relay_issue")))
      ) as Effect.Effect<ReadonlyArray<Job>, StorageFailed>
      assert.strictEqual(claimed.length, 6)
    }))
})

const options = {
  poll_interval_ms: 1000,
  max_concurrent: 4,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600,
  owner: "host:1:a"
}

describe.each(databases)("relays among other work on $name", (backend) => {
  const database = useDatabase(backend)
  const test = (name: string, body: Effect.Effect<void, unknown, Database | Queue | Entropy | Scope.Scope>) =>
    it.scoped(name, () =>
      body.pipe(
        Effect.provide(
          Queue.layer({ maxAttempts: () => 3 }).pipe(
            Layer.provideMerge(Entropy.layerSeeded(name)),
            Layer.provideMerge(EventLog.layerMemory([]))
          )
        ),
        (self) => database.use(self)
      ))

  const of = (
    kind: "challenge_validate" | "signer_relay_issue",
    run: Effect.Effect<Outcome<Database>>
  ): AnyHandler<Database> =>
    Runner.handler({
      kind,
      periodic: false,
      longestBudgetMillis: 10_000,
      budgetMillis: () => 10_000,
      run: () => run,
      abandon: () => Effect.void
    })

  test(
    "relays that hang leave two slots to validations, and one that ends makes room for the next",
    Effect.gen(function*() {
      const queue = yield* Queue
      yield* TestClock.setTime(100_000)
      for (let index = 0; index < 6; index++) {
        const order_id = `r${index}`
        yield* queue.enqueue({
          kind: "signer_relay_issue",
          dedupKey: order_id,
          payload: { order_id, profile: "p" },
          runAt: index
        })
      }
      const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let begun = 0
      const runner = yield* Runner.make(options, [
        of("challenge_validate", Effect.succeed({ _tag: "Done" })),
        of(
          "signer_relay_issue",
          Effect.suspend(() =>
            Effect.as(gates[begun++]?.pipe(Deferred.await) ?? Effect.void, { _tag: "Done" } as const)
          )
        )
      ])
      const statuses = column("SELECT status FROM jobs WHERE kind = 'signer_relay_issue' ORDER BY run_at")
      yield* runner.pass
      assert.deepStrictEqual(yield* statuses, ["running", "running", "ready", "ready", "ready", "ready"])
      for (const key of ["a", "b", "c"]) {
        const payload = { challenge_id: key, profile: "p", thumbprint: "t" }
        yield* queue.enqueue({ kind: "challenge_validate", dedupKey: key, payload })
      }
      const settled = (kind: JobKind) =>
        Effect.map(
          Effect.orDie(column(`SELECT id FROM jobs WHERE status = 'done' AND kind = '${kind}'`)),
          ({ length }) => length
        )
      // While some kind has its share, every slot that is given back is looked at again.
      yield* Effect.repeat(Effect.zipRight(queue.awakened, runner.pass), {
        until: () => Effect.map(settled("challenge_validate"), (count) => count === 3)
      })
      assert.deepStrictEqual(yield* statuses, ["running", "running", "ready", "ready", "ready", "ready"])
      for (const gate of gates) yield* Deferred.succeed(gate, undefined)
      yield* Effect.repeat(Effect.zipRight(runner.pass, runner.idle), {
        until: () => Effect.map(settled("signer_relay_issue"), (count) => count === 6)
      })
      assert.strictEqual(begun, 6)
    })
  )
})
