import { Effect, Exit, Schema } from "effect"
import { assert, describe } from "vitest"
import { shareOf } from "../../../src/engine/queue/Job.ts"
import { kind, makeJobs } from "../../../src/engine/queue/Kind.ts"
import { Done, Reschedule } from "../../../src/engine/queue/Outcome.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { waiting } from "../../../src/engine/queue/Slots.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import { databases } from "../../support/Databases.ts"
import { sql } from "../../support/Graph.ts"
import { useStore } from "../../support/UseTests.ts"

/* The queue of an invented service. */

const { decodePayload, enqueue, handler, known, names } = makeJobs({
  parcel_pack: kind({
    payload: Schema.Struct({ parcel: Schema.String, weight: Schema.optional(Schema.Int) }),
    room: waiting({ factor: 2, memberPart: 1 / 2 })
  }),
  shelf_tidy: kind({ payload: Schema.Struct({}), periodic: true })
}, { groupName: "shop" })

const options = {
  owner: "host:1:a",
  poll_interval_ms: 1000,
  max_concurrent: 4,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600
}

describe.each(databases)("a queue of other kinds, on $name", (backend) => {
  const { records, test } = useStore(backend, {
    layer: () => Queue.layer({ kinds: known, config: () => ({ jobs: { max_attempts: 3 } }) })
  })

  test("runs its jobs and its periodic work", () =>
    Effect.gen(function*() {
      const packed: Array<string> = []
      const runner = yield* Runner.make(options, [
        handler<"parcel_pack", Database>({
          kind: "parcel_pack",
          budgetMillis: () => 1000,
          run: ({ parcel, weight = 0 }) => Effect.sync(() => (packed.push(`${parcel} ${weight}`), Done())),
          abandon: () => Effect.void
        }),
        handler<"shelf_tidy", Database>({
          kind: "shelf_tidy",
          budgetMillis: () => 1000,
          run: () => Effect.succeed(Reschedule(500)),
          abandon: () => Effect.void
        })
      ])
      yield* runner.enqueuePeriodic()
      const share = shareOf("books", "jane")
      yield* enqueue({ kind: "parcel_pack", dedupKey: "one", payload: { parcel: "one", weight: 7 }, share })
      yield* runner.pass
      yield* runner.idle
      assert.deepStrictEqual(packed, ["one 7"])
      const rows = yield* sql("SELECT kind, dedup_key, status FROM jobs ORDER BY kind")
      assert.deepStrictEqual(rows.map((row) => ({ ...row })), [
        { kind: "parcel_pack", dedup_key: "one", status: "done" },
        { kind: "shelf_tidy", dedup_key: "all", status: "ready" }
      ])
      assert.deepInclude(records.find(({ event }) => event === "job_run_completed")?.span ?? {}, {
        job_kind: "parcel_pack",
        shop: "books"
      })
    }))

  test("rejects a kind or a payload that is not declared", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(names, ["parcel_pack", "shelf_tidy"])
      assert.deepStrictEqual(known.roomOf("parcel_pack", 4), { slots: 8, firstCome: 2, group: 6, memberPart: 1 / 2 })
      assert.isUndefined(known.roomOf("shelf_tidy", 4))
      assert.isUndefined(known.roomOf("of another version", 4))
      assert.deepStrictEqual(decodePayload("parcel_pack", `{"parcel":"one"}`), { parcel: "one" })
      assert.isUndefined(decodePayload("parcel_pack", "{}"))
      // @ts-expect-error the payload lacks a member of its kind
      const wrong = enqueue({ kind: "parcel_pack", dedupKey: "two", payload: {} })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(wrong)))
      // @ts-expect-error there is no such kind
      assert.throws(() => decodePayload("parcel_burn", "{}"))
    }))
})
