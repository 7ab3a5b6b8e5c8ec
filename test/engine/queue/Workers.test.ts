import { it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe } from "vitest"
import { Loops } from "../../../src/engine/Loops.ts"
import type { Machine } from "../../../src/engine/queue/Workers.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { here, isGone, ownerOf, renews } from "../../../src/engine/queue/Workers.ts"
import { makeCommitSync } from "../../../src/engine/sql/CommitSync.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import { giveBackText, takeText } from "../../../src/engine/sql/ServedLock.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { sql } from "../../support/OpenDatabase.ts"
import { withServerClock } from "../../support/ServerClock.ts"
import { sleeps, watched } from "../../support/Watched.ts"

const machine = (processes: { readonly [pid: number]: string }, place = "boot-1"): Machine => ({
  place,
  begun: (pid) => processes[pid]
})
const nowhere: Machine = { place: undefined, begun: () => undefined }
const of = (self: Machine, pid: number) => ownerOf(self, { host: "h", pid, uuid: "0190-a" })

describe("the owner of a lease", () => {
  it("is gone if its process has ended or another process has its id", () => {
    const before = machine({ 7: "100", 8: "200" })
    const owner = of(before, 7)
    assert.strictEqual(owner, "h:7:0190-a:boot-1.100")
    assert.isFalse(isGone(before)(owner))
    assert.isTrue(isGone(machine({ 8: "200" }))(owner), "nobody has the id")
    assert.isTrue(isGone(machine({ 7: "300" }))(owner), "somebody else has it")
  })

  it("keeps its leases if the state of its process is unknown", () => {
    const none = machine({})
    const owner = of(machine({ 7: "100" }), 7)
    assert.isFalse(isGone(machine({}, "boot-2"))(owner), "another boot, another machine, another container")
    assert.isFalse(isGone(nowhere)(owner), "the kernel does not say where this is")
    assert.isFalse(isGone(none)(of(nowhere, 7)), "it did not know itself")
    assert.isFalse(isGone(none)(of(machine({ 7: "hidden" }), 7)))
    assert.isFalse(isGone(machine({ 7: "hidden" }))(owner), "it may be hidden from this user")
    for (const foreign of ["", "h:7:0190-a", "dead", "h:x:0190-a:boot-1.100"]) assert.isFalse(isGone(none)(foreign))
  })

  it("does not renew its leases if it is of an earlier version", () => {
    assert.isTrue(renews(of(machine({ 7: "100" }), 7)))
    assert.isTrue(renews(of(nowhere, 7)))
    for (const earlier of ["h:7:0190-a", "", "dead"]) assert.isFalse(renews(earlier))
  })

  it.runIf(process.platform === "linux")("is recognised by what the kernel says about the process", async () => {
    const self = here()
    assert.match(self.place ?? "", /^[0-9a-f]{8}-\d+$/)
    assert.isFalse(isGone(self)(of(self, process.pid)))
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" })
    await once(child, "spawn")
    const owner = of(self, child.pid ?? 0)
    assert.isFalse(isGone(self)(owner))
    child.kill("SIGKILL")
    await once(child, "exit")
    assert.isTrue(isGone(self)(owner))
  })
})

/** Moves the clock to the next refresh of a presence, and waits until the refresh has been done. */
const refreshed = Effect.gen(function*() {
  yield* TestClock.adjust("10 seconds")
  const next = (yield* Clock.currentTimeMillis) + 10_000
  yield* Effect.repeat(Effect.andThen(Effect.yieldNow, sleeps), { until: (ends) => ends.includes(next) })
})

describe.each(databases)("the presence of a process on $name", (backend) => {
  const database = useDatabase(backend)

  it.effect("has the later time of its own clock and the server's clock", () =>
    database.use(
      Effect.gen(function*() {
        const mine = { owner: "here:1:b", roles: "acme", version: "1" }
        for (const [own, server, seen] of [[1000, 1040, 1040], [2000, 1960, 2000]] as const) {
          yield* TestClock.setTime(own * 1000)
          yield* Effect.scoped(withServerClock(
            Effect.gen(function*() {
              yield* Layer.build(workers.presence(mine))
              assert.deepStrictEqual((yield* workers.list).map(({ lastSeenAt }) => lastSeenAt), [seen])
            }),
            server
          ))
        }
      }).pipe(Effect.provide(Loops.layer))
    ).pipe(watched))

  if (backend.dialect === "postgres") {
    it.effect("does not begin while a transfer uses the database alone", () =>
      Effect.scoped(database.use(
        Effect.gen(function*() {
          const other = yield* database.another
          const build = Effect.scoped(Layer.build(workers.presence({ owner: "here:1:b", roles: "acme", version: "1" })))
          const refused = yield* other.exclusive((connection) =>
            Effect.andThen(
              connection.executeRaw(takeText(true), []),
              Effect.ensuring(Effect.flip(build), Effect.orDie(connection.executeRaw(giveBackText, [])))
            )
          )
          assert.include("detail" in refused ? refused.detail : "", "a transfer copies this database")
          assert.deepStrictEqual(yield* workers.list, [])
          yield* build
        }).pipe(Effect.provide(Loops.layer))
      )).pipe(watched))
  }

  it.effect("says which background work keeps failing in the process", () =>
    database.use(
      Effect.gen(function*() {
        const told = Effect.map(workers.list, (rows) => rows.map(({ failing }) => failing))
        yield* Layer.build(workers.presence({ owner: "here:1:b", roles: "acme", version: "1" }))
        assert.deepStrictEqual(yield* told, [""])
        const { watch } = yield* Loops
        const loops = ["job_polls", "tls_expiry"].map((loop) => watch(loop, { isVital: false }))
        for (const { died } of [...loops, ...loops]) died(0)
        for (let waited = 0; waited < 1000 && (yield* told)[0] === ""; waited++) yield* refreshed
        assert.deepStrictEqual(yield* told, ["job_polls tls_expiry"])
        for (const { ended } of loops) ended()
        for (let waited = 0; waited < 1000 && (yield* told)[0] !== ""; waited++) yield* refreshed
        assert.deepStrictEqual(yield* told, [""])
      }).pipe(Effect.provide(Loops.layer))
    ).pipe(watched))

  it.effect("deletes the rows of processes that ended long ago", () =>
    database.use(
      Effect.gen(function*() {
        const records: Array<Record> = []
        const gone = { owner: "gone:1:a", roles: "worker", version: "1", startedAt: 0, now: 0 }
        yield* workers.present(gone)
        yield* TestClock.setTime(590_001)
        const mine = { owner: "here:1:b", roles: "acme,worker", version: "1" }
        yield* Layer.build(workers.presence(mine)).pipe(Effect.provide(layerMemory(records)))
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

  if (backend.dialect === "sqlite") {
    it.effect("is refused beside a process that shares no syncs if this one does, until that process is gone", () =>
      database.use(
        Effect.gen(function*() {
          const driver = yield* Database
          const sharing = {
            ...driver,
            commits: makeCommitSync({
              syncs: [(ended) => ended(null)],
              othersCommits: () => 0,
              slow: () => Effect.void
            })
          }
          const others = { roles: "worker", version: "1", startedAt: 0 }
          yield* TestClock.setTime(1_000_000)
          // A version before this one leaves the column empty.
          yield* workers.present({ ...others, owner: "elsewhere:1:b", now: 990 })
          yield* sql("UPDATE workers SET shares_syncs = NULL")
          const build = Effect.scoped(
            Layer.build(workers.presence({ owner: "here:1:a", roles: "acme", version: "1" }))
          )
          const refused = yield* Effect.flip(Effect.provideService(build, Database, sharing))
          assert.include(
            "detail" in refused ? refused.detail : "",
            `database.sqlite.synchronous is "grouped" here, unlike in the process elsewhere:1:b`
          )
          assert.deepStrictEqual((yield* workers.list).map(({ owner }) => owner), ["elsewhere:1:b"])
          yield* build
          yield* TestClock.setTime(1_031_000)
          yield* Effect.provideService(build, Database, sharing)
        }).pipe(Effect.provide(Loops.layer))
      ).pipe(watched))
  }

  it.effect("warns of clocks that differ from its own", () =>
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
        const layer = workers.presence({ owner: "here:1:a", roles: "acme", version: "1" })
        // The clock of the database server is five seconds ahead too.
        yield* withServerClock(Layer.build(layer), 1005).pipe(Effect.provide(layerMemory(records)))
        assert.deepStrictEqual(skews(), [["ahead:1:d", 40_000]])
        const databases = records.filter(({ fields }) => fields["against"] === "database")
        assert.deepStrictEqual(databases.map(({ fields }) => fields["offset_ms"]), [5000])
        const seen = (now: number) => Effect.andThen(workers.present({ ...others, owner: "ahead:1:d", now }), refreshed)
        yield* seen(1051)
        assert.strictEqual(skews().length, 1, "about the same")
        yield* seen(1100)
        assert.deepStrictEqual(skews().at(-1), ["ahead:1:d", 80_000])
      }).pipe(Effect.provide(Loops.layer))
    ).pipe(watched))
})
