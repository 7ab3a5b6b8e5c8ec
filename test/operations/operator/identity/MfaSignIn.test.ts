import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { begin, series } from "../../../../src/domain/words/Series.ts"
import * as Registry from "../../../../src/engine/telemetry/Registry.ts"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { atOnce, tally } from "../../../support/AtOnce.ts"
import { secretOf } from "../../../support/Authenticator.ts"
import { counted as countedIn } from "../../../support/Counted.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import {
  codeOf,
  config,
  counted,
  enrolled,
  enter,
  from,
  half,
  here,
  keyboard,
  made,
  strict,
  typed,
  useOperators,
  wrong
} from "../../../support/Operators.ts"

const { admin } = config

describe.each(databases)("the second step of a sign-in on $name", (backend) => {
  const { fieldsOf, records, test } = useOperators(backend)

  /** Makes an operator with a factor whose next code has not been used. */
  const withFactor = Effect.gen(function*() {
    yield* made("olga")
    const { secret, codes } = yield* enrolled((yield* enter("olga")).identity)
    yield* TestClock.adjust("30 seconds")
    return { secret, codes }
  })

  const reasons = () => fieldsOf("admin_mfa_failed").map(({ reason }) => reason)

  test("accepts a code of the authenticator, and replaces the incomplete session with a new session", () =>
    Effect.gen(function*() {
      const { secret } = yield* withFactor
      const { identity, token } = yield* half("olga")
      assert.strictEqual(identity.step, "verify")
      assert.deepStrictEqual(yield* sessions.authenticateHalf(admin, token), identity)
      const active = yield* mfa.verify(admin, identity, ` ${yield* codeOf(secret)} `, here)
      assert.notStrictEqual(active.identity.tokenHash, identity.tokenHash)
      assert.notStrictEqual(active.identity.csrfToken, identity.csrfToken)
      assert.isTrue(active.identity.totpEnabled)
      assert.strictEqual((yield* Effect.flip(sessions.authenticateHalf(admin, token)))._tag, "SessionInvalid")
      assert.strictEqual((yield* Effect.flip(sessions.authenticateHalf(admin, active.token)))._tag, "SessionInvalid")
      assert.deepStrictEqual(yield* sessions.authenticate(admin, active.token, { touch: true }), active.identity)
      assert.includeMembers([...eventsOf(records)], ["admin_mfa_verified", "admin_login_succeeded"])
      assert.notInclude(eventsOf(records), "admin_mfa_recovery_code_used")
    }))

  test("accepts the present code even if a clock that was ahead has used the code of a later day", () =>
    Effect.gen(function*() {
      const { secret } = yield* withFactor
      const now = yield* Clock.currentTimeMillis
      yield* TestClock.adjust("1 day")
      yield* mfa.verify(admin, (yield* half("olga")).identity, yield* codeOf(secret), here)
      yield* TestClock.setTime(now)
      const { identity } = yield* half("olga")
      yield* mfa.verify(admin, identity, yield* codeOf(secret), here)
      const again = yield* half("olga")
      const refused = yield* Effect.flip(mfa.verify(admin, again.identity, yield* codeOf(secret), here))
      assert.strictEqual(refused._tag, "InvalidCredentials", "and takes it once")
      // Clocks of processes differ by less than an hour. A used step that is less far ahead stays stored.
      yield* sql(`UPDATE admin_users SET totp_last_step = ${Math.floor(now / 30_000) + 120}`)
      const near = yield* Effect.flip(mfa.verify(admin, again.identity, yield* codeOf(secret), here))
      assert.strictEqual(near._tag, "InvalidCredentials")
      yield* sql(`UPDATE admin_users SET totp_last_step = ${Math.floor(now / 30_000) + 121}`)
      yield* mfa.verify(admin, again.identity, yield* codeOf(secret), here)
    }))

  test("counts successful sign-ins, and refused codes and passwords", () =>
    Effect.gen(function*() {
      yield* begin("acme_svc_sign_ins_total", {})
      yield* withFactor
      const { identity } = yield* half("olga")
      for (const code of ["000000", "000001"]) yield* Effect.flip(mfa.verify(admin, identity, code, here))
      yield* Effect.flip(signIn(admin, { username: "olga", password: typed(wrong) }, here))
      const outcomes = ["signed_in", "password_refused", "second_factor_refused", "limited"]
      const found = yield* Effect.forEach(
        outcomes,
        (outcome) => countedIn(`acme_svc_sign_ins_total{role="admin",outcome="${outcome}"}`)
      )
      assert.deepStrictEqual(found, [1, 1, 2, 0])
    }).pipe(Effect.provide(Registry.layer("admin", series))))

  test("accepts the codes of the present step and of its two neighbours, but no code from two steps away", () =>
    Effect.gen(function*() {
      const { secret } = yield* withFactor
      for (const [later, passes] of [[-60, false], [60, false], [-30, true], [0, true], [30, true]] as const) {
        // The enrolment has used a time step. The test forgets that step, because it checks only the window.
        yield* sql("UPDATE admin_users SET totp_last_step = NULL")
        const { identity } = yield* half("olga")
        const passed = yield* Effect.result(mfa.verify(admin, identity, yield* codeOf(secret, later), here))
        assert.strictEqual(passed._tag === "Success", passes, String(later))
      }
    }))

  test("accepts a code only once, even if it is sent twice at once, again later, or after a later code", () =>
    Effect.gen(function*() {
      const { secret } = yield* withFactor
      const code = yield* codeOf(secret)
      const [one, other, third] = [yield* half("olga"), yield* half("olga"), yield* half("olga")]
      const both = Effect.all(
        [one, other].map(({ identity }) => Effect.result(mfa.verify(admin, identity, code, here))),
        { concurrency: "unbounded" }
      )
      assert.sameMembers((yield* both).map(({ _tag }) => _tag), ["Failure", "Success"])
      const again = yield* Effect.flip(mfa.verify(admin, third.identity, code, here))
      const earlier = yield* Effect.flip(mfa.verify(admin, third.identity, yield* codeOf(secret, -30), here))
      assert.deepStrictEqual([again._tag, earlier._tag], ["InvalidCredentials", "InvalidCredentials"])
      assert.deepStrictEqual(reasons(), ["replayed", "replayed", "replayed"])
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions WHERE state = 'active'"), 2)
    }))

  test("accepts a recovery code once in any notation, even if it is used twenty times at once", () =>
    Effect.gen(function*() {
      const { codes: [code = ""] } = yield* withFactor
      assert.match(code, /^[A-Z2-7]{5}-[A-Z2-7]{5}$/)
      const generous = { ...admin, login_max_attempts: 100 }
      const { identity } = yield* half("olga")
      const written = code.toLowerCase().replace("-", " ")
      const tags = yield* atOnce(20, mfa.verify(generous, identity, written, here))
      assert.strictEqual(tally(tags)["done"], 1, JSON.stringify(tally(tags)))
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes WHERE used_at IS NOT NULL"), 1)
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 10, "a used one stays")
      const told = fieldsOf("admin_mfa_recovery_code_used")
      assert.deepStrictEqual(told, [{ username: "olga", remaining: 9 }])
      const elsewhere = from("192.0.2.77")
      const another = yield* half("olga", elsewhere)
      const again = yield* Effect.flip(mfa.verify(generous, another.identity, code, elsewhere))
      assert.strictEqual(again._tag, "InvalidCredentials")
    }))

  test("completes one session if twenty sessions use one recovery code at once", () =>
    Effect.gen(function*() {
      const { codes: [code = ""] } = yield* withFactor
      const generous = { ...admin, login_max_attempts: 100 }
      const halves = yield* Effect.replicateEffect(half("olga"), 20)
      const results = yield* Effect.all(
        halves.map(({ identity }) => Effect.result(mfa.verify(generous, identity, code, here))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(results.filter(({ _tag }) => _tag === "Success").length, 1)
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions WHERE state = 'active'"), 2)
    }))

  test("counts nothing if a code is sent twice at once, because the second request finds that its session has ended", () =>
    Effect.gen(function*() {
      const { codes } = yield* withFactor
      for (const code of codes.slice(0, 6)) {
        const { identity } = yield* half("olga")
        const tags = yield* atOnce(2, mfa.verify(admin, identity, code, here))
        assert.deepStrictEqual(tally(tags), { done: 1, SessionInvalid: 1 })
      }
      assert.deepStrictEqual(yield* counted, [])
    }))

  test("completes an incomplete session only once if two codes are sent at once, and leaves the other code unused", () =>
    Effect.gen(function*() {
      const { codes: [one = "", other = ""] } = yield* withFactor
      const { identity } = yield* half("olga")
      const results = yield* Effect.all(
        [one, other].map((code) => Effect.result(mfa.verify(admin, identity, code, here))),
        { concurrency: "unbounded" }
      )
      assert.sameMembers(results.map(({ _tag }) => _tag), ["Failure", "Success"])
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes WHERE used_at IS NOT NULL"), 1)
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions WHERE state = 'active'"), 2)
    }))

  test("counts each code before it checks the code, and ends a session after its last permitted code", () =>
    Effect.gen(function*() {
      const { secret } = yield* withFactor
      const stranger = from("192.0.2.66")
      const { identity, token } = yield* half("olga", stranger)
      const tags = yield* atOnce(20, mfa.verify({ ...admin, login_max_attempts: 5 }, identity, "000000", stranger))
      assert.deepStrictEqual(tally(tags), { InvalidCredentials: 5, SessionInvalid: 15 })
      assert.strictEqual((yield* Effect.flip(sessions.authenticateHalf(admin, token)))._tag, "SessionInvalid")
      assert.deepStrictEqual(tally(reasons().map(String)), { wrong_code: 5, attempts_exhausted: 16 })
      const fresh = yield* half("olga", from("192.0.2.77"))
      const refused = yield* Effect.flip(mfa.verify(admin, fresh.identity, yield* codeOf(secret), from("192.0.2.77")))
      assert.strictEqual(refused._tag, "RateLimited", "new sessions and addresses buy no more guesses")
      const signIn = half("olga", stranger)
      assert.strictEqual((yield* Effect.flip(signIn))._tag, "RateLimited", "and the address has none left either")
      // An attacker who knows the password cannot lock out the operator at a known address.
      yield* mfa.verify(admin, (yield* half("olga")).identity, yield* codeOf(secret), here)
      yield* TestClock.adjust("300 seconds")
      yield* mfa.verify(admin, (yield* signIn).identity, yield* codeOf(secret), stranger)
    }))

  test("accepts only five codes of an operator, even from a known address", () =>
    Effect.gen(function*() {
      const { secret } = yield* withFactor
      const { identity } = yield* half("olga")
      const tags = yield* atOnce(20, mfa.verify(admin, identity, "000000", here))
      assert.deepStrictEqual(tally(tags), { InvalidCredentials: 5, SessionInvalid: 15 })
      const anew = yield* Effect.flip(half("olga"))
      assert.strictEqual(anew._tag, "RateLimited")
      const elsewhere = from("192.0.2.77")
      yield* mfa.verify(admin, (yield* half("olga", elsewhere)).identity, yield* codeOf(secret), elsewhere)
    }))

  test("is refused if the operator was disabled or the factor was removed meanwhile", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      const { secret } = yield* withFactor
      const first = yield* half("olga")
      yield* operators.resetTotp(keyboard, "olga")
      assert.strictEqual(
        (yield* Effect.flip(mfa.verify(admin, first.identity, yield* codeOf(secret), here)))._tag,
        "MfaNotEnrolled"
      )
      yield* operators.disable(keyboard, "olga")
      assert.strictEqual((yield* Effect.flip(mfa.verify(admin, first.identity, "000000", here)))._tag, "SessionInvalid")
    }))

  describe("with an enrolment", () => {
    test("accepts five codes of an operator in a window, whatever the addresses are", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const most = { ...strict.admin, login_max_attempts: 5 }
        const one = from("192.0.2.66")
        const { identity } = yield* half("olga", one, strict.admin)
        yield* mfa.beginEnrolment(config.admin, identity)
        const confirm = (of: typeof identity, at: typeof one) =>
          Effect.flip(mfa.confirmEnrolment(most, of, "000000", at))
        for (let count = 0; count < 5; count++) {
          assert.strictEqual((yield* confirm(identity, one))._tag, "InvalidCredentials")
        }
        const other = from("192.0.2.77")
        const anew = yield* half("olga", other, strict.admin)
        yield* mfa.beginEnrolment(config.admin, anew.identity)
        assert.strictEqual((yield* confirm(anew.identity, other))._tag, "RateLimited")
      }))

    test("shows a secret, shows recovery codes after the first correct code, and uses up the step of that code", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* half("olga", here, strict.admin)
        const enrolment = yield* mfa.beginEnrolment(config.admin, identity)
        assert.strictEqual(
          enrolment.uri,
          `otpauth://totp/ACME%20Service%20localhost:olga?secret=${enrolment.secret}&issuer=ACME%20Service%20localhost&algorithm=SHA1&digits=6&period=30`
        )
        assert.match(enrolment.secret, /^[A-Z2-7]{32}$/)
        assert.deepInclude(enrolment, { algorithm: "SHA1", digits: 6, period: 30 })
        const code = yield* codeOf(secretOf(enrolment.secret))
        const other = code === "000000" ? "000001" : "000000"
        const wrong = yield* Effect.flip(mfa.confirmEnrolment(strict.admin, identity, other, here))
        assert.strictEqual(wrong._tag, "InvalidCredentials")
        const { active, recoveryCodes } = yield* mfa.confirmEnrolment(strict.admin, identity, code, here)
        assert.strictEqual(new Set(recoveryCodes).size, 10)
        assert.isTrue((yield* sessions.authenticate(admin, active.token, { touch: true })).totpEnabled)
        assert.deepStrictEqual(yield* column("SELECT event FROM audit_log ORDER BY id"), [
          "operator_created",
          "operator_totp_enrolled"
        ])
        const next = yield* half("olga")
        assert.strictEqual(
          (yield* Effect.flip(mfa.verify(admin, next.identity, code, here)))._tag,
          "InvalidCredentials"
        )
        const stored = JSON.stringify(yield* sql("SELECT * FROM admin_recovery_codes"))
        for (const recovery of recoveryCodes) assert.notInclude(stored, recovery.replace("-", ""))
        assert.match(stored, /pbkdf2-sha256\$i=1\$/)
      }))

    test("accepts only the newest secret, and is refused to an operator who already has a factor", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* half("olga", here, strict.admin)
        assert.strictEqual(
          (yield* Effect.flip(mfa.confirmEnrolment(admin, identity, "000000", here)))._tag,
          "MfaNotPending"
        )
        const first = secretOf((yield* mfa.beginEnrolment(config.admin, identity)).secret)
        const second = secretOf((yield* mfa.beginEnrolment(config.admin, identity)).secret)
        const old = yield* Effect.flip(mfa.confirmEnrolment(admin, identity, yield* codeOf(first), here))
        assert.strictEqual(old._tag, "InvalidCredentials")
        // Another incomplete session. Meanwhile, a factor is enrolled in the first session.
        const another = yield* half("olga", here, strict.admin)
        yield* mfa.confirmEnrolment(admin, identity, yield* codeOf(second), here)
        assert.strictEqual((yield* Effect.flip(mfa.beginEnrolment(config.admin, another.identity)))._tag, "MfaPending")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 1, "other sessions have ended")
        const verifying = yield* half("olga")
        assert.strictEqual(
          (yield* Effect.flip(mfa.beginEnrolment(config.admin, verifying.identity)))._tag,
          "MfaPending"
        )
        const confirming = yield* Effect.flip(mfa.confirmEnrolment(admin, verifying.identity, "000000", here))
        assert.strictEqual(confirming._tag, "MfaPending")
      }))

    test("is abandoned when the incomplete session is ended", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity, token } = yield* half("olga", here, strict.admin)
        yield* sessions.abandonHalf(identity)
        assert.strictEqual((yield* Effect.flip(sessions.authenticateHalf(admin, token)))._tag, "SessionInvalid")
      }))
  })
})
