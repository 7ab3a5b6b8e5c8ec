import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { namedLeafOf } from "../../../../src/crypto/x509/CertId.ts"
import { pollingSeconds, silentSeconds } from "../../../../src/domain/Campaign.ts"
import type { CampaignFilter } from "../../../../src/domain/Campaign.ts"
import { CampaignId } from "../../../../src/domain/Id.ts"
import { Database } from "../../../../src/engine/sql/Database.ts"
import * as orders from "../../../../src/operations/acme/Orders.ts"
import * as records from "../../../../src/operations/operator/CampaignRecords.ts"
import { renewalInfo } from "../../../../src/operations/Renewal.ts"
import { fill } from "../../../../src/operations/work/campaigns/CampaignFilling.ts"
import { revokeRest } from "../../../../src/operations/work/campaigns/CampaignRevocation.ts"
import { makeRound } from "../../../../src/operations/work/campaigns/CampaignRound.ts"
import { Notifier } from "../../../../src/services/notify/Notifier.ts"
import { RenewalAsks } from "../../../../src/services/signing/RenewalAsks.ts"
import { databases } from "../../../support/Databases.ts"
import { breakWrites, killedAfter, mend } from "../../../support/Faults.ts"
import { callerAt, column, configOf, count, eventsOf, fieldsOf, profileOf, sql } from "../../../support/Graph.ts"
import type { IssuedHere } from "../../../support/Issued.ts"
import { issueTo, useOwnCa, work } from "../../../support/Issued.ts"
import { daySeconds, madeAt } from "../../../support/LocalCa.ts"

/* Campaigns, which ask clients to replace certificates (docs/contribute/decisions/campaigns.md). */

const config = configOf()
const operator = { id: "olga", kind: "admin", surface: "api" } as const
const hourSeconds = 3600

const nothingMore = {
  reason: "a bug",
  explanationUrl: "https://status.example/bug",
  pace: undefined,
  revokeAt: undefined,
  revokeReason: undefined
}

const certIdOf = ({ chain }: IssuedHere): string => namedLeafOf(chain)?.certId ?? ""

describe.each(databases)("a campaign on $name", (backend) => {
  const { records: logged, test } = useOwnCa(backend)

  const seconds = Effect.clockWith((clock) => Effect.map(clock.currentTimeMillis, (now) => Math.floor(now / 1000)))
  const start = (filter: CampaignFilter, more: Partial<Omit<records.NewCampaign, "filter">> = {}) =>
    records.start(config, operator, { filter, ...nothingMore, ...more })
  const started = Effect.fnUntraced(function*(filter: CampaignFilter, more = {}) {
    const { id } = yield* start(filter, more)
    yield* work("campaign_fill")
    return id
  })
  const until = (event: (typeof logged)[number]["event"]) =>
    Effect.repeat(Effect.yieldNow, { until: () => eventsOf(logged).includes(event) })
  const round = (remindsAt: (profile: string) => boolean = () => false) => makeRound(remindsAt)
  const info = (issued: IssuedHere) => renewalInfo("default", certIdOf(issued))
  const all: CampaignFilter = { profile: "default" }

  test("gives every matched certificate a window within one polling interval, the same at each request", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const some = yield* Effect.forEach(["a", "b", "c", "d", "e", "f"], (name) => issueTo(caller, [`${name}.example`]))
      yield* started(all)
      const begun = yield* seconds
      const windows = yield* Effect.forEach(some, info)
      for (const { end, explanationUrl, start } of windows) {
        assert.isAtLeast(start, begun)
        assert.isAtMost(end, begun + pollingSeconds)
        assert.strictEqual(end - start, hourSeconds)
        assert.strictEqual(explanationUrl, "https://status.example/bug")
      }
      assert.strictEqual(new Set(windows.map(({ start }) => start)).size, some.length)
      assert.deepStrictEqual(fieldsOf(logged, "campaign_filled").map(({ total }) => total), [some.length])
      yield* TestClock.adjust("2 hours")
      assert.deepStrictEqual(yield* Effect.forEach(some, info), windows)
    }))

  test("spreads the windows over as many hours as its pace needs", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const some = yield* Effect.forEach(["a", "b", "c", "d", "e"], (name) => issueTo(caller, [`${name}.example`]))
      const id = yield* started(all, { pace: 1 })
      const begun = yield* seconds
      const { spanSeconds } = yield* records.show(id)
      assert.strictEqual(spanSeconds, 5 * hourSeconds)
      for (const { end, start } of yield* Effect.forEach(some, info)) {
        assert.isAtLeast(start, begun)
        assert.isAtMost(end, begun + 5 * hourSeconds)
      }
    }))

  test("delays no renewal that is due before its window", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const one = yield* issueTo(caller, ["a.example"])
      const before = yield* info(one)
      yield* started(all, { pace: 1 })
      yield* sql(`UPDATE campaigns SET begun_at = ${before.end}`)
      assert.deepStrictEqual(yield* info(one), before)
    }))

  test("does not concern other certificates, and writes nothing when their clients ask", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const matched = yield* issueTo(caller, ["a.one.example"])
      const other = yield* issueTo(caller, ["a.other.example"])
      const before = yield* info(other)
      const id = yield* started({ name: "**.one.example" })
      assert.deepStrictEqual(yield* info(other), before)
      yield* info(matched)
      yield* info(matched)
      const { flush } = yield* RenewalAsks
      yield* flush
      assert.deepInclude(yield* records.show(id), { matched: 1, asked: 1, remaining: 1 })
      const asked = column("SELECT asked_at FROM campaign_certificates")
      const first = yield* asked
      yield* TestClock.adjust("1 hour")
      yield* info(matched)
      yield* flush
      assert.deepStrictEqual(yield* asked, first)
      yield* TestClock.adjust("3 hours")
      yield* info(matched)
      yield* flush
      assert.deepStrictEqual(yield* asked, [String(Number(first[0]) + 4 * hourSeconds)])
      assert.deepInclude(yield* records.show(id), { asked: 1 })
    }))

  test("is left by a certificate that an order replaces, and by one whose names another certificate has", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const named = yield* issueTo(caller, ["a.example", "b.example"])
      const covered = yield* issueTo(caller, ["c.example"])
      const kept = yield* issueTo(caller, ["d.example"])
      const stranger = yield* callerAt(profileOf(config))
      yield* TestClock.adjust("1 day")
      const id = yield* started(all)
      yield* TestClock.adjust("1 hour")
      const { id: order } = yield* orders.create(caller, {
        identifiers: [{ type: "dns", value: "a.example" }],
        notBefore: undefined,
        notAfter: undefined,
        replaces: certIdOf(named)
      })
      const renewed = yield* issueTo(caller, ["c.example"])
      yield* issueTo(stranger, ["d.example"])
      // The order that names a certificate replaces it once it has a certificate itself.
      yield* round()
      assert.deepInclude(yield* records.show(id), { replaced: 1, remaining: 2 })
      const literal = backend.dialect === "sqlite" ? `x'${order.replaceAll("-", "")}'` : `'${order}'`
      yield* sql(
        `UPDATE orders SET status = 'valid', certificate = '${renewed.chain}', cert_serial = '0b',
         cert_not_after = ${madeAt + 400 * daySeconds} WHERE id = ${literal}`
      )
      yield* round()
      assert.deepInclude(yield* records.show(id), { matched: 3, replaced: 2, remaining: 1, state: "running" })
      assert.isUndefined((yield* info(covered)).explanationUrl)
      assert.isDefined((yield* info(kept)).explanationUrl)
    }))

  test("is not left by a certificate that another matched certificate covers", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* issueTo(caller, ["a.example"])
      yield* TestClock.adjust("1 day")
      yield* issueTo(caller, ["a.example"])
      const id = yield* started(all)
      yield* round()
      assert.deepInclude(yield* records.show(id), { matched: 2, replaced: 0 })
      yield* TestClock.adjust("1 day")
      yield* issueTo(caller, ["a.example"])
      yield* round()
      assert.deepInclude(yield* records.show(id), { matched: 2, replaced: 2, state: "ended", finished: true })
    }))

  test("ends by itself when nothing is left, and says so once", () =>
    Effect.gen(function*() {
      const told: Array<object> = []
      const notifier = Notifier.of({
        write: () => Effect.void,
        isWanted: () => true,
        queue: (occurrence) => Effect.sync(() => void told.push(occurrence))
      })
      const caller = yield* callerAt(profileOf(config))
      const one = yield* issueTo(caller, ["a.example"])
      yield* issueTo(caller, ["b.example"])
      const id = yield* started(all)
      yield* sql(`UPDATE orders SET revoked_at = ${madeAt} WHERE cert_serial = '${one.serial}'`)
      yield* sql(`UPDATE orders SET cert_not_after = 1 WHERE cert_serial <> '${one.serial}'`)
      const looking = Effect.provideService(round(), Notifier, notifier)
      yield* looking
      yield* looking
      const counts = { matched: 2, replaced: 0, revoked: 1, expired: 1 }
      assert.deepInclude(yield* records.show(id), { ...counts, state: "ended", finished: true, remaining: 0 })
      assert.deepStrictEqual(told, [{
        event: "campaign_finished",
        scope: "__admin__",
        fields: { campaign_id: id, campaign_reason: "a bug", ...counts }
      }])
      assert.deepStrictEqual(fieldsOf(logged, "campaign_finished"), [{ campaign_id: id, total: 2 }])
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'campaign_finished'"), 1)
    }))

  test("asks nobody while it is paused, and moves its windows by the pause", () =>
    Effect.gen(function*() {
      const one = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      const before = yield* info(one)
      const id = yield* started(all)
      const { end, start } = yield* info(one)
      yield* TestClock.adjust("1 hour")
      yield* records.pause(operator, id)
      assert.deepStrictEqual(yield* info(one), before)
      assert.deepInclude(yield* Effect.flip(records.pause(operator, id)), { _tag: "CampaignStateRefused" })
      yield* TestClock.adjust("5 hours")
      yield* records.resume(operator, id)
      assert.deepInclude(yield* info(one), { start: start + 5 * hourSeconds, end: end + 5 * hourSeconds })
      assert.deepInclude(yield* Effect.flip(records.resume(operator, id)), { _tag: "CampaignStateRefused" })
      yield* records.end(operator, id)
      assert.deepStrictEqual(yield* info(one), before)
      assert.deepInclude(yield* Effect.flip(records.end(operator, id)), { _tag: "CampaignStateRefused" })
      assert.deepStrictEqual(
        yield* column("SELECT event FROM audit_log WHERE event LIKE 'campaign%' ORDER BY id"),
        ["campaign_started", "campaign_paused", "campaign_resumed", "campaign_ended"]
      )
      assert.deepStrictEqual(
        eventsOf(logged).filter((event) => event.startsWith("admin_campaign")),
        ["started", "paused", "resumed", "ended"].map((word) => `admin_campaign_${word}`)
      )
    }))

  test("revokes what is left at its date, but only if that was confirmed", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const replaced = yield* issueTo(caller, ["a.example"])
      const left = yield* issueTo(caller, ["b.example"])
      const id = yield* started(all, { revokeAt: madeAt + 10 * daySeconds, revokeReason: 1 })
      yield* TestClock.adjust("1 day")
      yield* issueTo(caller, ["a.example"])
      const revoking = Effect.andThen(round(), work("campaign_revoke"))
      const revoked = column("SELECT cert_serial FROM orders WHERE revoked_at IS NOT NULL")
      yield* TestClock.adjust("10 days")
      yield* revoking
      assert.deepStrictEqual(yield* revoked, [])
      yield* records.confirm(operator, id)
      yield* records.confirm({ ...operator, id: "otto" }, id)
      yield* records.pause(operator, id)
      yield* revoking
      assert.deepStrictEqual(yield* revoked, [])
      yield* records.resume(operator, id)
      yield* revoking
      assert.deepStrictEqual(yield* revoked, [left.serial])
      assert.deepStrictEqual(fieldsOf(logged, "campaign_revoked"), [{ campaign_id: id, count: 1 }])
      assert.deepStrictEqual(fieldsOf(logged, "campaign_revoke_failed"), [])
      assert.notStrictEqual(replaced.serial, left.serial)
      assert.deepStrictEqual(yield* column("SELECT revocation_reason FROM orders WHERE revoked_at IS NOT NULL"), ["1"])
      assert.strictEqual(yield* count("SELECT count(*) FROM burnt_keys"), 1)
      assert.deepStrictEqual(
        yield* column(
          "SELECT actor_id FROM audit_log WHERE event IN ('certificate_revoked', 'campaign_revocation_confirmed')"
        ),
        ["olga", "olga"]
      )
      yield* round()
      assert.deepInclude(yield* records.show(id), { replaced: 1, revoked: 1, finished: true })
    }))

  test("tells of what it could not revoke apart from what it has revoked", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* issueTo(caller, ["a.example"])
      const foreign = yield* issueTo(caller, ["b.example"])
      yield* sql(
        `UPDATE orders SET certificate = 'kept elsewhere', leaf = NULL WHERE cert_serial = '${foreign.serial}'`
      )
      const id = yield* started(all, { revokeAt: (yield* seconds) + 1 })
      yield* records.confirm(operator, id)
      yield* TestClock.adjust("1 minute")
      yield* Effect.andThen(round(), work("campaign_revoke"))
      assert.deepStrictEqual(fieldsOf(logged, "campaign_revoked"), [{ campaign_id: id, count: 1 }])
      assert.deepStrictEqual(fieldsOf(logged, "campaign_revoke_failed"), [{ campaign_id: id, count: 1 }])
      const outcomes = logged.flatMap(({ event, outcome }) => event.startsWith("campaign_revoke") ? [outcome] : [])
      assert.deepStrictEqual(outcomes, ["success", "failure"])
    }))

  test("revokes nothing before its date, and has nothing to confirm without one", () =>
    Effect.gen(function*() {
      yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      const dated = yield* started(all, { revokeAt: (yield* seconds) + daySeconds })
      yield* records.confirm(operator, dated)
      yield* round()
      yield* work("campaign_revoke")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 0)
      const undated = yield* started(all)
      assert.deepInclude(yield* Effect.flip(records.confirm(operator, undated)), { _tag: "BadRequest" })
      yield* records.end(operator, dated)
      assert.deepInclude(yield* Effect.flip(records.confirm(operator, dated)), { _tag: "CampaignStateRefused" })
    }))

  /** Runs an effect in a process that is killed after some statements. Returns whether it has ended before. */
  const killedIn = <A, E, R>(self: Effect.Effect<A, E, R>, statements: number) =>
    Effect.gen(function*() {
      const { driver, killed } = yield* killedAfter(yield* Database, statements)
      yield* Effect.provideService(Effect.race(Effect.exit(self), Deferred.await(killed)), Database, driver)
      return !(yield* Deferred.isDone(killed))
    })

  test("is filled to the last certificate, wherever the worker that fills it is killed", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* Effect.forEach(["a", "b", "c"], (name) => issueTo(caller, [`${name}.example`]))
      for (let statements = 0;; statements++) {
        yield* sql("DELETE FROM campaigns")
        const { id } = yield* start(all)
        const isDone = yield* killedIn(fill(CampaignId(id)), statements)
        yield* fill(CampaignId(id))
        assert.deepInclude(yield* records.show(id), { matched: 3, remaining: 3, spanSeconds: pollingSeconds })
        if (isDone) break
      }
    }))

  test("revokes each certificate once, wherever the worker that revokes is killed", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* Effect.forEach(["a", "b"], (name) => issueTo(caller, [`${name}.example`]))
      for (let statements = 0;; statements++) {
        for (const table of ["campaigns", "revocations", "audit_log"]) yield* sql(`DELETE FROM ${table}`)
        yield* sql("UPDATE orders SET revoked_at = NULL, revocation_reason = NULL")
        const id = yield* started(all, { revokeAt: (yield* seconds) + 1 })
        yield* records.confirm(operator, id)
        yield* TestClock.adjust("1 second")
        const revoking = revokeRest(CampaignId(id), () => "local_ca")
        const isDone = yield* killedIn(revoking, statements)
        yield* revoking
        assert.strictEqual(yield* count("SELECT count(*) FROM revocations"), 2)
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'certificate_revoked'"), 2)
        yield* round()
        assert.deepInclude(yield* records.show(id), { revoked: 2, finished: true })
        if (isDone) break
      }
    }))

  test("lists the certificates for which nobody asks within two polling intervals, and writes to their contacts once", () =>
    Effect.gen(function*() {
      const letters: Array<object> = []
      const notifier = Notifier.of({
        write: ({ fields }) => Effect.sync(() => void letters.push(fields)),
        isWanted: () => false,
        queue: () => Effect.void
      })
      const caller = yield* callerAt(profileOf(config))
      yield* sql(`UPDATE accounts SET contact = '["mailto:ann@example.org"]', last_seen_ip = '192.0.2.7'`)
      const asking = yield* issueTo(caller, ["a.example"])
      const silent = yield* issueTo(caller, ["b.example"])
      const id = yield* started(all)
      const page = { limit: 10, offset: 0 }
      const looking = Effect.provideService(round(() => true), Notifier, notifier)
      yield* TestClock.adjust((silentSeconds - 1) * 1000)
      yield* info(asking)
      yield* (yield* RenewalAsks).flush
      yield* looking
      assert.deepStrictEqual(yield* records.silent(id, page), { items: [], total: 0 })
      yield* TestClock.adjust(1000)
      const { items, total } = yield* records.silent(id, page)
      assert.strictEqual(total, 1)
      assert.deepInclude(items[0], {
        orderId: silent.orderId,
        accountId: caller.accountId,
        contact: ["mailto:ann@example.org"],
        lastSeenIp: "192.0.2.7"
      })
      assert.deepInclude(yield* records.show(id), { asked: 1, silent: 1 })
      yield* looking
      assert.deepStrictEqual(fieldsOf(logged, "campaign_reminders_queued"), [{ campaign_id: id, count: 1, limited: 0 }])
      yield* TestClock.adjust("14 days")
      yield* looking
      assert.deepStrictEqual(letters.filter((one) => JSON.stringify(one).includes(silent.orderId)), [{
        account_id: caller.accountId,
        recipient: "ann@example.org",
        orders: [silent.orderId],
        total: 1,
        campaign_reason: "a bug",
        campaign_url: "https://status.example/bug"
      }])
    }))

  test("matches only what existed when it was started, and says before how many that are", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { serial } = yield* issueTo(caller, ["a.example"])
      yield* issueTo(caller, ["b.example"])
      const filters: ReadonlyArray<readonly [CampaignFilter, number]> = [
        [all, 2],
        [{ profile: "other" }, 0],
        [{ serials: [serial, "0f"] }, 1],
        [{ key: "ecdsa-p256" }, 2],
        [{ key: "rsa" }, 0],
        [{ accountId: caller.accountId, name: "b.example" }, 1],
        [{ issuer: "0".repeat(64) }, 0],
        [{ kind: "default" }, 2],
        [{ issuedBefore: madeAt }, 0]
      ]
      for (const [filter, matched] of filters) {
        assert.deepStrictEqual(yield* records.preview(config, operator, filter), { matched, truncated: false })
      }
      const { id } = yield* start(all)
      yield* TestClock.adjust(1000)
      yield* issueTo(caller, ["c.example"])
      yield* work("campaign_fill")
      assert.deepInclude(yield* records.show(id), { matched: 2 })
    }))

  test("goes on when the database refuses a write, and says so", () =>
    Effect.gen(function*() {
      const one = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      const id = yield* started(all)
      yield* info(one)
      yield* breakWrites(backend.dialect, { operation: "UPDATE", table: "campaign_certificates" })
      const { keepWriting } = yield* RenewalAsks
      const writing = yield* Effect.forkChild(keepWriting)
      yield* TestClock.adjust("20 seconds")
      yield* until("renewal_asks_unwritten")
      yield* sql(`UPDATE orders SET revoked_at = ${madeAt}`)
      yield* sql(
        `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
         VALUES (${
          backend.dialect === "sqlite" ? "randomblob(16)" : "gen_random_uuid()"
        }, 'campaign_round', '-', '{}', 'ready', 0, 0, 5, 0, 0)`
      )
      yield* work("campaign_round")
      assert.lengthOf(fieldsOf(logged, "campaign_round_failed"), 1)
      yield* mend(backend.dialect)
      yield* TestClock.adjust("20 seconds")
      yield* Effect.repeat(records.show(id), { until: ({ asked }) => asked === 1 })
      yield* Fiber.interrupt(writing)
      yield* round()
      assert.deepInclude(yield* records.show(id), { asked: 1, revoked: 1, finished: true })
    }))

  test("refuses a filter that names what does not exist, and a date that has passed", () =>
    Effect.gen(function*() {
      const id = "01890a5d-ac96-774b-bcce-b302099a8057"
      const refused = (filter: object, more = {}) => Effect.flip(start(filter, more))
      assert.deepInclude(yield* refused({ accountId: id }), { _tag: "NoSuch", noun: "account" })
      assert.deepInclude(yield* refused({ kid: id }), { _tag: "NoSuch", noun: "credential" })
      assert.deepInclude(yield* refused({ kind: "odd" }), { _tag: "UnknownWord", name: "kind" })
      assert.deepInclude(yield* refused({ profile: "odd" }), { _tag: "NoSuch", noun: "profile" })
      assert.deepInclude(yield* refused(all, { revokeAt: madeAt }), { _tag: "BadRequest", member: "revokeAt" })
      assert.deepInclude(yield* Effect.flip(records.show(id)), { _tag: "NoSuch", noun: "campaign" })
      yield* Effect.forEach(Array.from({ length: 20 }), () => start(all))
      assert.deepInclude(yield* refused(all), { _tag: "TooManyCampaigns" })
    }))
})
