import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Database } from "../../../../src/engine/sql/Database.ts"
import type { SessionToken } from "../../../../src/operations/operator/identity/Identity.ts"
import { hasCsrfToken } from "../../../../src/operations/operator/identity/Identity.ts"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as objects from "../../../../src/operations/operator/identity/OperatorObjects.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as others from "../../../../src/operations/operator/identity/OperatorSessions.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { sweepSessions } from "../../../../src/operations/work/SessionSweep.ts"
import { secretOf } from "../../../support/Authenticator.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import { meanwhileAt } from "../../../support/Meanwhile.ts"
import {
  all,
  chosen,
  codeOf,
  config,
  enrolled,
  enter,
  half,
  here,
  keyboard,
  made,
  password,
  startsAt,
  strict,
  typed,
  useOperators
} from "../../../support/Operators.ts"
import { withServerClock } from "../../../support/ServerClock.ts"

const { admin } = config

describe.each(databases)("sessions on $name", (backend) => {
  const { fieldsOf, records, test } = useOperators(backend)

  const use = (token: SessionToken, touch = true) =>
    Effect.map(
      Effect.result(sessions.authenticate(admin, token, { touch })),
      (result) => result._tag === "Failure" ? result.failure._tag : "live"
    )

  test("end when they were not used for an hour, and are prolonged by a use but not by a refresh of the panel", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* enter("olga")
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual(yield* use(token), "live")
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual(yield* use(token, false), "live")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* use(token), "SessionIdle")
    }))

  test("end twelve hours after they began, even if they are used", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* enter("olga")
      for (let minutes = 30; minutes < 720; minutes += 30) {
        yield* TestClock.adjust("30 minutes")
        assert.strictEqual(yield* use(token), "live", String(minutes))
      }
      yield* TestClock.adjust("1799 seconds")
      assert.strictEqual(yield* use(token), "live")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* use(token), "SessionExpired")
    }))

  test("store the time of their last use once a minute at most", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* enter("olga")
      const driver = yield* Database
      let writes = 0
      const counting = {
        ...driver,
        single: (...given: Parameters<typeof driver.single>) => {
          if (!given[0].reads) writes++
          return driver.single(...given)
        }
      }
      for (let second = 0; second < 180; second++) {
        yield* Effect.provideService(use(token), Database, counting)
        yield* TestClock.adjust("1 second")
      }
      assert.strictEqual(writes, 2)
    }))

  test("are refused at once if their operator is disabled, is deleted, or gets another role or password", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      const changes = [
        operators.setRole(keyboard, "olga", "operator"),
        operators.setPassword(config, keyboard, "olga", typed("Wrocław tramway, 4 stops")),
        operators.disable(keyboard, "olga")
      ]
      for (const change of changes) {
        const { token } = yield* enter("olga")
        yield* change
        assert.strictEqual(yield* use(token), "SessionInvalid")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 0)
      }
      yield* operators.enable(keyboard, "olga")
      const { token } = yield* enter("olga")
      // The session has ended before any sweep, whatever its row says.
      yield* sql("UPDATE admin_users SET status = 'disabled' WHERE username = 'olga'")
      assert.strictEqual(yield* use(token), "SessionInvalid")
      yield* operators.remove(keyboard, "olga")
      assert.strictEqual(yield* use(token), "SessionInvalid")
    }))

  test("are refused if their token is unknown, and are not even looked up if it is malformed", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* use(Redacted.make("A".repeat(43))), "SessionInvalid")
      const blind = { ...yield* Database, single: () => Effect.die(new Error("looked for")) }
      for (const odd of ["", "A".repeat(42), "A".repeat(44), `${"A".repeat(42)}=`, "\u0000".repeat(43)]) {
        const tag = yield* Effect.provideService(use(Redacted.make(odd)), Database, blind)
        assert.strictEqual(tag, "SessionInvalid")
      }
    }))

  test("have a CSRF token, which must match", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      assert.isTrue(hasCsrfToken(identity, identity.csrfToken))
      for (const other of [undefined, "", "A".repeat(43), `${identity.csrfToken}A`]) {
        assert.isFalse(hasCsrfToken(identity, other))
      }
    }))

  test("end when the operator signs out of one session or of all sessions, and only signing out of all leaves a row in the trail", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* made("otto")
      const [one, other, third, ottos] = [
        yield* enter("olga"),
        yield* enter("olga"),
        yield* enter("olga"),
        yield* enter("otto")
      ]
      yield* sessions.signOut(one.identity, { all: false }, here)
      assert.deepStrictEqual([yield* use(one.token), yield* use(other.token)], ["SessionInvalid", "live"])
      const rows = column("SELECT detail FROM audit_log WHERE event = 'session_revoked'")
      assert.deepStrictEqual(yield* rows, [], "one that its operator ends alone has none")
      yield* sessions.signOut(other.identity, { all: true }, here)
      assert.deepStrictEqual([yield* use(other.token), yield* use(third.token)], ["SessionInvalid", "SessionInvalid"])
      assert.strictEqual(yield* use(ottos.token), "live")
      const told = (yield* rows).map((text) => JSON.parse(text) as unknown)
      assert.deepStrictEqual(told, [{ target: "olga", scope: "operator", sessions: 2 }])
      assert.deepStrictEqual(fieldsOf("admin_logout"), [
        { username: "olga", scope: "one", sessions: 1 },
        { username: "olga", scope: "all", sessions: 2 }
      ])
    }))

  test("are replaced by a sign-in in the same browser, whether they are complete or incomplete", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* made("otto")
      const olgas = yield* enter("olga")
      const held = { ...here, held: olgas.token }
      yield* Effect.flip(signIn(admin, { username: "otto", password: typed("nothing of the kind") }, held))
      assert.strictEqual(yield* use(olgas.token), "live", "a sign-in that fails ends nothing")
      const ottos = yield* half("otto", held, strict.admin)
      assert.strictEqual(yield* use(olgas.token), "SessionInvalid")
      assert.deepStrictEqual(fieldsOf("admin_logout"), [{ username: "olga", scope: "one", sessions: 1 }])
      const next = yield* enter("olga", { ...here, held: ottos.token })
      assert.strictEqual((yield* Effect.flip(sessions.authenticateHalf(admin, ottos.token)))._tag, "SessionInvalid")
      yield* enter("otto", { ...here, held: Redacted.make("no token at all") })
      assert.strictEqual(yield* use(next.token), "live")
      assert.lengthOf(fieldsOf("admin_logout"), 1)
    }))

  test("are counted in the row of the change that ends them", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      const counts = Effect.map(
        column("SELECT detail FROM audit_log WHERE detail LIKE '%sessions_revoked%' ORDER BY id"),
        (rows) => rows.map((text) => (JSON.parse(text) as { readonly sessions_revoked: number }).sessions_revoked)
      )
      yield* enter("olga")
      const { identity } = yield* enter("olga")
      const passwords = { current: typed(password), chosen: typed(chosen) }
      yield* own.changePassword(config, identity, passwords, here)
      yield* operators.setRole(keyboard, "olga", "operator")
      yield* operators.setPassword(config, keyboard, "olga", typed(password))
      yield* enter("olga")
      yield* enter("olga")
      yield* enrolled((yield* enter("olga")).identity)
      yield* operators.resetTotp(keyboard, "olga")
      const forced = yield* half("olga", here, strict.admin)
      yield* enter("olga")
      const { secret } = yield* mfa.beginEnrolment(config.admin, forced.identity)
      yield* mfa.confirmEnrolment(strict.admin, forced.identity, yield* codeOf(secretOf(secret)), here)
      yield* operators.disable(keyboard, "olga")
      yield* operators.enable(keyboard, "olga")
      yield* operators.resetTotp(keyboard, "olga")
      yield* enter("olga")
      yield* operators.remove(keyboard, "olga")
      assert.deepStrictEqual(yield* counts, [1, 1, 0, 2, 1, 1, 1, 0, 1])
    }))

  test("are listed newest first while they live, and are ended by their name, which gives no access", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* made("otto")
      const dead = yield* enter("olga")
      yield* TestClock.adjust("1 hour")
      const one = yield* enter("olga")
      yield* TestClock.adjust("1 second")
      const current = yield* enter("olga")
      const foreign = yield* enter("otto")
      const list = sessions.listOwn(admin, current.identity, all)
      const shown = Effect.map(list, ({ current, items }) => items.map((item) => objects.sessionObject(item, current)))
      const [newest, older, ...rest] = yield* shown
      assert.deepStrictEqual(rest, [])
      assert.deepStrictEqual(newest, {
        id: current.identity.tokenHash.slice(0, 16),
        state: "active",
        createdAt: "2027-01-15T09:00:16Z",
        expiresAt: "2027-01-15T21:00:16Z",
        lastSeenAt: "2027-01-15T09:00:16Z",
        createdIp: "192.0.2.1",
        userAgent: "test/1",
        current: true
      })
      assert.isUndefined(older?.current)
      const name = (of: typeof one) => of.identity.tokenHash.slice(0, 16)
      for (const none of ["", "0".repeat(16), name(foreign), one.identity.tokenHash, name(one).slice(0, 8)]) {
        const refused = yield* Effect.flip(sessions.revokeOwn(current.identity, none, here))
        assert.deepInclude(refused, { _tag: "NoSuch", noun: "session" }, none)
      }
      assert.deepStrictEqual(yield* sessions.revokeOwn(current.identity, name(one), here), { isCurrent: false })
      assert.strictEqual(yield* use(one.token), "SessionInvalid")
      assert.deepStrictEqual(yield* sessions.revokeOwn(current.identity, name(current), here), { isCurrent: true })
      assert.deepStrictEqual([yield* use(current.token), yield* use(foreign.token)], ["SessionInvalid", "live"])
      assert.strictEqual(yield* use(dead.token), "SessionIdle")
      const rows = yield* sql(
        "SELECT detail, actor_kind, actor_id, client_ip, user_agent, request_id FROM audit_log WHERE event = 'session_revoked'"
      )
      const told = {
        actor_kind: "admin",
        actor_id: "olga",
        client_ip: "192.0.2.1",
        user_agent: "test/1",
        request_id: "request-1",
        detail: { target: "olga", scope: "one", sessions: 1 }
      }
      assert.deepStrictEqual(
        rows.map(({ detail, ...rest }) => ({ ...rest, detail: JSON.parse(String(detail)) })),
        [told, told]
      )
      assert.include(eventsOf(records), "admin_session_revoked")
    }))

  test("of other operators can be seen and ended by admins and on the command line", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      const [one, other] = [yield* enter("olga"), yield* enter("olga")]
      const root = yield* enter("root")
      const asRoot = { kind: "admin", id: "root", client: here.client, surface: "api" } as const
      assert.strictEqual((yield* others.sessionsOf(admin, "olga", all)).total, 2)
      assert.strictEqual((yield* others.everySession(admin, all)).total, 3)
      const { items } = yield* others.everySession(admin, { limit: 1, offset: 2 })
      assert.deepStrictEqual(items.map(({ username }) => username).length, 1)
      const asOlga = { ...asRoot, id: "olga" }
      assert.strictEqual((yield* Effect.flip(others.revokeSessions(asOlga, "root")))._tag, "InsufficientRole")
      assert.strictEqual(yield* others.revokeSessions(asRoot, "olga", one.identity.tokenHash.slice(0, 16)), 1)
      assert.deepStrictEqual([yield* use(one.token), yield* use(other.token)], ["SessionInvalid", "live"])
      assert.strictEqual(yield* others.revokeSessions(asRoot, "olga"), 1)
      assert.strictEqual(yield* others.revokeSessions(asRoot, "olga"), 0)
      assert.strictEqual(yield* use(root.token), "live")
      assert.strictEqual(yield* others.revokeEverySession(keyboard), 1)
      assert.strictEqual(yield* others.revokeEverySession(keyboard), 0)
      assert.deepStrictEqual(
        (yield* column("SELECT detail FROM audit_log WHERE event = 'session_revoked' ORDER BY id")).map((text) =>
          JSON.parse(text)
        ),
        [
          { target: "olga", scope: "one", sessions: 1 },
          { target: "olga", scope: "operator", sessions: 1 },
          { scope: "all", sessions: 1 }
        ],
        "a request that ended nothing left nothing"
      )
      assert.include(eventsOf(records), "admin_operator_session_revoked")
    }))

  test("are shown without their tokens, and without their operator if they are incomplete", () =>
    Effect.gen(function*() {
      yield* made("olga", "operator")
      const { identity } = yield* enter("olga")
      assert.deepStrictEqual(objects.sessionBody(identity), {
        user: { id: identity.userId, username: "olga", role: "operator", totpEnabled: false },
        csrfToken: identity.csrfToken,
        expiresAt: "2027-01-15T20:00:15Z"
      })
      const pending = yield* half("olga", here, strict.admin)
      assert.deepStrictEqual(objects.halfSessionBody(pending.identity), {
        mfaRequired: true,
        step: "enrol",
        csrfToken: pending.identity.csrfToken,
        expiresAt: "2027-01-15T08:05:15Z"
      })
    }))

  test("count from their first use if a clock that was half an hour ahead began them, and last no longer than other sessions", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* TestClock.adjust("30 minutes")
      const { token } = yield* enter("olga")
      const pending = yield* half("olga", here, strict.admin)
      yield* TestClock.setTime(startsAt * 1000)
      const found = yield* sessions.authenticate(admin, token, { touch: false })
      assert.strictEqual(found.expiresAt, startsAt + admin.session_ttl_seconds)
      assert.strictEqual((yield* sessions.authenticateHalf(admin, pending.token)).expiresAt, startsAt + 300)
      assert.deepStrictEqual(
        yield* column("SELECT expires_at || ' ' || last_seen_at FROM admin_sessions ORDER BY expires_at"),
        [`${startsAt + 300} ${startsAt}`, `${startsAt + admin.session_ttl_seconds} ${startsAt}`]
      )
      yield* TestClock.adjust("3600 seconds")
      assert.strictEqual(yield* use(token), "SessionIdle")
    }))

  test("are refused and swept if a clock that was far ahead began them", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* TestClock.adjust("365 days")
      const { token } = yield* enter("olga")
      yield* TestClock.setTime(startsAt * 1000)
      assert.strictEqual(yield* use(token), "SessionIdle")
      yield* sweepSessions(admin)
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 0)
    }))

  test("keep a later time of use that another process stored in the meantime", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* enter("olga")
      yield* TestClock.adjust("10 minutes")
      const stamp = (at: number) => `UPDATE admin_sessions SET last_seen_at = ${startsAt + at}`
      yield* meanwhileAt(
        "before",
        "UPDATE admin_sessions",
        stamp(599),
        sessions.authenticate(admin, token, { touch: true })
      )
      assert.deepStrictEqual(yield* column("SELECT last_seen_at FROM admin_sessions"), [`${startsAt + 599}`])
    }))

  test("are swept after they have ended, like past windows of sign-ins", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* Effect.flip(signIn(admin, { username: "olga", password: typed("nothing of the kind") }, here))
      yield* half("olga", here, strict.admin)
      yield* TestClock.adjust("299 seconds")
      yield* enter("olga")
      yield* withServerClock(sweepSessions(admin))
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 2)
      assert.strictEqual(yield* count("SELECT count(*) FROM login_attempts"), 1)
      yield* TestClock.adjust("1 second")
      yield* withServerClock(sweepSessions(admin))
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 1)
      assert.strictEqual(yield* count("SELECT count(*) FROM login_attempts"), 0)
      const ahead = startsAt + 300 + admin.login_window_seconds
      yield* sql(
        `INSERT INTO login_attempts (key, window_started_at, attempts) VALUES ('a', ${ahead}, 1), ('b', ${
          ahead + 1
        }, 1)`
      )
      yield* withServerClock(sweepSessions(admin))
      assert.deepStrictEqual(yield* column("SELECT key FROM login_attempts"), ["a"])
      assert.deepStrictEqual(fieldsOf("admin_session_reaper_swept"), [
        { rows_removed: 0 },
        { rows_removed: 2 },
        { rows_removed: 1 }
      ])
    }))
})
