import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Client } from "pg"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import { rfc3339 } from "../../../src/engine/Time.ts"
import { list } from "../../../src/operations/operator/AuditReceiverRecords.ts"
import { verify } from "../../../src/operations/operator/ChainVerification.ts"
import { chainRows } from "../../../src/operations/work/AuditChaining.ts"
import { pushRows } from "../../../src/operations/work/AuditPush.ts"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import type { AuditReceiver } from "../../../src/services/audit/AuditReceiver.ts"
import { PushFailed } from "../../../src/services/audit/AuditReceiver.ts"
import * as receivers from "../../../src/store/AuditReceiverRows.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import { databases, postgres } from "../../support/Databases.ts"
import { killedAfter } from "../../support/Faults.ts"
import { column, count, sql } from "../../support/Graph.ts"
import { madeAt } from "../../support/LocalCa.ts"
import { useStore } from "../../support/UseTests.ts"

/* Pushes rows of real databases to receivers of the test, which keep what they got. */

const row = (number: number) =>
  audit.insert({
    event: "crl_number_raised",
    actorKind: "cli",
    actorId: undefined,
    detail: { issuer: "a", before: number, after: number + 1 }
  })

const rows = (many: number) => Effect.forEach(Array.from({ length: many }, (_, index) => index), row, { discard: true })

type Answer = Effect.Effect<void, PushFailed>

/** Makes a receiver that keeps the ids of the rows that it took. `answer` decides about an attempt. */
const receiverOf = (
  answer: (attempt: number, ids: ReadonlyArray<number>) => Answer = () => Effect.void,
  of: Partial<Pick<AuditReceiver, "name" | "confirms">> = {}
) => {
  const taken: Array<number> = []
  const attempts: Array<number> = []
  const self: AuditReceiver = {
    name: "http",
    confirms: true,
    timeoutMillis: 1000,
    reach: Effect.void,
    ...of,
    send: (all) =>
      Effect.suspend(() => {
        const ids = all.map(({ id }) => id)
        attempts.push(ids.length)
        return Effect.tap(answer(attempts.length - 1, ids), Effect.sync(() => taken.push(...ids)))
      })
  }
  return { self, taken, attempts }
}

const refused = (more: Partial<PushFailed> = {}): Answer => new PushFailed({ detail: "away", ...more })

const ids = Effect.map(column("SELECT id FROM audit_log ORDER BY id"), (all) => all.map(Number))

describe.each(databases)("a receiver of the audit trail on $name", (backend) => {
  const { records, test } = useStore(backend, { startsAt: madeAt })
  const told = (event: string) => records.filter((record) => record.event === event).map(({ fields }) => fields)

  test("gets every row once, in order, from the oldest one on", () =>
    Effect.gen(function*() {
      yield* rows(1203)
      const { attempts, self, taken } = receiverOf()
      assert.deepStrictEqual(yield* pushRows(self), { rows: 1203, hasMore: false })
      assert.deepStrictEqual(taken, yield* ids)
      assert.deepStrictEqual(attempts, [500, 500, 203])
      assert.deepStrictEqual(yield* pushRows(self), { rows: 0, hasMore: false })
      yield* rows(2)
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
      assert.strictEqual(told("audit_push_begun").length, 1)
    }))

  test("gets the members that operators see", () =>
    Effect.gen(function*() {
      yield* audit.insert({
        event: "crl_number_raised",
        actorKind: "cli",
        actorId: "anna",
        identifiers: ["a.example"],
        clientIp: "192.0.2.1",
        detail: { issuer: "a", before: 1, after: 2 }
      })
      let sent: unknown
      const { self } = receiverOf()
      yield* pushRows({ ...self, send: (all) => Effect.sync(() => void (sent = all)) })
      const [id] = yield* ids
      assert.deepStrictEqual<unknown>(sent, [{
        id,
        createdAt: rfc3339(madeAt),
        event: "crl_number_raised",
        outcome: "success",
        actorKind: "cli",
        actorId: "anna",
        identifiers: ["a.example"],
        clientIp: "192.0.2.1",
        detail: { issuer: "a", before: 1, after: 2 }
      }])
    }))

  test("gets a row that cannot be read, with substitutes", () =>
    Effect.gen(function*() {
      yield* rows(1)
      yield* sql(
        `INSERT INTO audit_log (created_at, event, outcome, actor_kind, identifiers, detail)
         VALUES (${madeAt}, 'eab_created', 'success', 'cli', 'no JSON', '[1]')`
      )
      yield* rows(1)
      const { self, taken } = receiverOf()
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
    }))

  test("is tried again with a growing wait while it is away, and loses nothing", () =>
    Effect.gen(function*() {
      yield* rows(3)
      const { self, taken } = receiverOf((attempt) => attempt < 9 ? refused() : Effect.void)
      const waits = yield* Effect.replicateEffect(
        Effect.tap(Effect.map(pushRows(self), ({ waitSeconds }) => waitSeconds), TestClock.adjust("1 minute")),
        9
      )
      assert.deepStrictEqual(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300])
      const [state] = yield* list(["http"])
      assert.deepInclude<object>(state ?? {}, {
        configured: true,
        pushedId: 0,
        failures: 9,
        failingSince: rfc3339(madeAt),
        error: "away",
        lagSeconds: 540
      })
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
      assert.strictEqual(told("audit_push_failed").length, 9)
      assert.deepInclude(told("audit_push_failed").at(-1), { failures: 9, error: "away", wait_ms: 300_000 })
      assert.deepInclude(told("audit_push_recovered")[0], { failures: 9 })
      const [after] = yield* list(["http"])
      assert.deepInclude<object>(after ?? {}, { pushedId: taken.at(-1), failures: 0, lagRows: 0, lagSeconds: 0 })
      assert.notProperty(after, "error")
    }))

  test("may ask for a longer wait, up to an hour", () =>
    Effect.gen(function*() {
      yield* rows(1)
      for (const [afterSeconds, wait] of [[120, 120], [1, 10], [86_400, 3600]] as const) {
        const { self } = receiverOf(() => refused({ afterSeconds }))
        assert.strictEqual((yield* pushRows(self)).waitSeconds, wait)
      }
    }))

  test("gets fewer rows at once if they are too large for it, and is not passed if a single one is", () =>
    Effect.gen(function*() {
      yield* rows(100)
      const { self, taken } = receiverOf((_, sent) => sent.length > 30 ? refused({ isTooLarge: true }) : Effect.void)
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
      yield* rows(1)
      const { attempts, self: small } = receiverOf(() => refused({ isTooLarge: true }))
      assert.strictEqual((yield* pushRows(small)).waitSeconds, 5)
      assert.deepStrictEqual(attempts, [1])
    }))

  test("gets the last rows once more after a failure, if it does not confirm what it has taken", () =>
    Effect.gen(function*() {
      const of = { name: "syslog", confirms: false } as const
      const { self, taken } = receiverOf((attempt) => attempt === 2 ? refused() : Effect.void, of)
      yield* rows(2)
      yield* pushRows(self)
      yield* rows(3)
      yield* pushRows(self)
      yield* rows(1)
      yield* pushRows(self) // fails, so the receiver may have lost the three rows before
      yield* pushRows(self)
      const all = yield* ids
      assert.deepStrictEqual(taken, [...all.slice(0, 5), ...all.slice(2)])
    }))

  test("is independent of the other receiver", () =>
    Effect.gen(function*() {
      yield* rows(2)
      const [away, there] = [receiverOf(() => refused()), receiverOf(undefined, { name: "syslog", confirms: false })]
      yield* pushRows(away.self)
      yield* pushRows(there.self)
      assert.deepStrictEqual(there.taken, yield* ids)
      assert.deepStrictEqual((yield* list(["http", "syslog"])).map(({ lagRows }) => lagRows > 0), [false, true])
    }))

  test("is moved by one of two processes that push at the same time", () =>
    Effect.gen(function*() {
      yield* rows(4)
      const second = receiverOf()
      const first = receiverOf((attempt) => attempt === 0 ? Effect.orDie(Effect.asVoid(pushed)) : Effect.void)
      const driver = yield* Database
      const pushed = Effect.provideService(pushRows(second.self), Database, driver)
      yield* pushRows(first.self)
      yield* pushRows(first.self)
      assert.deepStrictEqual(second.taken, yield* ids)
      assert.deepStrictEqual(first.taken, yield* ids, "it repeated them, and did not move the receiver back")
    }))

  test("loses no row if the process is killed between any two statements", () =>
    Effect.gen(function*() {
      const driver = yield* Database
      const of = { name: "syslog", confirms: false } as const
      const { self, taken } = receiverOf((attempt) => attempt % 3 === 1 ? refused() : Effect.void, of)
      let isKilled = true
      for (let statements = 0; isKilled; statements++) {
        yield* rows(600)
        const mortal = yield* killedAfter(driver, statements)
        const ended = yield* Effect.exit(Effect.provideService(pushRows(self), Database, mortal.driver))
        isKilled = ended._tag === "Failure"
        assert.isBelow(statements, 60)
      }
      const all = yield* ids
      for (let pass = 0; pass < 60 && taken.at(-1) !== all.at(-1); pass++) yield* pushRows(self)
      assert.deepStrictEqual([...new Set(taken)], all, "each row came, and the first time in order")
    }))

  const old = (many: number) => Effect.andThen(rows(many), TestClock.adjust("20 days"))

  test("keeps the retention from deleting rows that it has not taken, and they stay in the chain", () =>
    Effect.gen(function*() {
      yield* chainRows(100)
      yield* old(4)
      yield* chainRows(100)
      const { self, taken } = receiverOf((attempt) => attempt === 0 ? refused() : Effect.void)
      yield* pushRows(self)
      yield* sweeps.sweepAudit(10, ["http"])
      assert.lengthOf(yield* ids, 4)
      assert.deepInclude(told("audit_reaper_waits")[0], { receiver: "http", audit_row: 0 })
      yield* pushRows(self)
      assert.lengthOf(taken, 4)
      yield* old(3)
      yield* chainRows(100)
      yield* sweeps.sweepAudit(10, ["http"])
      const left = (yield* column("SELECT event FROM audit_log ORDER BY id")).toSorted()
      assert.deepStrictEqual(left, ["audit_pruned", "crl_number_raised", "crl_number_raised", "crl_number_raised"])
      yield* chainRows(100)
      const whole = { after: undefined, held: undefined, mostRows: Number.POSITIVE_INFINITY, keyPath: undefined }
      assert.deepStrictEqual((yield* verify(whole)).faults, [])
      yield* pushRows(self)
      yield* sweeps.sweepAudit(10, ["http"])
      assert.deepStrictEqual([...new Set(yield* column("SELECT event FROM audit_log"))], ["audit_pruned"])
      assert.strictEqual(told("audit_push_rows_lost").length, 0)
      assert.deepStrictEqual((yield* verify(whole)).faults, [])
    }))

  test("that never got a row keeps every row", () =>
    Effect.gen(function*() {
      yield* old(2)
      yield* sweeps.sweepAudit(10, ["syslog"])
      assert.lengthOf(yield* ids, 2)
    }))

  test("is told which rows it missed while it was not configured", () =>
    Effect.gen(function*() {
      const { self, taken } = receiverOf()
      yield* rows(2)
      yield* pushRows(self)
      const [, second = 0] = yield* ids
      yield* old(3)
      const last = (yield* ids).at(-1)
      yield* sweeps.sweepAudit(10, [])
      assert.deepInclude<object>((yield* list([]))[0] ?? {}, { name: "http", configured: false, lostUpto: last })
      yield* pushRows(self)
      yield* pushRows(self)
      assert.deepStrictEqual(told("audit_push_rows_lost").map(({ audit_row, last_row }) => [audit_row, last_row]), [
        [second, last]
      ])
      assert.deepStrictEqual(taken.slice(2), yield* ids, "it goes on with the rows that are left")
      assert.notProperty((yield* list(["http"]))[0], "lostUpto")
    }))

  test("is found again with its position after it was configured with another address", () =>
    Effect.gen(function*() {
      yield* rows(3)
      yield* pushRows(receiverOf().self)
      yield* rows(2)
      const next = receiverOf()
      yield* pushRows(next.self)
      assert.deepStrictEqual(next.taken, (yield* ids).slice(3))
      assert.strictEqual((yield* receivers.find("http"))?.pushedId, next.taken.at(-1))
    }))

  test("has a chain that verifies and loses no row if the chain's job is killed between any two statements", () =>
    Effect.gen(function*() {
      const driver = yield* Database
      const whole = { after: undefined, held: undefined, mostRows: Number.POSITIVE_INFINITY, keyPath: undefined }
      const links = new Set<number>()
      let isKilled = true
      for (let statements = 0; isKilled; statements++) {
        yield* rows(600)
        const mortal = yield* killedAfter(driver, statements)
        const ended = yield* Effect.exit(Effect.provideService(chainRows(100), Database, mortal.driver))
        isKilled = ended._tag === "Failure"
        const found = yield* verify(whole)
        assert.deepStrictEqual(found.faults, [], `killed after ${statements} statements`)
        links.add(found.links)
        assert.isBelow(statements, 60)
      }
      assert.isAbove(links.size, 2, "some were killed after a link and before the next one")
      yield* chainRows(100)
      const found = yield* verify(whole)
      assert.deepStrictEqual([found.faults, found.unchained.rows], [[], 0])
      assert.strictEqual(found.verified + found.uncovered.rows, yield* count("SELECT count(*) FROM audit_log"))
    }))
})

describe("a receiver of the audit trail on PostgreSQL, with transactions that commit late", () => {
  const { database, records, test } = useStore(postgres, { startsAt: madeAt })
  const insert =
    "INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (1, 'eab_created', 'success', 'cli')"

  const late = Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: database.url() })
      await client.connect()
      await client.query("BEGIN")
      await client.query(insert)
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

  test("waits for a row with a lower id, and then gets it in its place", () =>
    Effect.gen(function*() {
      const { self, taken } = receiverOf()
      const client = yield* late
      yield* rows(3)
      const pushing = yield* Effect.forkChild(TestClock.withLive(pushRows(self)), { startImmediately: true })
      yield* rows(1) // no insert waits for the receiver
      for (let turn = 0; turn < 100; turn++) yield* count("SELECT 1")
      assert.isUndefined(pushing.pollUnsafe())
      assert.deepStrictEqual(taken, [])
      yield* Effect.promise(() => client.query("COMMIT"))
      yield* Fiber.join(pushing)
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
    }))

  test("gets nothing while such a transaction stays open", () =>
    Effect.gen(function*() {
      const { self, taken } = receiverOf()
      const client = yield* late
      yield* rows(3)
      const pushing = yield* Effect.forkChild(pushRows(self))
      while (pushing.pollUnsafe() === undefined) {
        yield* TestClock.adjust("1 second")
        yield* count("SELECT 1")
      }
      assert.deepStrictEqual(yield* Fiber.join(pushing), { rows: 0, hasMore: false })
      assert.strictEqual(records.filter(({ event }) => event === "audit_push_postponed").length, 1)
      yield* Effect.promise(() => client.query("ROLLBACK"))
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
    }))

  test("misses no row of several processes that write", () =>
    Effect.gen(function*() {
      const { self, taken } = receiverOf()
      const state = { isWriting: true, passes: 0 }
      const write = async (number: number) => {
        const client = new Client({ connectionString: database.url() })
        await client.connect()
        for (let pass = 0; pass < 40 || state.passes < 5; pass++) {
          await client.query("BEGIN")
          for (let many = 0; many <= (pass + number) % 3; many++) await client.query(insert)
          for (let many = 0; many < number; many++) await client.query("SELECT 1")
          await client.query(pass % 7 === 6 ? "ROLLBACK" : "COMMIT")
        }
        await client.end()
      }
      const writers = Effect.promise(async () => {
        await Promise.all([0, 1, 2, 3, 4].map(write))
        state.isWriting = false
      })
      const pushing = Effect.gen(function*() {
        while (state.isWriting) state.passes += (yield* TestClock.withLive(pushRows(self))).rows > 0 ? 1 : 0
      })
      yield* Effect.all([writers, pushing], { concurrency: "unbounded" })
      yield* pushRows(self)
      assert.deepStrictEqual(taken, yield* ids)
    }))
})
