import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import * as samples from "../../../src/operations/operator/Samples.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, handmadeChain, idLiteral, orderOf, profileOf, sql, world } from "../../support/Graph.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"
import { useStore } from "../../support/UseTests.ts"

const config = configOf()
const known = {
  isDegraded: () => false,
  receivers: [],
  notifies: true,
  kinds: ["signer_issue", "nonce_sweep"],
  profiles: ["default", "other"],
  issuers: new Set<string>()
} as const

describe.each(databases)("samples of the database on $name", (backend) => {
  const { database, records, test } = useStore(backend, { startsAt: madeAt })

  const job = (key: string, status: string, runAt: number) => {
    const id = `01234567-89ab-7def-8123-${key.padStart(12, "0")}`
    const literal = idLiteral(backend.dialect, id)
    return sql(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
       VALUES (${literal}, 'signer_issue', '${key}', '{}', '${status}', ${runAt}, 0, 5, 1, 1)`
    )
  }

  /** A driver that gives this answer to the statements that match the pattern. */
  const instead = (pattern: RegExp, answer: ReturnType<Driver["single"]>): Driver => {
    const driver = database.driver()
    const { aside } = driver
    return {
      ...driver,
      single: (statement, params) => pattern.test(statement.text) ? answer : driver.single(statement, params),
      aside: aside === undefined ? undefined : (patience, body) =>
        aside(patience, (connection) =>
          body({
            execute: (text, params) => pattern.test(text) ? answer : connection.execute(text, params)
          }))
    }
  }

  const valuesOf = (found: samples.Samples, name: Parameters<samples.Samples["get"]>[0]) =>
    Object.fromEntries(
      (found.get(name) ?? []).map(({ labels, value }) => [Object.values(labels).join(" "), value])
    )

  test("count the queue by kind and status, with 0 for a kind that has no rows", () =>
    Effect.gen(function*() {
      yield* job("1", "ready", madeAt - 50)
      yield* job("2", "ready", madeAt + 50)
      yield* job("3", "failed", madeAt - 500)
      yield* job("4", "done", madeAt - 500)
      const found = yield* yield* samples.make(known)
      assert.deepStrictEqual(valuesOf(found, "acme_svc_jobs"), {
        "signer_issue ready": 2,
        "signer_issue running": 0,
        "signer_issue failed": 1,
        "nonce_sweep ready": 0,
        "nonce_sweep running": 0,
        "nonce_sweep failed": 0
      })
      assert.deepStrictEqual(valuesOf(found, "acme_svc_job_oldest_ready_seconds"), { signer_issue: 50, nonce_sweep: 0 })
    }))

  test("count the certificates that expire soon and were not replaced, by cumulative windows", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      for (const [days, name] of [[0.5, "a"], [5, "b"], [6, "c"], [20, "d"], [60, "c"]] as const) {
        yield* orderOf(caller, `${name}.example`)
        yield* sql(
          `UPDATE orders SET status = 'valid', certificate = '${handmadeChain}', cert_serial = '0a',
             cert_not_after = ${madeAt + days * daySeconds} WHERE status = 'pending'`
        )
      }
      const found = yield* yield* samples.make(known)
      assert.deepStrictEqual(valuesOf(found, "acme_svc_certificates_expiring"), {
        "default 1d": 1,
        "default 7d": 2,
        "default 30d": 3,
        "other 1d": 0,
        "other 7d": 0,
        "other 30d": 0
      })
    }).pipe(Effect.provide(world())))

  test("contain the number of retried jobs and the age of the longest running attempt", () =>
    Effect.gen(function*() {
      for (const [key, status, at] of [["1", "ready", 5], ["2", "ready", 9], ["3", "running", 1]] as const) {
        yield* job(key, status, madeAt + at)
      }
      yield* sql("UPDATE jobs SET attempts = 2 WHERE dedup_key = '1'")
      yield* sql(`UPDATE jobs SET attempts = 1, updated_at = ${madeAt - 1000} WHERE dedup_key = '3'`)
      const found = yield* yield* samples.make(known)
      assert.deepStrictEqual(valuesOf(found, "acme_svc_jobs_retried"), { signer_issue: 1, nonce_sweep: 0 })
      assert.deepStrictEqual(valuesOf(found, "acme_svc_job_oldest_running_seconds"), {
        signer_issue: 1000,
        nonce_sweep: 0
      })
    }))

  test("count the revocations of the last hour by reason, and contain the number of the newest row of the trail", () =>
    Effect.gen(function*() {
      const empty = yield* yield* samples.make(known)
      assert.deepStrictEqual(valuesOf(empty, "acme_svc_audit_last_row"), {})
      const revoked = (profile: string | undefined, reason: string | undefined, ago: number) =>
        sql(
          `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, reason)
           VALUES (${madeAt - ago}, 'certificate_revoked', 'success', 'cli',
             ${profile === undefined ? "NULL" : `'${profile}'`}, ${reason === undefined ? "NULL" : `'${reason}'`})`
        )
      yield* revoked("default", "1", 10)
      yield* revoked("default", "1", 3599)
      yield* revoked("default", "1", 3601)
      yield* revoked("default", undefined, 20)
      yield* revoked(undefined, "4", 30)
      const found = yield* yield* samples.make(known)
      assert.deepStrictEqual(valuesOf(found, "acme_svc_certificates_revoked_last_hour"), {
        "default keyCompromise": 2,
        "default cACompromise": 0,
        "other keyCompromise": 0,
        "other cACompromise": 0,
        "default unspecified": 1,
        "none superseded": 1
      })
      const [last] = yield* sql("SELECT max(id) AS id FROM audit_log")
      assert.strictEqual(valuesOf(found, "acme_svc_audit_last_row")[""], Number(last?.["id"]))
    }))

  test("are cached for ten seconds", () =>
    Effect.gen(function*() {
      const sample = yield* samples.make(known)
      const ready = Effect.map(sample, (found) => valuesOf(found, "acme_svc_jobs")["signer_issue ready"])
      assert.strictEqual(yield* ready, 0)
      yield* job("1", "ready", madeAt)
      yield* TestClock.adjust("9 seconds")
      assert.strictEqual(yield* ready, 0)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* ready, 1)
    }))

  test("are omitted one by one if they fail or take two seconds, and the other samples remain", () =>
    Effect.gen(function*() {
      const failing = instead(/min\(run_at\)/, new SqlError({ cause: undefined, message: "planted" }))
      const found = yield* Effect.provideService(yield* samples.make(known), Database, failing)
      assert.isFalse(found.has("acme_svc_job_oldest_ready_seconds"))
      assert.isTrue(found.has("acme_svc_jobs") && found.has("acme_svc_crl_next_update_seconds"))
      const told = records.filter(({ event }) => event === "metrics_sample_failed").map(({ fields }) =>
        fields["series"]
      )
      assert.deepStrictEqual(told, ["acme_svc_job_oldest_ready_seconds"])

      const over = yield* Deferred.make<ReadonlyArray<never>>()
      const waiting = instead(/FROM crls/, Deferred.await(over))
      const slow = Effect.provideService(yield* samples.make(known), Database, waiting)
      const fiber = yield* Effect.forkChild(slow)
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
      assert.isFalse((yield* Fiber.join(fiber)).has("acme_svc_crl_next_update_seconds"))
      yield* Deferred.succeed(over, [])
    }))

  test("are abandoned early enough for the rest of the scrape if the database does not answer", () =>
    Effect.gen(function*() {
      const over = yield* Deferred.make<ReadonlyArray<never>>()
      const waiting = Effect.provideService(yield* samples.make(known), Database, instead(/./, Deferred.await(over)))
      const fiber = yield* Effect.forkChild(waiting)
      let seconds = 0
      for (; fiber.pollUnsafe() === undefined; seconds++) yield* TestClock.adjust("1 second")
      assert.isAtMost(seconds, 6)
      assert.strictEqual((yield* Fiber.join(fiber)).size, 0)
      yield* Deferred.succeed(over, [])
    }))
})
