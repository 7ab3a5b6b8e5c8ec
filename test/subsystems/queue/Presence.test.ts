import { it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { assert, describe } from "vitest"
import * as workers from "../../../src/subsystems/db/workers.ts"
import type { Record } from "../../../src/subsystems/log/EventLog.ts"
import { EventLog } from "../../../src/subsystems/log/EventLog.ts"
import * as Presence from "../../../src/subsystems/queue/Presence.ts"
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
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
        ["worker_registered", mine],
        ["worker_presence_swept", { rows_removed: 1 }]
      ])
      assert.deepStrictEqual((yield* workers.list).map(({ owner }) => owner), [mine.owner])
    })))
})
