import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { ExpiringCertificate } from "../../../../src/domain/Notification.ts"
import { series } from "../../../../src/domain/words/Series.ts"
import * as jobs from "../../../../src/engine/queue/Job.ts"
import { Metrics } from "../../../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../../../src/engine/telemetry/Registry.ts"
import * as expiring from "../../../../src/operations/operator/ExpiringRecords.ts"
import * as jobRecords from "../../../../src/operations/operator/Jobs.ts"
import { databases } from "../../../support/Databases.ts"
import { accountWith, ahead, ending, queued, setOrder, worker, works, worksUntil } from "../../../support/Ending.ts"
import { breakWrites, mend } from "../../../support/Faults.ts"
import { column, configOf, count, eventsOf, sql } from "../../../support/Graph.ts"
import { daySeconds, madeAt } from "../../../support/LocalCa.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/*
 * Tests the digest of certificates that expire soon (docs/contribute/decisions/notifications.md, "Expiring
 * certificates").
 */

const withExpiry = (expiry: string, profiles = "") =>
  configOf(`[notify]
enabled = ["webhook", "custom"]
webhook_enabled = ["chat", "pager"]
custom_enabled = ["tell"]
[notify.webhook.chat]
url = "https://chat.example/secret"
[notify.webhook.pager]
url = "https://pager.example/secret"
events = ["certificate_revoked"]
[notify.custom.tell]
script_path = "tell"
[notify.expiry]
${expiry}
[profiles.other.notify.expiry]
lead_days = 0
${profiles}`.replace("[profiles.other]\n", ""))

const config = withExpiry("lead_days = 14\ninterval_days = 7\nmax_entries = 3")
const days = (many: number) => TestClock.adjust(`${many} days`)

describe.each(databases)("the digest on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: madeAt })
  const here = Effect.suspend(() => accountWith(config))
  const digests = Effect.map(queued, (rows) => rows.filter(({ event }) => event === "certificates_expiring"))
  const said = (event: string) => records.filter((one) => one.event === event).map(({ fields }) => fields)
  const ofKind = (kind: string) => `FROM jobs WHERE kind = '${kind}'`
  const wait = Effect.map(
    sql(`SELECT run_at ${ofKind("notify_expiry_digest")} AND status = 'ready'`),
    ([row]) => Number(row?.["run_at"])
  )

  test("is sent once a period to every receiver that wants it, whichever workers start and end", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      for (const owner of ["host:1:a", "host:2:b", "host:1:c"]) yield* works(config, { owner })
      assert.deepStrictEqual((yield* digests).map(({ entry }) => entry).toSorted(), ["chat", "tell"])
      const [first, second] = yield* digests
      assert.deepStrictEqual(first?.fields, second?.fields, "one payload for all")
      assert.strictEqual(yield* wait, madeAt + 7 * daySeconds)
      assert.deepStrictEqual(said("notify_expiry_digest_queued"), [{ profile: "default", total: 1 }])
      yield* days(6)
      yield* works(config)
      assert.lengthOf(yield* digests, 2)
      yield* ending(yield* here, 10, "b.example")
      yield* days(1)
      yield* works(config)
      yield* works(config, { owner: "host:2:b" })
      assert.lengthOf(yield* digests, 4)
      assert.strictEqual(yield* wait, madeAt + 14 * daySeconds)
    }))

  test("is sent once more if an operator asks for it, and then after a whole period", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      yield* works(config)
      yield* days(1)
      yield* ending(yield* here, 4, "b.example")
      const [job] = (yield* jobRecords.list({ kind: "notify_expiry_digest" }, { limit: 1, offset: 0 })).items
      if (job === undefined) return assert.fail("there is no job")
      yield* jobRecords.runNow({ kind: "cli", id: "tester" }, job.id)
      // The job waits for a worker when an operator asks for the digest again.
      yield* jobRecords.runNow({ kind: "cli", id: "tester" }, job.id)
      yield* works(config)
      assert.lengthOf(yield* digests, 4)
      assert.deepStrictEqual(said("notify_expiry_digest_queued").at(-1), { profile: "default", total: 2 })
      assert.strictEqual(yield* wait, madeAt + 8 * daySeconds)
      yield* works(config)
      assert.lengthOf(yield* digests, 4)
    }))

  test("lists at most max_entries certificates, ordered by expiry with replaced certificates last, and counts all", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const followed = yield* ending(caller, 1, "old.example")
      const successor = yield* ending(caller, 90, "old.example", "new.example")
      const [later, sooner] = [
        yield* ending(caller, 9, "b.example"),
        yield* ending(caller, 2, "a.example", "c.example")
      ]
      const revoked = yield* ending(caller, 1, "revoked.example")
      yield* setOrder(revoked, `revoked_at = ${madeAt}`)
      yield* ending(caller, 15, "beyond.example")
      yield* ending(caller, 0, "ended.example")
      yield* ending(yield* accountWith(config, [], "other"), 3, "elsewhere.example")
      yield* works(config)
      const { certificates, ...members } = (yield* digests)[0]?.fields ?? assert.fail("nothing is told")
      const { delivery_id: _, ...counts } = members
      assert.deepStrictEqual(counts, {
        hook: "certificates_expiring",
        profile: "default",
        at: madeAt,
        generated_at: madeAt,
        lead_days: 14,
        total: 3,
        superseded: 1
      })
      const of = { account_id: caller.accountId, cert_serial: "0a", kind: "default" }
      assert.deepStrictEqual(certificates, [
        {
          order_id: sooner,
          ...of,
          identifiers: ["a.example", "c.example"],
          not_after: madeAt + 2 * daySeconds,
          days_remaining: 2
        },
        { order_id: later, ...of, identifiers: ["b.example"], not_after: madeAt + 9 * daySeconds, days_remaining: 9 },
        {
          order_id: followed,
          ...of,
          identifiers: ["old.example"],
          not_after: madeAt + daySeconds,
          days_remaining: 1,
          superseded_by: {
            order_id: successor,
            cert_serial: "0a",
            not_after: madeAt + 90 * daySeconds,
            via: "identifiers"
          }
        }
      ])
      const { hidden, items, total } = yield* expiring.list(
        { profile: "default", days: 14, hideSuperseded: true },
        { limit: 9, offset: 0 }
      )
      assert.deepStrictEqual([items.map(({ order }) => order.id), total, hidden], [[sooner, later], 3, 1])
      yield* ending(caller, 3, "d.example")
      yield* days(7)
      yield* setOrder(sooner, `cert_not_after = ${madeAt + 8 * daySeconds}`)
      yield* sql("DELETE FROM jobs WHERE kind = 'notify_deliver'")
      for (const day of [10, 11, 12, 13]) yield* ending(caller, day, `${day}.example`)
      yield* works(config)
      const again = (yield* digests)[0]?.fields ?? assert.fail("nothing is told")
      assert.deepStrictEqual([again["total"], again["superseded"]], [7, 0], "15 is within by now, 3 has ended")
      assert.lengthOf(again["certificates"] as ReadonlyArray<ExpiringCertificate>, 3)
    }))

  test("lists at most max_entries certificates even if many were replaced", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const open = [yield* ending(caller, 3, "a.example"), yield* ending(caller, 4, "b.example")]
      const followed = [yield* ending(caller, 1, "c.example"), yield* ending(caller, 2, "d.example")]
      yield* ending(caller, 90, "c.example", "d.example")
      yield* works(config)
      const { certificates, superseded, total } = (yield* digests)[0]?.fields ?? assert.fail("nothing is told")
      assert.deepStrictEqual([total, superseded], [4, 2])
      const listed = (certificates as ReadonlyArray<ExpiringCertificate>).map(({ order_id }) => order_id)
      assert.deepStrictEqual(listed, [...open, ...followed.slice(0, 1)])
    }))

  test("is not sent while no certificate expires or all of these were replaced, and is checked again after the period", () =>
    Effect.gen(function*() {
      yield* works(config)
      const caller = yield* here
      yield* days(7)
      yield* ending(caller, 8, "a.example")
      yield* ending(caller, 90, "a.example")
      yield* works(config)
      assert.deepStrictEqual(yield* digests, [])
      assert.deepStrictEqual(said("notify_expiry_digest_skipped").map(({ total }) => total), [0, 1])
      assert.strictEqual(yield* wait, madeAt + 14 * daySeconds)
    }))

  test("lists the certificates of deactivated accounts, because they expire too", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      yield* works(config)
      assert.lengthOf(yield* digests, 2)
    }))

  test("is not queued without lead_days, without receivers, or if no receiver wants it", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      const silent = [
        configOf(),
        configOf("[notify.expiry]\nlead_days = 14"),
        withExpiry("lead_days = 0"),
        configOf(`[notify]
enabled = ["webhook"]
webhook_enabled = ["pager"]
[notify.webhook.pager]
url = "https://pager.example/secret"
events = ["certificate_revoked"]
[notify.expiry]
lead_days = 14
`)
      ]
      for (const one of silent) yield* works(one)
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
    }))

  test("ends when it is turned off and returns when it is turned on, but is not sent again in the same period", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      yield* works(config)
      yield* works(configOf())
      assert.deepStrictEqual(said("notify_expiry_digest_retired"), [{ profile: "default" }])
      assert.deepStrictEqual(yield* column(`SELECT status ${ofKind("notify_expiry_digest")}`), ["done"])
      yield* works(config)
      assert.lengthOf(yield* digests, 2)
      assert.strictEqual(yield* wait, madeAt + 7 * daySeconds)
      yield* sql(`DELETE ${ofKind("notify_expiry_digest")}`)
      yield* works(config)
      assert.lengthOf(yield* digests, 2)
    }))

  test("waits for a process that serves its profile, and ends after nineteen hours without such a process", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      yield* works(config)
      yield* sql(
        `UPDATE jobs SET payload = '{"profile":"gone"}', dedup_key = 'gone' WHERE kind = 'notify_expiry_digest'`
      )
      yield* days(8)
      const { idle, pass } = yield* worker(config)
      const state = column(`SELECT status ${ofKind("notify_expiry_digest")} AND dedup_key = 'gone'`)
      for (let look = 0; look < 19; look++) {
        yield* pass
        yield* idle
        assert.deepStrictEqual(yield* state, ["ready"], `look ${look}`)
        yield* TestClock.adjust("1 hour")
      }
      yield* pass
      yield* idle
      assert.deepStrictEqual(yield* state, ["done"])
    }))

  test("is left to other processes by a process that does not serve its profile", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 13, "a.example")
      yield* works(config)
      yield* days(8)
      const unserved = {
        ...config,
        profiles: config.profiles.map((one) => one.name === "default" ? { ...one, enabled: false } : one)
      }
      yield* works(unserved)
      assert.lengthOf(yield* digests, 2)
      yield* TestClock.adjust("1 hour")
      yield* works(config)
      assert.lengthOf(yield* digests, 4)
    }))

  test("is not run before its time, even if its time is days away", () =>
    Effect.gen(function*() {
      yield* works(config)
      yield* sql("ALTER TABLE expiry_digests RENAME TO expiry_digests_away")
      const { idle, pass } = yield* worker(config)
      for (let round = 0; round < 3; round++) {
        yield* TestClock.adjust("2 hours")
        yield* pass
        yield* Effect.orDie(idle)
      }
      yield* sql("ALTER TABLE expiry_digests_away RENAME TO expiry_digests")
      assert.deepStrictEqual(said("notify_expiry_digest_failed"), [])
      assert.strictEqual(yield* wait, madeAt + 7 * daySeconds)
    }))

  test("moves to another time at the next startup if its period was changed", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 13, "a.example")
      yield* works(withExpiry("lead_days = 14\ninterval_days = 12"))
      yield* days(3)
      yield* works(withExpiry("lead_days = 14\ninterval_days = 5"))
      assert.strictEqual(yield* wait, madeAt + 5 * daySeconds)
      assert.lengthOf(yield* digests, 2)
      yield* works(withExpiry("lead_days = 14\ninterval_days = 2"))
      assert.lengthOf(yield* digests, 4)
    }))

  test("is sent once even if its worker is killed after any statement", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      const outcomes = new Set<number>()
      let isWhole = false
      for (let statements = 0; !isWhole; statements++) {
        yield* sql("DELETE FROM jobs")
        yield* sql("DELETE FROM expiry_digests")
        const { enqueuePeriodic } = yield* worker(config)
        yield* enqueuePeriodic()
        isWhole = yield* worksUntil(config, statements)
        const told = (yield* digests).length
        assert.include([0, 2], told, `both or none, after ${statements} statements`)
        outcomes.add(told)
        yield* TestClock.adjust("2 minutes")
        yield* works(config)
        assert.lengthOf(yield* digests, 2, `after ${statements} statements`)
        assert.isBelow(statements, 40)
      }
      assert.deepStrictEqual([...outcomes], [0, 2])
    }))

  test("is sent once a period by workers whose clocks differ by hours, days or years, and continues when one worker is left", () =>
    Effect.gen(function*() {
      const caller = yield* here
      for (const lead of [3600, 3 * daySeconds, 400 * daySeconds, -400 * daySeconds]) {
        yield* sql("DELETE FROM jobs")
        yield* sql("DELETE FROM expiry_digests")
        yield* sql("DELETE FROM orders")
        const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
        for (const from of [0, lead]) {
          yield* ending(caller, (now / 1000 + from - madeAt) / daySeconds + 45, `${Math.abs(from)}.example`)
        }
        const long = withExpiry("lead_days = 60\ninterval_days = 7")
        const isAhead = lead > 0
        // The process whose clock is ahead sends the digest, and the other process then sees a time in the future.
        const first = isAhead ? works(long, { owner: "host:2:b" }).pipe(ahead(lead)) : works(long)
        const second = isAhead ? works(long) : works(long, { owner: "host:2:b" }).pipe(ahead(lead))
        yield* first
        const sent = [(yield* digests).length / 2]
        for (let day = 0; day < 21; day++) {
          for (let turn = 0; turn < 2; turn++) {
            yield* first
            yield* second
          }
          yield* days(1)
          sent.push((yield* digests).length / 2)
        }
        assert.deepStrictEqual([sent[0], sent[6], sent[13], sent[20]], [1, 1, 2, 3], `${lead} s`)
        yield* second
        yield* days(8)
        yield* second
        const after = (yield* digests).length / 2
        assert.isAtLeast(after, 4, `${lead} s: not silent for longer than a period and an hour`)
        assert.isAtMost(after, 5, `${lead} s`)
      }
    }))

  test("is left for an hour to the process whose clock is ahead, so that only one process sends it", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 45, "a.example")
      const long = withExpiry("lead_days = 60\ninterval_days = 7")
      const leading = works(long, { owner: "host:2:b" }).pipe(ahead(10 * daySeconds))
      yield* leading
      yield* works(long)
      assert.lengthOf(yield* digests, 2)
      yield* days(7)
      yield* works(long)
      assert.lengthOf(yield* digests, 2, "the other one is about to send it")
      yield* leading
      yield* works(long)
      assert.lengthOf(yield* digests, 4)
    }))

  test("is tried again if the database fails, and the log reports the failure", () =>
    Effect.gen(function*() {
      yield* ending(yield* here, 3, "a.example")
      yield* sql("ALTER TABLE expiry_digests RENAME TO expiry_digests_away")
      yield* works(config)
      assert.include(String(said("notify_expiry_digest_failed")[0]?.["error"]), "expiry_digests")
      yield* sql("ALTER TABLE expiry_digests_away RENAME TO expiry_digests")
      yield* breakWrites(backend.dialect, { operation: "INSERT", table: "expiry_digests" })
      yield* TestClock.adjust("2 minutes")
      const { pass } = yield* worker(config, { owner: "host:2:b" })
      yield* pass
      yield* mend(backend.dialect)
      yield* TestClock.adjust("10 minutes")
      yield* works(config)
      yield* works(config)
      assert.lengthOf(yield* digests, 2)
    }))

  test("is tried again after a period at the latest, however long jobs wait", () =>
    Effect.gen(function*() {
      const patient = withExpiry(
        "lead_days = 14\ninterval_days = 1",
        "[jobs]\nretry_base_seconds = 864000\nretry_max_seconds = 864000\n"
      )
      yield* sql("ALTER TABLE expiry_digests RENAME TO expiry_digests_away")
      yield* works(patient)
      yield* sql("ALTER TABLE expiry_digests_away RENAME TO expiry_digests")
      assert.strictEqual(yield* wait, madeAt + daySeconds)
    }))

  test("first stores the expiries that are missing in their column, as -1 for a chain that cannot be read", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const [unread, revoked] = [yield* ending(caller, 3, "a.example"), yield* ending(caller, 3, "b.example")]
      yield* setOrder(unread, "cert_not_after = NULL")
      yield* setOrder(revoked, `cert_not_after = NULL, revoked_at = ${madeAt}`)
      yield* works(config)
      assert.deepStrictEqual(yield* column("SELECT cert_not_after FROM orders"), ["-1", "-1"])
      assert.deepStrictEqual(said("notify_expiry_backfilled"), [], "none was")
      assert.lengthOf(said("db_row_unreadable"), 2)
      yield* days(7)
      yield* breakWrites(backend.dialect, { operation: "UPDATE", table: "orders" })
      yield* sql(backend.dialect === "sqlite" ? "DROP TRIGGER broken" : "DROP FUNCTION broken CASCADE")
      yield* setOrder(unread, "cert_not_after = NULL")
      yield* breakWrites(backend.dialect, { operation: "UPDATE", table: "orders" })
      yield* works(config)
      yield* mend(backend.dialect)
      assert.include(String(said("notify_expiry_backfill_failed")[0]?.["error"]), "planted")
      assert.lengthOf(said("notify_expiry_digest_skipped"), 2, "and goes on")
    }))

  test("stays small for very many certificates with very many names, and counts all certificates", () =>
    Effect.gen(function*() {
      const large = withExpiry("lead_days = 14\nmax_entries = 1000")
      const caller = yield* here
      const names = Array.from({ length: 100 }, (_, index) => `${"long-".repeat(11)}${index}.${"a".repeat(60)}.example`)
      yield* ending(caller, 3, ...names)
      const numbers = backend.dialect === "sqlite"
        ? "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) SELECT i FROM n) AS n"
        : "generate_series(1, 9999) AS n(i)"
      const id = backend.dialect === "sqlite" ? "randomblob(16)" : "gen_random_uuid()"
      const copied = "profile, account_id, status, identifiers, certificate, cert_serial, cert_not_after, created_at"
      yield* sql(`INSERT INTO orders (id, ${copied}) SELECT ${id}, ${copied} FROM orders CROSS JOIN ${numbers}`)
      yield* works(large)
      const [{ fields } = assert.fail("nothing is told")] = yield* digests
      assert.strictEqual(fields["total"], 10_000)
      const listed = (fields["certificates"] as ReadonlyArray<unknown>).length
      assert.isAbove(listed, 10)
      assert.isBelow(JSON.stringify(fields).length, 270_000)
    }))

  test("is counted in the metrics as queued or skipped", () =>
    Effect.gen(function*() {
      yield* works(config)
      yield* days(7)
      yield* ending(yield* here, 10, "a.example")
      yield* works(config)
      const text = yield* Effect.flatMap(Metrics, ({ render }) => render(new Map()))
      const line = (outcome: string, value: number) =>
        `acme_svc_notify_expiry_digests_total{role="worker",profile="default",outcome="${outcome}"} ${value}`
      assert.include(text, line("queued", 1))
      assert.include(text, line("skipped", 1))
    }).pipe(Effect.provide(Registry.layer("worker", series))))

  test("has only one active job for each profile", () =>
    Effect.gen(function*() {
      const both = configOf(`[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/secret"
[notify.expiry]
lead_days = 14
`)
      yield* works(both)
      yield* works(both, { owner: "host:2:b" })
      for (const profile of ["default", "other"]) {
        assert.isDefined(yield* jobs.findLive("notify_expiry_digest", profile))
      }
      assert.strictEqual(yield* count(`SELECT count(*) ${ofKind("notify_expiry_digest")}`), 2)
      assert.notInclude(eventsOf(records), "notify_expiry_digest_failed")
    }))
})
