import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { AuthorizationId } from "../../../src/domain/Id.ts"
import { enqueueJob } from "../../../src/domain/words/JobKind.ts"
import * as jobs from "../../../src/engine/queue/Job.ts"
import { periodicKey } from "../../../src/engine/queue/Job.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { rfc3339 } from "../../../src/engine/Time.ts"
import * as authorizations from "../../../src/operations/acme/Authorizations.ts"
import { sweepSessions } from "../../../src/operations/work/SessionSweep.ts"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import type { Config } from "../../../src/settings/AppConfig.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import * as nonces from "../../../src/store/NonceRows.ts"
import * as loginAttempts from "../../../src/store/operators/LoginAttempts.ts"
import * as http01Tokens from "../../../src/store/upstream/Http01Tokens.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import { callerAt, column, configOf, count, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"
import { withServerClock } from "../../support/ServerClock.ts"
import { useWorld } from "../../support/UseWorld.ts"

describe.each(databases)("periodic work on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: madeAt })

  const nonceRow = audit.record({
    event: "crl_number_raised",
    actorKind: "cli",
    actorId: undefined,
    detail: { issuer: "a", before: 1, after: 2 }
  })

  test("keeps rows of the audit trail for the configured days, and records how many rows each batch has deleted", () =>
    Effect.gen(function*() {
      yield* Effect.replicateEffect(nonceRow, 1001, { discard: true })
      yield* TestClock.adjust("10 days")
      yield* Effect.replicateEffect(nonceRow, 3, { discard: true })
      yield* sweeps.sweepAudit(10)
      assert.strictEqual((yield* column("SELECT id FROM audit_log")).length, 1004, "the very second is kept")
      yield* TestClock.adjust("1 second")
      yield* sweeps.sweepAudit(10)
      const rows = yield* sql("SELECT event, actor_kind, detail FROM audit_log ORDER BY id")
      assert.strictEqual(rows.length, 5)
      for (const [number, removed] of [[3, 1000], [4, 1]] as const) {
        const { actor_kind, detail, event } = rows[number] ?? {}
        const read: unknown = typeof detail === "string" ? JSON.parse(detail) : detail
        assert.deepStrictEqual([event, actor_kind, read], ["audit_pruned", "system", {
          cutoff: rfc3339(madeAt + 1),
          removed
        }])
      }
      yield* sweeps.sweepAudit(10)
      assert.strictEqual((yield* column("SELECT id FROM audit_log")).length, 5, "nothing removed, nothing said")
    }))

  test("deletes no new row if a clock is days ahead, whether in this process or at the database server", () =>
    Effect.gen(function*() {
      const config = configOf("[order]\nretention_days = 1\n")
      yield* nonces.insert(["young"], madeAt * 1000)
      yield* http01Tokens.put({ token: "t", keyAuthorization: "t.k", now: madeAt, expiresAt: madeAt + 600 })
      yield* loginAttempts.take({ key: "k", most: 5, windowSeconds: 300, now: madeAt })
      yield* nonceRow
      const caller = yield* callerAt(profileOf(config))
      yield* orderOf(caller, "a.example")
      yield* enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: "d", payload: { issuer: "a" } })
      yield* sql(`UPDATE jobs SET status = 'done', updated_at = ${madeAt}`)
      const tables = ["nonces", "http01_tokens", "login_attempts", "audit_log", "authorizations", "challenges", "jobs"]
      const rows = Effect.gen(function*() {
        const counts = yield* Effect.forEach(tables, (table) => count(`SELECT count(*) FROM ${table}`))
        return [...counts, ...yield* column("SELECT status FROM authorizations")]
      })
      const before = yield* rows
      const day = daySeconds
      const swept = Effect.all([
        sweeps.sweepNonces(300),
        sweeps.sweepHttp01Tokens,
        sweeps.sweepAudit(1),
        sweeps.sweepJobs(1),
        sweeps.sweepOrders(config),
        sweepSessions(config.admin)
      ])
      yield* withServerClock(swept, madeAt + 100 * day)
      assert.deepStrictEqual(yield* rows, before, "the server is ahead")
      yield* TestClock.adjust("100 days")
      yield* withServerClock(swept, madeAt)
      assert.deepStrictEqual(yield* rows, before, "this process is ahead")
      yield* withServerClock(swept)
      assert.deepStrictEqual(yield* column("SELECT value FROM nonces"), [], "both are")
    }))

  test("keeps the authorizations of an order without a certificate as long as the order, even if orders are kept without limit", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(configOf()))
      const [, failed, ready, issued] = yield* Effect.all(
        ["a", "b", "c", "d"].map((name) => orderOf(caller, `${name}1.example`, `${name}2.example`))
      )
      const set = (status: string, order: typeof failed) => {
        const id = order?.id ?? ""
        const literal = idLiteral(backend.dialect, id)
        return sql(`UPDATE orders SET status = '${status}' WHERE id = ${literal}`)
      }
      yield* set("invalid", failed)
      yield* set("ready", ready)
      yield* set("valid", issued)
      const left = Effect.all([
        column("SELECT status FROM orders ORDER BY id"),
        count("SELECT count(*) FROM authorizations"),
        count("SELECT count(*) FROM challenges"),
        count("SELECT count(*) FROM order_identifiers")
      ])
      const every = [["pending", "invalid", "ready", "valid"], 8, 8, 8]
      const { validity_seconds } = profileOf(configOf()).order
      yield* TestClock.adjust(`${validity_seconds + 1} seconds`)
      yield* sweeps.sweepOrders(configOf())
      const states = column(
        "SELECT DISTINCT o.status || ' ' || a.status FROM orders o JOIN authorizations a ON a.order_id = o.id ORDER BY 1"
      )
      assert.deepStrictEqual(yield* states, ["invalid expired", "pending expired", "ready pending", "valid pending"])
      yield* TestClock.adjust("30 days")
      yield* sweeps.sweepOrders(configOf("[order]\nretention_days = 0"))
      assert.deepStrictEqual<unknown>(yield* left, every)
      yield* TestClock.adjust("-2 seconds")
      yield* sweeps.sweepOrders(configOf())
      assert.deepStrictEqual<unknown>(yield* left, every)
      const [kept = AuthorizationId("")] = failed?.authorizationIds ?? []
      assert.strictEqual((yield* authorizations.find(caller, kept)).id, kept)
      yield* TestClock.adjust("2 seconds")
      yield* sweeps.sweepOrders(configOf())
      assert.deepStrictEqual<unknown>(yield* left, [["valid"], 2, 2, 2])
    }))

  test("deletes all orders without a certificate, even if the orders of one second do not fit into one batch", () =>
    Effect.gen(function*() {
      const config = configOf()
      const caller = yield* callerAt(profileOf(config))
      const every = Array.from({ length: 510 }, (_, at) => orderOf(caller, `a${at}.example`))
      yield* Effect.all(every, { concurrency: "unbounded", discard: true })
      yield* sql("UPDATE orders SET status = 'invalid'")
      yield* TestClock.adjust("8 days")
      yield* sweeps.sweepOrders(config)
      assert.strictEqual(yield* count("SELECT count(*) FROM authorizations WHERE status = 'expired'"), 510)
      yield* TestClock.adjust("30 days")
      yield* sweeps.sweepOrders(config)
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
      assert.strictEqual(yield* count("SELECT count(*) FROM authorizations"), 0)
    }))

  test("tries a failed sweep again with a growing delay, but never later than at its normal time", () =>
    Effect.gen(function*() {
      const config = configOf(
        "[audit]\nretention_days = 1\n[jobs]\nretry_base_seconds = 100\nretry_max_seconds = 10000000"
      )
      const runner = yield* Runner.make(
        { ...config.jobs, owner: "host:1:a" },
        (yield* handlers(config)).filter(({ kind }) => kind === "audit_sweep")
      )
      yield* runner.enqueuePeriodic()
      yield* sql("ALTER TABLE audit_log RENAME TO audit_log_away")
      const next = Effect.map(
        sql("SELECT run_at, updated_at, last_error FROM jobs"),
        ([row]) => ({ wait: Number(row?.["run_at"]) - Number(row?.["updated_at"]), error: row?.["last_error"] })
      )
      for (const most of [100, 200, 400]) {
        yield* runner.pass
        yield* runner.idle
        const { error, wait } = yield* next
        assert.isTrue(wait <= most && wait >= most * 0.75, `${wait}`)
        assert.include(String(error), "audit_log")
        yield* TestClock.adjust(`${wait} seconds`)
      }
      for (let round = 0; round < 12; round++) {
        yield* runner.pass
        yield* runner.idle
        yield* TestClock.adjust(`${(yield* next).wait} seconds`)
      }
      assert.strictEqual((yield* next).wait, daySeconds)
      yield* sql("ALTER TABLE audit_log_away RENAME TO audit_log")
      yield* runner.pass
      yield* runner.idle
      assert.deepStrictEqual(yield* next, { wait: daySeconds, error: null })
    }))

  test("ends a sweep that is turned off, and queues it again only when it is turned on", () =>
    Effect.gen(function*() {
      const kinds = ["audit_sweep", "job_retention_sweep"] as const
      for (const kind of kinds) yield* enqueueJob({ kind, dedupKey: periodicKey, payload: {} })
      const unwanted = configOf("[audit]\nretention_days = 0\n[jobs]\nretention_days = 0")
      const runner = yield* Runner.make({ ...unwanted.jobs, owner: "host:1:a" }, yield* handlers(unwanted))
      yield* runner.pass
      yield* runner.idle
      const statuses = column("SELECT status FROM jobs WHERE kind IN ('audit_sweep', 'job_retention_sweep')")
      assert.deepStrictEqual(yield* statuses, ["done", "done"])
      yield* runner.enqueuePeriodic()
      assert.deepStrictEqual(yield* statuses, ["done", "done"])
      const wanted = configOf("[audit]\nretention_days = 1")
      runner.retune(wanted.jobs, yield* handlers(wanted))
      yield* runner.enqueuePeriodic()
      assert.deepStrictEqual((yield* statuses).toSorted(), ["done", "done", "ready", "ready"])
      yield* runner.pass
      yield* runner.idle
      const again = yield* jobs.findLive("audit_sweep", periodicKey)
      assert.isDefined(again, "due again tomorrow")
      const due = yield* column("SELECT run_at FROM jobs WHERE kind = 'audit_sweep' AND status = 'ready'")
      assert.deepStrictEqual(due, [String(madeAt + daySeconds)])
      runner.retune(unwanted.jobs, yield* handlers(unwanted))
      yield* runner.enqueuePeriodic()
      yield* runner.pass
      yield* runner.idle
      assert.deepStrictEqual((yield* statuses).filter((status) => status !== "done"), [], "none stays due")
    }))

  const said = (event: string) => records.filter((one) => one.event === event).map(({ fields }) => fields)
  const relaying = `[signer]
backend = "relay"
relay = { directory_url = "https://up.example/dir", challenge_strategy = "http01", account_key_path = "a.key" }
`
  const everything = configOf(`${relaying}[audit]\nretention_days = 10\n[jobs]\nretention_days = 10`)

  /** Runs each due sweep once. */
  const runDue = Effect.fnUntraced(function*(config: Config = everything) {
    const runner = yield* Runner.make({ ...config.jobs, owner: "host:1:a" }, yield* handlers(config))
    yield* runner.enqueuePeriodic()
    yield* runner.pass
    yield* runner.idle
  })

  const old = Effect.gen(function*() {
    yield* nonceRow
    yield* nonces.insert(["spent too late"], madeAt * 1000)
    yield* loginAttempts.take({ key: "192.0.2.1", most: 5, windowSeconds: 300, now: madeAt })
    yield* http01Tokens.put({ token: "t", keyAuthorization: "t.k", now: madeAt, expiresAt: madeAt + 60 })
    const caller = yield* callerAt(profileOf(everything))
    yield* orderOf(caller, "forgotten.example")
    yield* enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: "x", payload: { issuer: "x" } })
    yield* sql(`UPDATE jobs SET status = 'done', updated_at = ${madeAt} WHERE kind = 'local_ca_crl_regenerate'`)
  })

  test("runs a job for each sweep, and each sweep deletes expired rows, reports their number and is due again", () =>
    Effect.gen(function*() {
      yield* old
      yield* TestClock.adjust("60 days")
      yield* runDue()
      assert.deepStrictEqual(said("nonce_reaper_swept"), [{ rows_removed: 1 }])
      assert.deepStrictEqual(said("admin_session_reaper_swept"), [{ rows_removed: 1 }])
      assert.deepStrictEqual(said("http_01_token_reaper_swept"), [{ rows_removed: 1 }])
      assert.deepStrictEqual(said("order_reaper_swept"), [
        { profile: "default", rows_removed: 1 },
        { profile: "other", rows_removed: 0 }
      ])
      assert.deepStrictEqual(said("audit_reaper_swept"), [{ rows_removed: 1 }])
      assert.deepStrictEqual(said("job_reaper_swept"), [{ rows_removed: 1 }])
      for (const table of ["orders", "nonces", "http01_tokens"]) {
        assert.strictEqual(yield* count(`SELECT count(*) FROM ${table}`), 0, table)
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status <> 'ready'"), 0)
      assert.deepStrictEqual(
        records.filter(({ event }) => event.endsWith("_failed") || event === "job_run_retried"),
        []
      )
    }))

  test("chains new rows of the trail each minute, and those of a long queue at once", () =>
    Effect.gen(function*() {
      const config = configOf()
      const runner = yield* Runner.make(
        { ...config.jobs, owner: "host:1:a" },
        (yield* handlers(config)).filter(({ kind }) => kind === "audit_chain")
      )
      yield* runner.enqueuePeriodic()
      const pass = Effect.gen(function*() {
        yield* runner.pass
        yield* runner.idle
        return Number((yield* column("SELECT run_at - updated_at FROM jobs"))[0])
      })
      yield* nonceRow
      assert.strictEqual(yield* pass, 60)
      assert.strictEqual(yield* count("SELECT last_id FROM audit_chain"), yield* count("SELECT max(id) FROM audit_log"))
      yield* nonceRow
      yield* TestClock.adjust("59 seconds")
      yield* runner.pass
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_chain"), 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* pass, 60)
      assert.strictEqual(yield* count("SELECT sum(row_count) FROM audit_chain"), 1)
      const copies = Array.from({ length: 500 }, () => "(1, 'eab_created', 'success', 'cli')").join(", ")
      for (let batch = 0; batch < 101; batch++) {
        yield* sql(`INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES ${copies}`)
      }
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* pass, 0)
      assert.strictEqual(yield* pass, 60)
      assert.strictEqual(yield* count("SELECT sum(row_count) FROM audit_chain"), 50_501)
    }))

  test("reports a chain that cannot be continued, and tries again", () =>
    Effect.gen(function*() {
      yield* sql("ALTER TABLE audit_chain RENAME TO audit_chain_away")
      yield* runDue()
      yield* sql("ALTER TABLE audit_chain_away RENAME TO audit_chain")
      const [failed] = said("audit_chain_failed")
      assert.include(String(failed?.["error"]), "audit_chain")
      assert.isAbove(yield* count("SELECT count(*) FROM jobs WHERE kind = 'audit_chain' AND status = 'ready'"), 0)
    }))

  test("chains rows even if the key of the head cannot be used, and reports that once an hour", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "chain.key")
      writeFileSync(path, "nothing", { mode: 0o600 })
      const config = configOf(`[audit]\nchain_key_path = "${path}"\n`)
      const runner = yield* Runner.make({ ...config.jobs, owner: "host:1:a" }, yield* handlers(config))
      yield* runner.enqueuePeriodic()
      for (let minute = 0; minute < 62; minute++) {
        yield* nonceRow
        yield* runner.pass
        yield* runner.idle
        yield* TestClock.adjust("1 minute")
      }
      const told = said("audit_head_unsigned")
      assert.strictEqual(told.length, 2)
      assert.deepStrictEqual(told[0], {
        error: `audit.chain_key_path: ${path} holds no private key in unencrypted PEM.`
      })
      assert.strictEqual(yield* count("SELECT sum(row_count) FROM audit_chain"), 61)
    }))

  test("reports every profile in the sweep of orders, even a profile that keeps its orders without limit", () =>
    Effect.gen(function*() {
      yield* old
      yield* TestClock.adjust("60 days")
      yield* runDue(configOf("[order]\nretention_days = 0"))
      assert.deepStrictEqual(said("order_reaper_swept"), [
        { profile: "default", rows_removed: 0 },
        { profile: "other", rows_removed: 0 }
      ])
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 1)
    }))

  for (
    const [event, table] of [
      ["nonce_reaper_failed", "nonces"],
      ["admin_session_reaper_failed", "login_attempts"],
      ["http_01_token_reaper_failed", "http01_tokens"],
      ["order_reaper_failed", "orders"],
      ["audit_reaper_failed", "audit_log"],
      ["job_reaper_failed", "jobs"]
    ] as const
  ) {
    test(`reports ${event} if a sweep cannot delete from ${table}, and continues with the other sweeps`, () =>
      Effect.gen(function*() {
        yield* old
        yield* TestClock.adjust("60 days")
        yield* breakWrites(backend.dialect, { table, operation: "DELETE" })
        yield* Effect.ensuring(runDue(), mend(backend.dialect))
        const [failed, ...more] = records.filter((one) => one.event.endsWith("_reaper_failed"))
        assert.deepStrictEqual([failed?.event, failed?.level, more], [event, "error", []])
        assert.match(String(failed?.fields["error"]), /planted/)
        assert.strictEqual(
          records.filter((one) => one.event.endsWith("_reaper_swept")).length,
          table === "orders" ? 5 : 6
        )
        assert.deepStrictEqual(yield* column("SELECT DISTINCT status FROM jobs WHERE kind LIKE '%sweep'"), ["ready"])
      }))
  }
})
