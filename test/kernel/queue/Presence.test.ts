import { it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { assert, describe } from "vitest"
import * as Presence from "../../../src/kernel/queue/Presence.ts"
import * as workers from "../../../src/kernel/queue/Workers.ts"
import type { Record } from "../../../src/kernel/telemetry/EventLog.ts"
import { EventLog } from "../../../src/kernel/telemetry/EventLog.ts"
import { databases, useDatabase } from "../../support/Databases.ts"

describe.each(databases)("the presence of a process on $name", (backend) => {
  const database = useDatabase(backend)

  it.scoped("is told of once, and takes the rows of the long dead away", () =>
    database.use(Effect.gen(function*() {
      const records: Array<Record> = []
      const gone = { owner: "gone:1:a", roles: "worker", version: "1", startedAt: 0, now: 0 }
      yield* workers.present(gone)
      yield* TestClock.setTime(590_001)
      const mine = { owner: "here:1:b", roles: "acme,worker", version: "1" }
      yield* Layer.build(Presence.layer(mine)).pipe(Effect.provide(EventLog.layerMemory(records)))
      const swept = () => records.filter(({ event }) => event === "worker_presence_swept")
      for (let waited = 0; swept().length === 0 && waited < 1000; waited++) {
        yield* TestClock.adjust("10 seconds")
        yield* Effect.yieldNow()
      }
      const told = records.filter(({ event }) => event.startsWith("worker_"))
      assert.deepStrictEqual(told.map(({ event, fields }) => [event, fields]), [
        ["worker_registered", mine],
        ["worker_presence_swept", { rows_removed: 1 }]
      ])
      assert.deepStrictEqual((yield* workers.list).map(({ owner }) => owner), [mine.owner])
    })))

  it.scoped("tells of clocks that differ from its own, with how much, and again when that has changed", () =>
    database.use(Effect.gen(function*() {
      const records: Array<Record> = []
      const skews = () =>
        records.filter(({ event, fields }) => event === "server_clock_skewed" && fields["against"] !== "database")
          .map(({ fields }) => [fields["against"], fields["offset_ms"]])
      const others = { roles: "worker", version: "1", startedAt: 0 }
      yield* TestClock.setTime(1_000_000)
      for (const [owner, now] of [["late:1:b", 960], ["close:1:c", 1001], ["ahead:1:d", 1040]] as const) {
        yield* workers.present({ ...others, owner, now })
      }
      const layer = Presence.layer({ owner: "here:1:a", roles: "acme", version: "1" })
      yield* Layer.build(layer).pipe(Effect.provide(EventLog.layerMemory(records)))
      assert.deepStrictEqual(skews(), [["ahead:1:d", 40_000]])
      // What the server of the database says is always told of: its time is the real one.
      const databases = records.filter(({ fields }) => fields["against"] === "database").map(({ fields }) => fields)
      assert.strictEqual(databases.length, backend.dialect === "postgres" ? 1 : 0)
      const refreshed = (seen: number) =>
        Effect.gen(function*() {
          yield* workers.present({ ...others, owner: "ahead:1:d", now: seen })
          const [mine] = (yield* workers.list).filter(({ owner }) => owner === "here:1:a")
          yield* TestClock.adjust("10 seconds")
          for (let waited = 0; waited < 1000; waited++) {
            const [now] = (yield* workers.list).filter(({ owner }) => owner === "here:1:a")
            if (now?.lastSeenAt !== mine?.lastSeenAt) break
          }
          for (let turn = 0; turn < 20; turn++) yield* workers.list
        })
      yield* refreshed(1051)
      assert.strictEqual(skews().length, 1, "about the same")
      yield* refreshed(1100)
      assert.deepStrictEqual(skews().at(-1), ["ahead:1:d", 80_000])
    })))
})
