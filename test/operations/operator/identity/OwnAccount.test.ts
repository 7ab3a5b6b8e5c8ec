import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import * as secondFactor from "../../../../src/operations/operator/identity/SecondFactor.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { atOnce, tally } from "../../../support/AtOnce.ts"
import { secretOf } from "../../../support/Authenticator.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import {
  chosen,
  codeOf,
  config,
  enrolled,
  enter,
  from,
  half,
  here,
  keyboard,
  made,
  password,
  strict,
  tagOf,
  typed,
  useOperators
} from "../../../support/Operators.ts"

const { admin } = config

describe.each(databases)("one's own account on $name", (backend) => {
  const { fieldsOf, hashesOf, records, test } = useOperators(backend)

  const trail = column("SELECT event || ' ' || coalesce(client_ip, '-') FROM audit_log ORDER BY id")

  describe("the password", () => {
    test("is changed by an operator who knows the password, and the change ends all other sessions", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const [one, other] = [yield* enter("olga"), yield* enter("olga")]
        const wrong = { current: typed("something else entirely"), chosen: typed(chosen) }
        assert.strictEqual(
          (yield* Effect.flip(own.changePassword(config, one.identity, wrong, here)))._tag,
          "StepUpFailed"
        )
        const right = { current: typed(password), chosen: typed(chosen) }
        yield* own.changePassword(config, one.identity, right, here)
        yield* sessions.authenticate(admin, one.token, { touch: false })
        const ended = yield* Effect.flip(sessions.authenticate(admin, other.token, { touch: false }))
        assert.strictEqual(ended._tag, "SessionInvalid")
        const old = yield* Effect.flip(signIn(admin, { username: "olga", password: typed(password) }, here))
        assert.strictEqual(old._tag, "InvalidCredentials")
        yield* signIn(admin, { username: "olga", password: typed(chosen) }, here)
        assert.deepStrictEqual(yield* trail, ["operator_created -", "operator_password_changed 192.0.2.1"])
        assert.includeMembers([...eventsOf(records)], ["admin_step_up_failed", "admin_operator_password_changed"])
        assert.notInclude(eventsOf(records), "admin_password_hash_unreadable")
      }))

    test("is the same in every Unicode normalization form", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const composed = { username: "olga", password: typed(password.normalize("NFD")) }
        assert.strictEqual((yield* signIn(admin, composed, here))._tag, "Active")
      }))

    test("is refused if it is weak, before anything is hashed", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const change = own.changePassword(config, identity, { current: typed(password), chosen: typed("short") }, here)
        assert.strictEqual((yield* Effect.flip(change))._tag, "WeakPassword")
        const elsewhere = { current: typed(password), chosen: typed("all at localhost today") }
        const named = yield* Effect.flip(own.changePassword(config, identity, elsewhere, here))
        assert.deepInclude(named, { _tag: "WeakPassword", why: "contains localhost, which everybody here knows" })
        assert.strictEqual(yield* hashesOf(change), 0)
      }))

    test("changes only once if two changes come at once", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const change = own.changePassword(config, identity, { current: typed(password), chosen: typed(chosen) }, here)
        assert.deepStrictEqual(tally(yield* atOnce(2, change)), { done: 1, StepUpFailed: 1 })
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 2)
      }))

    test("cannot be guessed in an open session, because each wrong password counts as a failed sign-in of the address", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const guess = own.changeContact(config, identity, {
          password: typed("a wrong one, no doubt"),
          contact: undefined
        }, here)
        let tags: ReadonlyArray<string | undefined> = []
        assert.strictEqual(yield* hashesOf(Effect.map(atOnce(30, guess), (all) => void (tags = all))), 5)
        assert.deepStrictEqual(tally(tags), { StepUpFailed: 5, RateLimited: 25 })
        const signing = yield* Effect.flip(signIn(admin, { username: "olga", password: typed(password) }, here))
        assert.strictEqual(signing._tag, "RateLimited")
      }))
  })

  test("is protected, because a session ends after five wrong passwords whatever their addresses are", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity, token } = yield* enter("olga")
      const by = (given: string, at: number) =>
        own.changeContact(config, identity, { password: typed(given), contact: undefined }, from(`198.51.100.${at}`))
      // A right password is not counted, and does not reset the count.
      for (let at = 0; at < 6; at++) yield* by(password, at)
      let tags: ReadonlyArray<string | undefined> = []
      const guesses = Effect.forEach(
        Array.from({ length: 25 }, (_, at) => at),
        (at) => Effect.result(by("a wrong one, no doubt", at)),
        { concurrency: "unbounded" }
      )
      const told = Effect.map(
        guesses,
        (all) => void (tags = all.map((one) => Result.isFailure(one) ? one.failure._tag : ""))
      )
      assert.strictEqual(yield* hashesOf(told), 5)
      assert.deepStrictEqual(tally(tags), { StepUpFailed: 5, SessionInvalid: 20 })
      assert.strictEqual(yield* tagOf(sessions.authenticate(admin, token, { touch: false })), "SessionInvalid")
      assert.strictEqual(yield* tagOf(by(password, 99)), "SessionInvalid")
      // The order of the attempts depends on the database, so any of them may be the fifth.
      assert.match((yield* trail).join(), /(^|,)session_revoked 198\.51\.100\.\d+$/)
      assert.deepInclude(fieldsOf("admin_session_revoked")[0], { username: "olga", sessions: 1 })
      yield* enter("olga")
    }))

  test("has a contact, and setting the same contact again is no change", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      const set = (contact: string | undefined) =>
        own.changeContact(config, identity, { password: typed(password), contact }, here)
      yield* set("olga@example.org")
      yield* set("olga@example.org")
      assert.deepStrictEqual(yield* column("SELECT contact_email FROM admin_users"), ["olga@example.org"])
      yield* set(undefined)
      assert.isNull((yield* sql("SELECT contact_email FROM admin_users"))[0]?.contact_email)
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'operator_contact_updated'"), 2)
      assert.include(eventsOf(records), "admin_operator_contact_changed")
      assert.notInclude(JSON.stringify([records, yield* sql("SELECT * FROM audit_log")]), "olga@example.org")
    }))

  describe("the second factor", () => {
    test("is not confirmed by a wrong code, and a complete session survives even the last permitted attempt", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity, token } = yield* enter("olga")
        yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const once = { ...admin, login_max_attempts: 1 }
        assert.strictEqual(
          yield* tagOf(secondFactor.confirmEnrolment(once, identity, "000000", here)),
          "InvalidCode"
        )
        assert.deepStrictEqual(fieldsOf("admin_mfa_failed").map(({ reason }) => reason), ["wrong_code"])
        yield* sessions.authenticate(admin, token, { touch: false })
      }))

    test("is enrolled for the first time only with the password, so a stolen session is not enough", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const guess = secondFactor.beginEnrolment(admin, identity, typed("a wrong one, no doubt"), here)
        assert.strictEqual(yield* tagOf(guess), "StepUpFailed")
        assert.deepInclude(yield* secondFactor.status(identity), { totpEnabled: false, enrolmentPending: false })
        yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        assert.deepInclude(yield* secondFactor.status(identity), { totpEnabled: false, enrolmentPending: true })
      }))

    test("is not confirmed while attempts cannot be counted", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const { secret } = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const confirmed = secondFactor.confirmEnrolment(admin, identity, yield* codeOf(secretOf(secret)), here)
        yield* sql("ALTER TABLE login_attempts RENAME TO gone")
        const refused = Effect.ensuring(tagOf(confirmed), sql("ALTER TABLE gone RENAME TO login_attempts"))
        assert.strictEqual(yield* refused, "Busy")
        yield* confirmed
      }))

    test("becomes active with its first code, and the other sessions end", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const [one, other] = [yield* enter("olga"), yield* enter("olga")]
        assert.deepStrictEqual(yield* secondFactor.status(one.identity), {
          totpEnabled: false,
          enrolmentPending: false,
          recoveryCodesRemaining: 0
        })
        yield* secondFactor.beginEnrolment(admin, one.identity, typed(password), here)
        assert.deepInclude(yield* secondFactor.status(one.identity), { totpEnabled: false, enrolmentPending: true })
        yield* enrolled(one.identity)
        assert.deepStrictEqual(yield* secondFactor.status(one.identity), {
          totpEnabled: true,
          enrolmentPending: false,
          recoveryCodesRemaining: 10
        })
        yield* sessions.authenticate(admin, one.token, { touch: false })
        assert.strictEqual(
          (yield* Effect.flip(sessions.authenticate(admin, other.token, { touch: false })))._tag,
          "SessionInvalid"
        )
        assert.include(eventsOf(records), "admin_mfa_enrolled")
      }))

    test("stays active until the next factor is confirmed and replaces the factor together with the codes", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const old = yield* enrolled(identity)
        const wrong = yield* Effect.flip(
          secondFactor.beginEnrolment(strict.admin, identity, typed("a wrong one, no doubt"), here)
        )
        assert.strictEqual(wrong._tag, "StepUpFailed")
        const next = yield* secondFactor.beginEnrolment(strict.admin, identity, typed(password), here)
        yield* TestClock.adjust("30 seconds")
        const signing = yield* half("olga")
        yield* mfa.verify(admin, signing.identity, yield* codeOf(old.secret), here)
        const secret = secretOf(next.secret)
        const codes = yield* secondFactor.confirmEnrolment(admin, identity, yield* codeOf(secret), here)
        assert.notDeepEqual(codes, old.codes)
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 10)
        yield* TestClock.adjust("30 seconds")
        const late = yield* half("olga")
        const refused = yield* Effect.flip(mfa.verify(admin, late.identity, yield* codeOf(old.secret), here))
        assert.strictEqual(refused._tag, "InvalidCredentials")
        yield* mfa.verify(admin, late.identity, yield* codeOf(secret), here)
      }))

    test("is replaced, turned off or given new codes only with the password", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        yield* enrolled(identity)
        const codes = column("SELECT code_hash FROM admin_recovery_codes ORDER BY id")
        const before = yield* codes
        const guess = typed("a wrong one, no doubt")
        const refusals = Effect.all([
          tagOf(secondFactor.beginEnrolment(admin, identity, guess, here)),
          tagOf(secondFactor.disable(admin, identity, guess, here)),
          tagOf(secondFactor.reissueCodes(admin, identity, guess, here))
        ])
        assert.deepStrictEqual(yield* refusals, ["StepUpFailed", "StepUpFailed", "StepUpFailed"])
        assert.deepStrictEqual(yield* secondFactor.status(identity), {
          totpEnabled: true,
          enrolmentPending: false,
          recoveryCodesRemaining: 10
        })
        assert.deepStrictEqual(yield* codes, before)
      }))

    test("is confirmed only once if two codes come at once, and only after an enrolment has begun", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const confirm = (code: string) => secondFactor.confirmEnrolment(admin, identity, code, here)
        assert.strictEqual((yield* Effect.flip(confirm("000000")))._tag, "MfaNotPending")
        const { secret } = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const tags = yield* atOnce(2, confirm(yield* codeOf(secretOf(secret))))
        assert.deepStrictEqual(tally(tags), { done: 1, MfaNotPending: 1 })
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 10)
      }))

    test("is turned off with the password, unless a second factor is required", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const off = (settings = admin) => secondFactor.disable(settings, identity, typed(password), here)
        yield* off()
        assert.notInclude(eventsOf(records), "admin_mfa_disabled", "there is none")
        yield* enrolled(identity)
        assert.strictEqual((yield* Effect.flip(off(strict.admin)))._tag, "MfaRequired")
        yield* off()
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 0)
        assert.strictEqual((yield* enter("olga")).identity.totpEnabled, false)
        assert.include(eventsOf(records), "admin_mfa_disabled")
        assert.deepStrictEqual((yield* trail).slice(1), [
          "operator_totp_enrolled 192.0.2.1",
          "operator_totp_disabled 192.0.2.1"
        ])
      }))

    test("gets all of its new recovery codes at once, and the old codes become invalid", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga")
        const again = () => secondFactor.reissueCodes(admin, identity, typed(password), here)
        assert.strictEqual((yield* Effect.flip(again()))._tag, "MfaNotEnrolled")
        assert.strictEqual(yield* hashesOf(again()), 0, "for who has no factor nothing is hashed")
        assert.strictEqual(yield* hashesOf(operators.renewCodes(keyboard, "olga")), 0)
        const { codes: [old = ""] } = yield* enrolled(identity)
        const [fresh = ""] = yield* again()
        const signing = yield* half("olga")
        assert.strictEqual(
          (yield* Effect.flip(mfa.verify(admin, signing.identity, old, here)))._tag,
          "InvalidCredentials"
        )
        yield* mfa.verify(admin, signing.identity, fresh, here)
        assert.include(eventsOf(records), "admin_mfa_recovery_codes_reissued")
        assert.include(yield* trail, "operator_recovery_codes_regenerated 192.0.2.1")
      }))
  })

  test("cannot be changed after its operator was disabled", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      const { identity } = yield* enter("olga")
      yield* operators.disable(keyboard, "olga")
      const change = own.changePassword(config, identity, { current: typed(password), chosen: typed(chosen) }, here)
      assert.strictEqual((yield* Effect.flip(change))._tag, "SessionInvalid")
      assert.strictEqual((yield* Effect.flip(secondFactor.status(identity)))._tag, "SessionInvalid")
      const begun = secondFactor.beginEnrolment(admin, identity, typed(password), from("192.0.2.4"))
      assert.strictEqual((yield* Effect.flip(begun))._tag, "SessionInvalid")
    }))
})
