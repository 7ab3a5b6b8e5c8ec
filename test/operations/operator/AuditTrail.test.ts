import { Effect, Result } from "effect"
import { assert, describe } from "vitest"
import type { AuditRow } from "../../../src/domain/Audit.ts"
import { auditObject } from "../../../src/operations/AuditRowObject.ts"
import type { Operator } from "../../../src/operations/Operator.ts"
import * as auditTrail from "../../../src/operations/operator/AuditTrail.ts"
import * as nonceRecords from "../../../src/operations/operator/NonceRecords.ts"
import { trendObject } from "../../../src/operations/operator/objects/TrendObject.ts"
import { makeTrend, trendRanges } from "../../../src/operations/operator/Trends.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import * as nonces from "../../../src/store/NonceRows.ts"
import { perform } from "../../../src/surfaces/operator/Act.ts"
import { Acting, Configured } from "../../../src/surfaces/operator/Acting.ts"
import { exportAudit, listAudit } from "../../../src/surfaces/operator/acts/AuditActs.ts"
import { looked } from "../../../src/surfaces/panel/PanelActs.ts"
import { databases } from "../../support/Databases.ts"
import { column, configOf, count, sql } from "../../support/Graph.ts"
import { withServerClock } from "../../support/ServerClock.ts"
import { useWorld } from "../../support/UseWorld.ts"

const now = 1_800_000_000
const operator = { kind: "cli", id: "tester" } as const
const [order, account] = ["01234567-89ab-7def-8123-456789abcdef", "11234567-89ab-7def-8123-456789abcdef"]
const page = { limit: 50, offset: 0 }
const every = {
  profile: undefined,
  accountId: undefined,
  orderId: undefined,
  certSerial: undefined,
  requestId: undefined,
  event: undefined,
  outcome: undefined,
  actorKind: undefined,
  since: undefined,
  until: undefined
}
const trendOf = (...of: Parameters<typeof makeTrend>) => Effect.flatten(makeTrend(...of))

const issued: AuditRow<"certificate_issued"> = {
  event: "certificate_issued",
  actorKind: "acme",
  actorId: account,
  profile: "default",
  accountId: account,
  orderId: order,
  certSerial: "0badcafe",
  identifiers: ["a.example"],
  clientIp: "192.0.2.1",
  requestId: "request-1",
  detail: { key_type: "ecdsa", not_after: "2027-01-01T00:00:00Z" }
}
const refused: AuditRow<"certificate_issue_failed"> = {
  event: "certificate_issue_failed",
  actorKind: "system",
  profile: "other",
  reason: "serverInternal",
  detail: { cause: "attempts_exhausted" }
}
const created: AuditRow<"eab_created"> = { event: "eab_created", actorKind: "cli", detail: { kid: "x" } }

describe.each(databases)("the audit trail as operators see it on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt: now })

  /** Writes three rows, and returns their ids in the order of writing. */
  const rows = Effect.gen(function*() {
    for (const row of [issued, refused, created]) yield* audit.insert(row)
    const ids = (yield* column("SELECT id FROM audit_log ORDER BY id")).map(Number)
    return ids
  })

  test("can be filtered by each filter and by several together", () =>
    Effect.gen(function*() {
      const [one, two, three] = yield* rows
      const asked = (given: { readonly [filter: string]: string }) =>
        Effect.provideService(looked(listAudit, { parameters: {}, query: new URLSearchParams(given) }), Configured, {
          resolved: { config: configOf(), sources: new Map() },
          version: "0.1.0",
          mostRows: 50
        })
      const found = (given: { readonly [filter: string]: string }) =>
        Effect.map(
          asked(given),
          ({ items, total, truncated }) => {
            assert.deepStrictEqual([total, truncated], [items.length, undefined])
            return items.map(({ id }) => id)
          }
        )
      assert.deepStrictEqual(yield* found({}), [three, two, one])
      assert.deepStrictEqual(yield* found({ profile: " ", event: "" }), [three, two, one], "a blank one is left out")
      assert.deepStrictEqual(yield* found({ profile: "default" }), [one])
      assert.deepStrictEqual(yield* found({ accountId: account }), [one])
      assert.deepStrictEqual(yield* found({ orderId: order }), [one])
      assert.deepStrictEqual(yield* found({ certSerial: "00:0B:AD ca:fe" }), [one])
      assert.deepStrictEqual(yield* found({ event: "eab_created" }), [three])
      const tag = (given: { readonly [filter: string]: string }) =>
        Effect.map(Effect.flip(asked(given)), ({ _tag }) => _tag)
      assert.strictEqual(yield* tag({ event: "moon_landed" }), "UnknownWord")
      assert.strictEqual(yield* tag({ since: "2027-01-15", until: "2027-01-15" }), "BadRequest")
      for (const filter of ["accountId", "orderId", "certSerial", "since", "until"]) {
        assert.strictEqual(yield* tag({ [filter]: "moon" }), "BadRequest", filter)
      }
      assert.strictEqual(yield* tag({ requestId: "x".repeat(129) }), "BadRequest")
      assert.deepStrictEqual(yield* found({ outcome: "failure" }), [two])
      assert.deepStrictEqual(yield* found({ outcome: "success" }), [three, one])
      assert.deepStrictEqual(yield* found({ actorKind: "system" }), [two])
      assert.deepStrictEqual(yield* found({ requestId: "request-1" }), [one])
      assert.deepStrictEqual(yield* found({ requestId: "request-1", outcome: "failure" }), [])
      assert.deepStrictEqual(yield* found({ requestId: "request-1", since: "2027-01-15", profile: "default" }), [one])
      assert.deepStrictEqual(yield* found({ since: "2027-01-15T08:00:00Z" }), [three, two, one])
      assert.deepStrictEqual(yield* found({ until: "2027-01-15T08:00:00Z" }), [])
      assert.deepStrictEqual(yield* found({ since: "2027-01-15", until: "2027-01-16", outcome: "failure" }), [two])
      const second = yield* auditTrail.list({}, { limit: 1, offset: 1 })
      assert.deepStrictEqual([second.items.map(({ id }) => id), second.total], [[two], 3])
      yield* sql(
        "INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (9, 'moon_landed', 'success', 'cli')"
      )
      assert.lengthOf(yield* found({ event: "moon_landed" }), 1, "which a newer version wrote")
    }))

  test("is exported completely on the command line, but only up to a limit elsewhere", () =>
    Effect.gen(function*() {
      const isSqlite = backend.dialect === "sqlite"
      const numbers = isSqlite
        ? "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100001) "
        : ""
      yield* sql(
        `INSERT INTO audit_log (created_at, event, outcome, actor_kind) ${numbers}SELECT i, 'eab_created', 'success', 'cli'
         FROM ${isSqlite ? "n" : "generate_series(1, 100001) AS n(i)"}`
      )
      const exported = (by: Operator) =>
        Effect.map(
          Effect.result(
            Effect.provideService(perform(exportAudit, { ...every, format: "csv" }), Acting, {
              operator: by,
              role: "admin"
            })
          ),
          Result.match({ onSuccess: ({ list }) => list, onFailure: ({ _tag }) => _tag })
        )
      assert.strictEqual(yield* exported(operator), "audit")
      assert.strictEqual(yield* exported({ kind: "admin", id: "root", surface: "api" }), "ExportTooLarge")
    }))

  test("shows the members that a row has, and no others", () =>
    Effect.gen(function*() {
      const [one = 0, two = 0] = yield* rows
      assert.deepStrictEqual(auditObject(yield* auditTrail.find(String(one))), {
        id: one,
        createdAt: "2027-01-15T08:00:00Z",
        event: "certificate_issued",
        outcome: "success",
        actorKind: "acme",
        actorId: account,
        profile: "default",
        accountId: account,
        orderId: order,
        certSerial: "0badcafe",
        identifiers: ["a.example"],
        clientIp: "192.0.2.1",
        requestId: "request-1",
        detail: { key_type: "ecdsa", not_after: "2027-01-01T00:00:00Z" }
      })
      assert.deepStrictEqual(auditObject(yield* auditTrail.find(String(two))), {
        id: two,
        createdAt: "2027-01-15T08:00:00Z",
        event: "certificate_issue_failed",
        outcome: "failure",
        actorKind: "system",
        profile: "other",
        identifiers: [],
        reason: "serverInternal",
        detail: { cause: "attempts_exhausted" }
      })
      for (const id of ["0", "99999999", "x", "", "1.5", "-1"]) {
        assert.deepInclude(yield* Effect.flip(auditTrail.find(id)), { _tag: "NoSuch", noun: "audit row", id })
      }
    }))

  test("finds the newest rows of a request, and says if more rows match than are read", () =>
    Effect.gen(function*() {
      const [one] = yield* rows
      // Each second has ten rows, so that a batch can end within a second.
      yield* sql(
        `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, request_id)
         ${
          backend.dialect === "sqlite"
            ? "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
            : ""
        }SELECT ${now} + i / 10, 'eab_created', 'success', 'cli', CASE WHEN i % 1000 = 500 THEN 'rare' END, 'proxy'
         FROM ${backend.dialect === "sqlite" ? "n" : "generate_series(0, 10000) AS n(i)"}`
      )
      const newest = (yield* column("SELECT id FROM audit_log ORDER BY created_at DESC, id DESC LIMIT 2")).map(Number)
      const found = yield* auditTrail.list({ requestId: "proxy" }, { limit: 2, offset: 0 })
      assert.deepStrictEqual(found.items.map(({ id }) => id), newest)
      assert.deepStrictEqual([found.total, found.truncated], [10_000, true])
      const rare = yield* auditTrail.list({ requestId: "proxy", profile: "rare" }, page)
      assert.deepStrictEqual(rare.items.map(({ createdAt }) => (createdAt - now) * 10 % 1000), Array(10).fill(500))
      const old = yield* auditTrail.list({ requestId: "request-1" }, page)
      assert.deepStrictEqual([old.items.map(({ id }) => id), old.total, old.truncated], [[one], 1, false])
    }))

  test("loses rows only by their age, and gets one row with the number of deleted rows", () =>
    Effect.gen(function*() {
      yield* rows
      yield* audit.insert(created)
      const old = (days: number) => now - days * 86_400
      // Rows of the trail cannot be updated, so rows with other times are inserted.
      for (const at of [old(11), old(10) - 1, old(10), old(9)]) {
        yield* sql(
          `INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (${at}, 'eab_created', 'success', 'cli')`
        )
      }
      assert.deepStrictEqual(yield* withServerClock(auditTrail.preview(10)), { rows: 2, waitsFor: undefined })
      assert.deepInclude(yield* withServerClock(auditTrail.cleanup(operator, 10)), { removed: 2 })
      assert.deepStrictEqual(yield* column("SELECT created_at FROM audit_log ORDER BY created_at LIMIT 1"), [
        String(old(10))
      ])
      const [last] = (yield* auditTrail.list({ event: "audit_pruned" }, page)).items
      assert.deepInclude(last, {
        actorKind: "cli",
        actorId: "tester",
        detail: { cutoff: "2027-01-05T08:00:00Z", removed: 2 }
      })
      assert.deepInclude(yield* withServerClock(auditTrail.cleanup(operator, 10)), { removed: 0 })
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'audit_pruned'"), 1)
    }))

  test("has trends for one profile and for all profiles, in buckets that begin at full hours and days", () =>
    Effect.gen(function*() {
      const at = (seconds: number, event: string, profile: string) =>
        sql(
          `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile)
           VALUES (${now - seconds}, '${event}', 'success', 'acme', '${profile}')`
        )
      yield* at(0, "certificate_issued", "default")
      yield* at(1, "certificate_issued", "other")
      yield* at(3600, "certificate_issue_failed", "default")
      yield* at(3601, "certificate_revoke_failed", "default")
      yield* at(86_400, "certificate_revoked", "default")
      yield* at(20, "eab_created", "default")
      const day = trendObject(yield* trendOf(undefined, "24h"))
      assert.deepStrictEqual([day.bucketSeconds, day.buckets.length], [3600, 24])
      assert.deepStrictEqual(day.buckets[0], { start: "2027-01-14T09:00:00Z", issued: 0, refused: 0, revoked: 0 })
      assert.deepStrictEqual(day.buckets.slice(-3), [
        { start: "2027-01-15T06:00:00Z", issued: 0, refused: 1, revoked: 0 },
        { start: "2027-01-15T07:00:00Z", issued: 1, refused: 1, revoked: 0 },
        { start: "2027-01-15T08:00:00Z", issued: 1, refused: 0, revoked: 0 }
      ])
      const month = trendObject(yield* trendOf("default", "30d"))
      assert.deepStrictEqual(month.buckets.slice(-2), [
        { start: "2027-01-14T00:00:00Z", issued: 0, refused: 0, revoked: 1 },
        { start: "2027-01-15T00:00:00Z", issued: 1, refused: 2, revoked: 0 }
      ])
      assert.strictEqual((yield* trendOf("default", "7d")).buckets.length, 28)
      assert.isTrue((yield* trendOf("nobody", "7d")).buckets.every(({ issued }) => issued === 0))
      assert.deepStrictEqual(trendRanges, ["24h", "7d", "30d"])
    }))
})

describe.each(databases)("nonces as operators see them on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt: now })
  const config = configOf("[nonce]\nttl_seconds = 60")

  test("are deleted if they are too old, with an audit row that has their number", () =>
    Effect.gen(function*() {
      yield* nonces.insert(["a", "b"], (now - 61) * 1000)
      yield* nonces.insert(["c"], (now - 60) * 1000)
      yield* nonces.insert(["d"], now * 1000)
      assert.deepStrictEqual(yield* nonceRecords.count(config), { count: 4, ttlSeconds: 60 })
      assert.deepStrictEqual(yield* withServerClock(nonceRecords.cleanup(config, operator)), { removed: 2 })
      assert.deepStrictEqual(yield* withServerClock(nonceRecords.cleanup(config, operator)), { removed: 0 })
      assert.deepStrictEqual(yield* withServerClock(nonceRecords.cleanup(config, operator, 0)), { removed: 1 })
      assert.deepStrictEqual(yield* column("SELECT value FROM nonces"), ["d"])
      assert.deepStrictEqual(yield* column("SELECT detail FROM audit_log ORDER BY id"), [
        `{"removed":2}`,
        `{"removed":1}`
      ])
    }))
})
