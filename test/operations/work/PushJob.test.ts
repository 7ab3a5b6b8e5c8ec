import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import type { AuditReceiver } from "../../../src/services/audit/AuditReceiver.ts"
import { PushFailed } from "../../../src/services/audit/AuditReceiver.ts"
import { AuditReceivers } from "../../../src/services/audit/AuditReceivers.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import { column, configOf } from "../../support/Graph.ts"
import { madeAt } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The jobs that push the rows of the trail and check its chain, as the runner runs them. */

const row = audit.insert({
  event: "crl_number_raised",
  actorKind: "cli",
  actorId: undefined,
  detail: { issuer: "a", before: 1, after: 2 }
})

const ids = Effect.map(column("SELECT id FROM audit_log ORDER BY id"), (all) => all.map(Number))

describe.each(databases)("the jobs about the audit trail on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: madeAt })
  const told = (event: string) => records.filter((record) => record.event === event)

  const receiverOf = (isAway: () => boolean = () => false) => {
    const taken: Array<number> = []
    const self: AuditReceiver = {
      name: "http",
      confirms: true,
      timeoutMillis: 1000,
      reach: Effect.void,
      send: (rows) =>
        Effect.suspend(() =>
          isAway()
            ? new PushFailed({ detail: "away" })
            : Effect.sync(() => void taken.push(...rows.map(({ id }) => id)))
        )
    }
    return { self, taken }
  }

  /** Starts a worker with these receivers, as a start or a reload does. */
  const worker = (receivers: ReadonlyArray<AuditReceiver>) =>
    Effect.gen(function*() {
      const config = configOf()
      const all = yield* Effect.provideService(handlers(config), AuditReceivers, { all: receivers })
      const ofTrail = all.filter(({ kind }) => ["audit_push", "audit_chain", "audit_chain_check"].includes(kind))
      const { enqueuePeriodic, idle, pass } = yield* Runner.make({ ...config.jobs, owner: "host:1:a" }, ofTrail)
      yield* enqueuePeriodic()
      return Effect.andThen(pass, idle)
    })

  test("push to a receiver every ten seconds, wait longer while it is away, and check the chain", () =>
    Effect.gen(function*() {
      let isAway = false
      const { self, taken } = receiverOf(() => isAway)
      yield* row
      const run = yield* worker([self])
      yield* run
      assert.deepStrictEqual(taken, yield* ids)
      assert.lengthOf(told("audit_chain_checked"), 1)
      yield* row
      yield* run
      assert.lengthOf(taken, 1, "it is not due yet")
      isAway = true
      yield* TestClock.adjust("10 seconds")
      yield* run
      assert.lengthOf(told("audit_push_failed"), 1)
      isAway = false
      yield* TestClock.adjust("4 seconds")
      yield* run
      assert.lengthOf(taken, 1)
      yield* TestClock.adjust("1 second")
      yield* run
      assert.deepStrictEqual(taken, yield* ids)
    }))

  test("push to a new receiver at once, and end after it was removed", () =>
    Effect.gen(function*() {
      const [first, second] = [receiverOf(() => true), receiverOf()]
      yield* row
      yield* yield* worker([first.self])
      yield* yield* worker([second.self])
      assert.deepStrictEqual(second.taken, yield* ids, "a reload does not wait for the end of a wait")
      const without = yield* worker([])
      for (let attempt = 0; attempt < 6; attempt++) {
        yield* without
        yield* TestClock.adjust("2 hours")
      }
      assert.lengthOf(told("audit_push_retired"), 1)
      yield* row
      yield* yield* worker([second.self])
      assert.deepStrictEqual(second.taken, yield* ids, "it continues where it was")
    }))

  test("say why the chain cannot be checked, and try again", () =>
    Effect.gen(function*() {
      yield* breakWrites(backend.dialect, { table: "audit_chain_checks", operation: "INSERT" })
      const run = yield* worker([])
      yield* run
      assert.match(String(told("audit_chain_check_failed")[0]?.fields["error"]), /planted/)
      yield* mend(backend.dialect)
      yield* TestClock.adjust("1 hour")
      yield* run
      assert.lengthOf(told("audit_chain_checked"), 1)
    }))
})
