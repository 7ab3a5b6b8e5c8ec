import { Effect } from "effect"
import { assert, describe } from "vitest"
import { fromStrangers, waitAfter } from "../../../src/domain/LoginFailure.ts"
import * as apiTokens from "../../../src/store/operators/ApiTokens.ts"
import * as attempts from "../../../src/store/operators/LoginAttempts.ts"
import * as failures from "../../../src/store/operators/LoginFailures.ts"
import * as codes from "../../../src/store/operators/RecoveryCodes.ts"
import * as factors from "../../../src/store/operators/SecondFactors.ts"
import * as sessions from "../../../src/store/operators/SessionRows.ts"
import * as users from "../../../src/store/operators/Users.ts"
import { databases } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"
import { ann, ben, idOf, is, other, person, secret, session, token } from "../../support/OperatorRows.ts"
import { useStore } from "../../support/UseTests.ts"

/*
 * Tests the conditions in statements about operators. If two changes are made at the same time, a condition refuses the
 * second change. An operation that runs alone checks the same before, so these tests execute the statements directly.
 */

describe.each(databases)("statements about operators on $name", (backend) => {
  const { test } = useStore(backend)

  test("subtract an attempt only from its own window, and never subtract more than was counted", () =>
    Effect.gen(function*() {
      const of = { key: "192.0.2.1", most: 2, windowSeconds: 100 }
      const first = yield* attempts.take({ ...of, now: 100 })
      const second = yield* attempts.take({ ...of, now: 250 })
      assert.isDefined(first)
      assert.isDefined(second)
      if (first === undefined || second === undefined) return
      yield* attempts.giveBack(first)
      assert.deepStrictEqual(yield* column("SELECT attempts FROM login_attempts"), ["1"], "that window is over")
      yield* attempts.giveBack(second)
      yield* attempts.giveBack(second)
      assert.deepStrictEqual(yield* column("SELECT attempts FROM login_attempts"), ["0"])
    }))

  test("count attempts under one key only, and up to the maximum", () =>
    Effect.gen(function*() {
      const of = { key: "a", most: 2, windowSeconds: 100, now: 100 }
      const first = yield* attempts.take(of)
      const later = yield* attempts.take({ ...of, key: "b", now: 150 })
      assert.isTrue(is(yield* attempts.take({ ...of, now: 150 })))
      assert.isUndefined(yield* attempts.take({ ...of, now: 150 }))
      const begins = yield* Effect.forEach(["a", "b", "c"], attempts.windowOf)
      assert.deepStrictEqual(begins, [100, 150, undefined])
      if (first === undefined || later === undefined) return assert.fail("nothing was counted")
      yield* attempts.giveBack({ ...first, key: "b" })
      yield* attempts.take({ ...of, key: "c", now: 150 })
      yield* attempts.giveBack(later)
      const left = column("SELECT key || attempts FROM login_attempts ORDER BY key")
      assert.deepStrictEqual(yield* left, ["a2", "b0", "c1"])
    }))

  test("store the use of a token or a session at most once in a period", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* apiTokens.insert({ ...token, now: 1, expiresAt: 1000 })
      const bystander = { ...token, id: idOf(8), tokenHash: "i", name: "u" }
      yield* apiTokens.insert({ ...bystander, now: 1, expiresAt: 1000 })
      const touch = (now: number) => apiTokens.touch({ id: token.id, now, seconds: 60, ip: undefined })
      assert.deepStrictEqual([
        is(yield* touch(100)),
        is(yield* touch(100)),
        is(yield* touch(159)),
        is(yield* touch(160))
      ], [
        true,
        false,
        false,
        true
      ])
      assert.isFalse(is(yield* touch(100)), "of a clock that was as much ahead as a use lasts")
      assert.isTrue(is(yield* touch(99)), "of a clock that was ahead")
      yield* session("s", "active")
      yield* session("t", "active")
      assert.isFalse(is(yield* sessions.touch("s", 150, 90)))
      assert.isTrue(is(yield* sessions.touch("s", 160, 100)))
      assert.isFalse(is(yield* sessions.touch("s", 160, 100)))
      assert.isTrue(is(yield* apiTokens.revoke(token.id, 5)))
      assert.isFalse(is(yield* apiTokens.revoke(token.id, 6)))
      const untouched = "last_used_at IS NULL AND revoked_at IS NULL"
      assert.deepStrictEqual(yield* column(`SELECT name FROM api_tokens WHERE ${untouched}`), ["u"])
      assert.deepStrictEqual(yield* column("SELECT last_seen_at FROM admin_sessions ORDER BY token_hash"), [
        "160",
        "100"
      ])
    }))

  test("correct the times of a token only if they are in the future", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* apiTokens.insert({ ...token, now: 100, expiresAt: 1000 })
      yield* apiTokens.insert({ ...token, id: idOf(8), name: "u", tokenHash: "i", now: 100, expiresAt: 1000 })
      yield* apiTokens.correct(token.id, 150)
      const times = column("SELECT created_at || ' ' || expires_at FROM api_tokens ORDER BY name")
      assert.deepStrictEqual(yield* times, ["100 1000", "100 1000"])
      yield* apiTokens.correct(token.id, 50)
      assert.deepStrictEqual(yield* times, ["50 950", "100 1000"])
    }))

  test("change only the factor that the operation has read, only for an active operator, and use a step once", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* person(ben, "ben")
      const begin = { id: ann, pending: secret, inForce: undefined, now: 1 }
      assert.isFalse(is(yield* factors.pend({ ...begin, inForce: other })))
      assert.isTrue(is(yield* factors.pend(begin)))
      const confirm = { ...begin, step: 7, now: 2 }
      const rest = column(
        "SELECT COALESCE(totp_last_step, 0) || ' ' || updated_at FROM admin_users WHERE username = 'ann'"
      )
      const pending = column("SELECT username FROM admin_users WHERE totp_pending_secret IS NOT NULL")
      assert.isFalse(is(yield* factors.confirm({ ...confirm, pending: other })))
      assert.isFalse(is(yield* factors.confirm({ ...confirm, inForce: other })))
      assert.isFalse(is(yield* factors.confirm({ ...confirm, id: ben })))
      assert.deepStrictEqual([yield* rest, yield* pending], [["0 1"], ["ann"]])
      assert.isTrue(is(yield* factors.confirm(confirm)))
      assert.deepStrictEqual([yield* rest, yield* pending], [["7 2"], []])
      assert.isFalse(is(yield* factors.pend(begin)), "there is one in force by now")
      const claim = { id: ann, secret, step: 8 }
      assert.isFalse(is(yield* factors.claim({ ...claim, step: 7 })))
      assert.isFalse(is(yield* factors.claim({ ...claim, secret: other })))
      assert.isFalse(is(yield* factors.claim({ ...claim, id: ben })))
      assert.isTrue(is(yield* factors.claim(claim)))
      assert.isFalse(is(yield* factors.claim(claim)))
      assert.isTrue(is(yield* factors.claim({ ...claim, step: 200 })))
      assert.isFalse(is(yield* factors.claim({ ...claim, step: 80 })), "an hour ahead")
      assert.isTrue(is(yield* factors.claim({ ...claim, step: 79 })), "more than an hour ahead")
      assert.isTrue(is(yield* factors.pend({ ...begin, inForce: secret, pending: other, now: 3 })))
      assert.deepStrictEqual([yield* rest, yield* pending], [["79 3"], ["ann"]])
      yield* users.setStatus(ann, "disabled", 2)
      assert.isFalse(is(yield* factors.claim({ ...claim, step: 90 })))
      assert.isFalse(is(yield* factors.pend({ ...begin, inForce: secret })))
      assert.isTrue(is(yield* factors.clear(ann, 4)))
      assert.deepStrictEqual([yield* rest, yield* pending], [["0 4"], []])
      assert.isFalse(is(yield* factors.clear(ann, 5)))
      assert.isFalse(is(yield* factors.pend(begin)))
      yield* users.setStatus(ann, "active", 4)
      yield* factors.pend(begin)
      assert.isTrue(is(yield* factors.clear(ann, 4)), "an enrolment that was not confirmed")
      yield* factors.pend(begin)
      yield* users.setStatus(ann, "disabled", 5)
      assert.isFalse(is(yield* factors.confirm(confirm)))
    }))

  test("use a recovery code once, and only for the operator who owns it", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* person(ben, "ben")
      yield* codes.replace({ userId: ann, codes: [{ id: idOf(7), hash: "h" }, { id: idOf(8), hash: "i" }], now: 1 })
      yield* codes.replace({ userId: ben, codes: [{ id: idOf(6), hash: "h" }], now: 1 })
      assert.isFalse(is(yield* codes.consume({ id: idOf(7), userId: ben, now: 2 })))
      assert.isTrue(is(yield* codes.consume({ id: idOf(7), userId: ann, now: 2 })))
      assert.isFalse(is(yield* codes.consume({ id: idOf(7), userId: ann, now: 2 })))
      assert.deepStrictEqual(yield* codes.unused(ann), [{ id: idOf(8), codeHash: "i" }])
      yield* codes.replace({ userId: ann, codes: [{ id: idOf(5), hash: "j" }], now: 3 })
      assert.deepStrictEqual(yield* codes.unused(ann), [{ id: idOf(5), codeHash: "j" }])
      yield* codes.removeAll(ann)
      assert.strictEqual(yield* codes.remaining(ben), 1)
    }))

  test("end sessions of the given state and operator, and count the codes that were tried in a session", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* person(ben, "ben")
      yield* session("aaaaaaaaaaaaaaaa1", "active")
      yield* session("bbbbbbbbbbbbbbbb1", "pending_mfa")
      yield* session("aaaaaaaaaaaaaaaa2", "active", ben)
      assert.isFalse(is(yield* sessions.end("aaaaaaaaaaaaaaaa1", "pending_mfa")))
      assert.isFalse(is(yield* sessions.end("bbbbbbbbbbbbbbbb1", "active")))
      const pending = (tokenHash: string, most: number) => ({ tokenHash, state: "pending_mfa" as const, most })
      assert.isUndefined(yield* sessions.countAttempt(pending("aaaaaaaaaaaaaaaa1", 5)))
      assert.strictEqual(yield* sessions.countAttempt(pending("bbbbbbbbbbbbbbbb1", 1)), 1)
      assert.isUndefined(yield* sessions.countAttempt(pending("bbbbbbbbbbbbbbbb1", 1)))
      const active = { tokenHash: "aaaaaaaaaaaaaaaa1", state: "active" as const, most: 2 }
      assert.strictEqual(yield* sessions.countAttempt(active), 1)
      assert.strictEqual(yield* sessions.countAttempt(active), 2)
      assert.isUndefined(yield* sessions.countAttempt(active))
      yield* sessions.giveBackAttempt(active.tokenHash)
      assert.strictEqual(yield* sessions.countAttempt(active), 2)
      assert.strictEqual(yield* sessions.endNamed(ann, "cccccccccccccccc"), 0)
      yield* session("aaaaaaaaaaaaaaaa", "active")
      yield* session("aaaaaaaaaaaaaaaag", "active")
      assert.strictEqual(yield* sessions.endNamed(ann, "aaaaaaaaaaaaaaaa"), 2)
      assert.isTrue(is(yield* sessions.end("aaaaaaaaaaaaaaaag", "active")))
      assert.isTrue(is(yield* sessions.find("aaaaaaaaaaaaaaaa2")))
      assert.strictEqual(yield* sessions.endAllOf(ann, "bbbbbbbbbbbbbbbb1"), 0)
      assert.strictEqual(yield* sessions.endAllOf(ann), 1)
      assert.isTrue(is(yield* sessions.find("aaaaaaaaaaaaaaaa2")))
      yield* session("bbbbbbbbbbbbbbbb1", "pending_mfa")
      assert.strictEqual(yield* sessions.endEvery, 2)
    }))

  test("sweep what expires between two times, a limited number of rows at once", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      for (const name of ["a", "b", "c"]) yield* session(name, "active")
      const of = { from: 500, upTo: 500, limit: 2 }
      for (const none of [{ from: 501, upTo: 900 }, { from: 0, upTo: 499 }]) {
        assert.strictEqual(yield* sessions.sweep({ ...of, ...none }), 0)
      }
      assert.strictEqual(yield* sessions.sweep(of), 2)
      assert.strictEqual(yield* sessions.sweep(of), 1)
      for (const expiresAt of [501, 500]) yield* session(`${expiresAt}`, "active", ann, { now: 100, expiresAt })
      assert.strictEqual(yield* sessions.sweep({ ...of, upTo: 501, limit: 1 }), 1)
      assert.deepStrictEqual(
        yield* column("SELECT token_hash FROM admin_sessions"),
        ["501"],
        "what ended first goes first"
      )
      yield* attempts.take({ key: "k", most: 1, windowSeconds: 1, now: 500 })
      for (const none of [{ from: 501, upTo: 900 }, { from: 0, upTo: 499 }]) {
        assert.strictEqual(yield* attempts.sweep({ ...of, ...none }), 0)
      }
      assert.strictEqual(yield* attempts.sweep(of), 1)
      for (const now of [501, 500]) yield* attempts.take({ key: `${now}`, most: 1, windowSeconds: 1, now })
      assert.strictEqual(yield* attempts.sweep({ ...of, upTo: 501, limit: 1 }), 1)
      assert.deepStrictEqual(yield* column("SELECT key FROM login_attempts"), ["501"])
    }))

  test("count failures in a row with growing waits, even if attempts are simultaneous", () =>
    Effect.gen(function*() {
      let now = 1000
      const take = (most = 50) => Effect.suspend(() => failures.take({ key: "k", most, now }))
      const at = (failures: number, limit = fromStrangers) => waitAfter(failures, limit)
      for (let count = 1; count <= 60; count++) {
        const wait = at(count - 1)
        if (wait > 0) {
          now += wait - 1
          assert.isUndefined(yield* take(), `${count} after ${wait - 1} s`)
          now += 1
        }
        const taken = yield* Effect.all([take(), take(), take()], { concurrency: "unbounded" })
        const passed = taken.filter((one) => one !== undefined)
        // Attempts without a wait pass at the same time, and each of them is counted.
        assert.strictEqual(Math.min(...passed), count)
        if (at(count) > 0) assert.lengthOf(passed, 1)
        else count += passed.length - 1
      }
      assert.deepInclude(yield* failures.find("k"), { failures: 60, lastFailedAt: now })
      assert.isUndefined(yield* take(10))
      yield* failures.giveBack("k")
      assert.deepInclude(yield* failures.find("k"), { failures: 59 })
      yield* failures.clear("k")
      assert.isUndefined(yield* failures.find("k"))
      for (let count = 1; count <= 10; count++) assert.strictEqual(yield* take(10), count)
      assert.isUndefined(yield* take(10))
    }))

  test("count a failure of a process whose clock is ahead like any other, as long as no wait is due", () =>
    Effect.gen(function*() {
      const take = (now: number) => failures.take({ key: "k", most: 50, now })
      for (let count = 1; count <= 11; count++) assert.strictEqual(yield* take(count % 2 === 0 ? 9000 : 1000), count)
      assert.isUndefined(yield* take(1000))
      assert.strictEqual(yield* take(1030), 12)
      for (const last of [500, 501]) yield* failures.take({ key: `${last}`, most: 1, now: last })
      assert.strictEqual(yield* failures.sweep({ from: 0, upTo: 501, limit: 1 }), 1)
      assert.deepStrictEqual(yield* column("SELECT key FROM login_failures ORDER BY key"), ["501", "k"])
    }))

  test("list and count sessions that have neither expired nor become idle", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* session("s", "active")
      const page = { limit: 10, offset: 0 }
      for (
        const [now, idleSince, userId, live] of [
          [499, 99, ann, 1],
          [500, 99, ann, 0],
          [499, 100, ann, 0],
          [499, 99, ben, 0]
        ] as const
      ) {
        const of = { now, idleSince, userId }
        assert.deepStrictEqual([(yield* sessions.list({ ...of, ...page })).length, yield* sessions.count(of)], [
          live,
          live
        ])
        if (userId === ben) continue
        const everyone = [(yield* sessions.listEvery({ ...of, ...page })).length, yield* sessions.countEvery(of)]
        assert.deepStrictEqual(everyone, [live, live])
      }
    }))

  test("lock an operator only in the state that was read, and say whether they changed anything", () =>
    Effect.gen(function*() {
      assert.isTrue(is(yield* person(ann, "ann")))
      assert.isFalse(is(yield* person(ben, "ann")))
      const held = { id: ann, verified: "hash", renewed: "hash", totpSecret: undefined }
      assert.isTrue(is(yield* users.verified(held)))
      assert.isFalse(is(yield* users.verified({ ...held, verified: "another" })))
      assert.isFalse(is(yield* users.verified({ ...held, totpSecret: secret })))
      assert.isFalse(is(yield* users.setStatus(ann, "active", 2)))
      assert.isTrue(is(yield* users.setContact(ann, "a@example.org", 2)))
      assert.isFalse(is(yield* users.setContact(ann, "a@example.org", 2)))
      assert.isTrue(is(yield* users.signedIn(ann, [], 3)))
      assert.strictEqual(yield* users.countUnenrolled, 1)
      assert.lengthOf(yield* users.lockAdmins, 1)
      yield* users.setRole(ann, "operator", 3)
      assert.lengthOf(yield* users.lockAdmins, 0)
      yield* users.setRole(ann, "admin", 3)
      yield* factors.pend({ id: ann, pending: secret, inForce: undefined, now: 3 })
      yield* factors.confirm({ id: ann, pending: secret, inForce: undefined, now: 3, step: 1 })
      assert.strictEqual(yield* users.countUnenrolled, 0)
      yield* factors.clear(ann, 3)
      assert.isTrue(is(yield* users.setStatus(ann, "disabled", 4)))
      assert.isFalse(is(yield* users.signedIn(ann, [], 5)))
      assert.isFalse(is(yield* users.verified(held)))
      assert.strictEqual(yield* users.countUnenrolled, 0)
      assert.lengthOf(yield* users.lockAdmins, 0)
    }))

  test("change one operator without changing any other", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* person(ben, "ben")
      yield* factors.pend({ id: ben, pending: other, inForce: undefined, now: 1 })
      const [before] = yield* sql("SELECT * FROM admin_users WHERE username = 'ben'")
      yield* users.verified({ id: ann, verified: "hash", renewed: "renewed", totpSecret: undefined })
      yield* users.setPassword(ann, "new", 2)
      yield* users.setRole(ann, "viewer", 2)
      yield* users.setContact(ann, "a@example.org", 2)
      yield* users.signedIn(ann, ["192.0.2.1"], 2)
      yield* factors.pend({ id: ann, pending: secret, inForce: undefined, now: 2 })
      yield* factors.confirm({ id: ann, pending: secret, inForce: undefined, now: 2, step: 1 })
      yield* factors.clear(ann, 2)
      yield* users.setStatus(ann, "disabled", 2)
      const [after] = yield* sql("SELECT * FROM admin_users WHERE username = 'ben'")
      assert.deepStrictEqual(after, before)
      assert.deepStrictEqual(
        yield* column("SELECT password_hash || ' ' || role || ' ' || status FROM admin_users WHERE username = 'ann'"),
        ["new viewer disabled"]
      )
      yield* users.remove(ann)
      assert.deepStrictEqual(yield* column("SELECT username FROM admin_users"), ["ben"])
    }))
})
