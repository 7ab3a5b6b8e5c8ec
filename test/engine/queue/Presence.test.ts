import { it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Loops } from "../../../src/engine/Loops.ts"
import * as Presence from "../../../src/engine/queue/Presence.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { sleeps, watched } from "../../support/Watched.ts"

/** Moves the clock to the next refresh of a presence, and waits until that is done. */
const refreshed = Effect.gen(function*() {
  yield* TestClock.adjust("10 seconds")
  const next = (yield* Clock.currentTimeMillis) + 10_000
  yield* Effect.repeat(Effect.andThen(Effect.yieldNow, sleeps), { until: (ends) => ends.includes(next) })
})

describe.each(databases)("the presence of a process on $name", (backend) => {
  const database = useDatabase(backend)

  it.effect("is told of once, and takes the rows of the long dead away", () =>
    database.use(
      Effect.gen(function*() {
        const records: Array<Record> = []
        const gone = { owner: "gone:1:a", roles: "worker", version: "1", startedAt: 0, now: 0 }
        yield* workers.present(gone)
        yield* TestClock.setTime(590_001)
        const mine = { owner: "here:1:b", roles: "acme,worker", version: "1" }
        yield* Layer.build(Presence.layer(mine)).pipe(Effect.provide(layerMemory(records)))
        const swept = () => records.filter(({ event }) => event === "worker_presence_swept")
        for (let waited = 0; swept().length === 0 && waited < 1000; waited++) yield* refreshed
        const told = records.filter(({ event }) => event.startsWith("worker_"))
        assert.deepStrictEqual(told.map(({ event, fields }) => [event, fields]), [
          ["worker_registered", mine],
          ["worker_presence_swept", { rows_removed: 1 }]
        ])
        assert.deepStrictEqual((yield* workers.list).map(({ owner }) => owner), [mine.owner])
      }).pipe(Effect.provide(Loops.layer))
    ).pipe(watched))

  it.effect("tells of clocks that differ from its own, with how much, and again when that has changed", () =>
    database.use(
      Effect.gen(function*() {
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
        yield* Layer.build(layer).pipe(Effect.provide(layerMemory(records)))
        assert.deepStrictEqual(skews(), [["ahead:1:d", 40_000]])
        // What the server of the database says is always told of: its time is the real one.
        const databases = records.filter(({ fields }) => fields["against"] === "database").map(({ fields }) => fields)
        assert.strictEqual(databases.length, backend.dialect === "postgres" ? 1 : 0)
        const seen = (now: number) => Effect.andThen(workers.present({ ...others, owner: "ahead:1:d", now }), refreshed)
        yield* seen(1051)
        assert.strictEqual(skews().length, 1, "about the same")
        yield* seen(1100)
        assert.deepStrictEqual(skews().at(-1), ["ahead:1:d", 80_000])
      }).pipe(Effect.provide(Loops.layer))
    ).pipe(watched))
})
