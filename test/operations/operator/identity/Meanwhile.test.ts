import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { assert, describe } from "vitest"

import { derive } from "../../../../src/crypto/PasswordHash.ts"
import { currentPeer } from "../../../../src/engine/net/FairSemaphore.ts"
import { operatorOf } from "../../../../src/operations/operator/identity/Identity.ts"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as operatorSessions from "../../../../src/operations/operator/identity/OperatorSessions.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import * as secondFactor from "../../../../src/operations/operator/identity/SecondFactor.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { stepUp } from "../../../../src/operations/operator/identity/StepUp.ts"
import * as tokens from "../../../../src/operations/operator/identity/Tokens.ts"
import { Passwords } from "../../../../src/services/operators/Passwords.ts"
import { nameOf } from "../../../../src/store/operators/SessionRows.ts"
import { secretOf } from "../../../support/Authenticator.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import { hangingUp, meanwhile, meanwhileAt } from "../../../support/Meanwhile.ts"
import {
  chosen,
  codeOf,
  config,
  counted,
  enrolled,
  enter,
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

/*
 * Tests what happens to a request of an operator when something else happens at the same time: another process changes
 * the operator, the client disconnects, or the database or a queue fails.
 */

const { admin } = config

describe.each(databases)("during a request of an operator on $name", (backend) => {
  const { fieldsOf, records, test } = useOperators(backend)

  const olga = Effect.andThen(Effect.andThen(made("root", "admin"), made("olga")), enter("olga"))
  const disabled = "UPDATE admin_users SET status = 'disabled' WHERE username = 'olga'"
  const unpended = "UPDATE admin_users SET totp_pending_secret = NULL"
  const reset = "UPDATE admin_users SET totp_secret = NULL"

  /** Returns a session that must first enrol a factor, and the code that would confirm the factor. */
  const enrolling = Effect.gen(function*() {
    const { identity } = yield* half("olga", here, strict.admin)
    const { secret } = yield* mfa.beginEnrolment(config.admin, identity)
    return { identity, code: yield* codeOf(secretOf(secret)), next: codeOf(secretOf(secret), 30) }
  })

  describe("another process", () => {
    test("may disable the operator, and a correct code then begins no session", () =>
      Effect.gen(function*() {
        const { codes: [code = ""] } = yield* enrolled((yield* olga).identity)
        const { identity } = yield* half("olga")
        const before = yield* count("SELECT count(*) FROM admin_sessions")
        assert.strictEqual(
          yield* tagOf(meanwhile(disabled, mfa.verify(admin, identity, code, here), 2)),
          "SessionInvalid"
        )
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), before)
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes WHERE used_at IS NOT NULL"), 0)
      }))

    test("may abandon the enrolment, and its code then activates nothing", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const { code, identity: pending } = yield* enrolling
        const forced = meanwhile(unpended, mfa.confirmEnrolment(strict.admin, pending, code, here), 2)
        assert.strictEqual(yield* tagOf(forced), "MfaNotPending")
        const { secret } = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const own = secondFactor.confirmEnrolment(admin, identity, yield* codeOf(secretOf(secret)), here)
        assert.strictEqual(yield* tagOf(meanwhile(unpended, own, 2)), "MfaNotPending")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_users WHERE totp_secret IS NOT NULL"), 0)
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 0)
      }))

    test("may activate another factor, and the enrolment in progress is then not shown", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const begin = secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const other = "UPDATE admin_users SET totp_secret = totp_pending_secret"
        yield* begin
        const late = meanwhileAt("before", "SET totp_pending_secret = ", other, begin)
        assert.strictEqual(yield* tagOf(late), "MfaNotPending")
        const shown = yield* count("SELECT count(*) FROM admin_users WHERE totp_pending_secret <> totp_secret")
        assert.strictEqual(shown, 0)
      }))

    test("may activate another factor, and a code of the previous factor then begins no session", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const { secret } = yield* enrolled(identity)
        yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const pending = yield* half("olga")
        const other = "UPDATE admin_users SET totp_secret = totp_pending_secret"
        const late = mfa.verify(admin, pending.identity, yield* codeOf(secret, 30), here)
        assert.strictEqual(yield* tagOf(meanwhile(other, late, 2)), "InvalidCredentials")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions WHERE state = 'active'"), 1)
      }))

    test("may remove the factor, and then no new codes are made and nothing is turned off twice", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        yield* enrolled(identity)
        const renewed = secondFactor.reissueCodes(admin, identity, typed(password), here)
        assert.strictEqual(yield* tagOf(meanwhile(reset, renewed)), "MfaNotEnrolled")
        yield* sql("UPDATE admin_users SET totp_secret = NULL, totp_last_step = NULL")
        yield* enrolled(identity)
        const disable = secondFactor.disable(admin, identity, typed(password), here)
        yield* meanwhile(reset, disable)
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'operator_totp_disabled'"), 0)
      }))

    test("may disable the operator or set another password, and the operator's own change then has no effect", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const change = own.changePassword(config, identity, { current: typed(password), chosen: typed(chosen) }, here)
        assert.strictEqual(yield* tagOf(meanwhile(disabled, change)), "StepUpFailed")
        yield* sql("UPDATE admin_users SET status = 'active'")
        const other = "UPDATE admin_users SET password_hash = 'another' WHERE username = 'olga'"
        assert.strictEqual(yield* tagOf(meanwhile(other, change)), "StepUpFailed")
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'operator_password_changed'"), 0)
      }))
  })

  describe("a client that disconnects", () => {
    /** Runs an act whose client disconnects as soon as it has begun, and expects its log record. */
    const ends = <A, E, R>(event: string, act: Effect.Effect<A, E, R>) =>
      Effect.gen(function*() {
        records.length = 0
        yield* hangingUp(act)
        assert.include(eventsOf(records), event)
      })

    test("does not interrupt or hide a change of an operator that has begun", () =>
      Effect.gen(function*() {
        yield* olga
        const otto = { username: "otto", password: typed(password), role: undefined, contact: undefined }
        yield* ends("admin_operator_created", operators.create(config, keyboard, otto))
        yield* ends("admin_operator_contact_changed", operators.setContact(keyboard, "otto", "otto@example.org"))
        yield* ends("admin_operator_role_changed", operators.setRole(keyboard, "otto", "operator"))
        yield* ends("admin_operator_disabled", operators.disable(keyboard, "otto"))
        yield* ends("admin_operator_enabled", operators.enable(keyboard, "otto"))
        yield* ends("admin_operator_password_changed", operators.setPassword(config, keyboard, "otto", typed(chosen)))
        yield* ends("admin_operator_deleted", operators.remove(keyboard, "otto"))
        yield* enrolled((yield* enter("olga")).identity)
        yield* ends("admin_operator_totp_reset", operators.resetTotp(keyboard, "olga"))
        yield* enter("olga")
        yield* ends("admin_operator_session_revoked", operatorSessions.revokeSessions(keyboard, "olga"))
        yield* enter("olga")
        yield* ends("admin_session_revoked", operatorSessions.revokeEverySession(keyboard))
        const wanted = { name: "backup", role: "viewer", expiresInDays: 1, allowedAddresses: [] } as const
        yield* ends("admin_token_created", tokens.create(keyboard, { ...wanted, username: "olga" }))
        const { items } = yield* tokens.list("olga", { limit: 1, offset: 0 })
        yield* ends("admin_token_revoked", tokens.revoke(keyboard, items[0]?.id ?? ""))
      }))

    test("does not interrupt or hide a change of the operator's own account that has begun", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const contact = { password: typed(password), contact: "olga@example.org" }
        yield* ends("admin_operator_contact_changed", own.changeContact(config, identity, contact, here))
        const begun = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const code = yield* codeOf(secretOf(begun.secret))
        yield* ends("admin_mfa_enrolled", secondFactor.confirmEnrolment(admin, identity, code, here))
        yield* ends("admin_mfa_recovery_codes_reissued", secondFactor.renewCodes(operatorOf(identity, here), "olga"))
        yield* ends("admin_mfa_disabled", secondFactor.disable(admin, identity, typed(password), here))
        const other = yield* enter("olga")
        const change = { current: typed(password), chosen: typed(chosen) }
        yield* ends("admin_operator_password_changed", own.changePassword(config, other.identity, change, here))
        yield* ends("admin_session_revoked", sessions.revokeOwn(other.identity, nameOf(other.identity), here))
        yield* ends("admin_logout", sessions.signOut(identity, { all: false }, here))
      }))

    test("does not interrupt or hide a sign-in that has begun", () =>
      Effect.gen(function*() {
        yield* olga
        const { code, identity } = yield* enrolling
        yield* ends("admin_login_succeeded", mfa.confirmEnrolment(strict.admin, identity, code, here))
        const { identity: verifying } = yield* half("olga")
        yield* ends("admin_mfa_failed", mfa.verify(admin, verifying, "000000", here))
      }))
  })

  test("a further sign-in has to wait five seconds if as many as may fail are in progress, and no operator is locked out", () =>
    Effect.gen(function*() {
      yield* olga
      const gate = yield* Deferred.make<void>()
      const passwords = yield* Layer.build(Passwords.layer({
        iterations: 4,
        recoveryIterations: 1,
        derive: (...given) => Effect.andThen(Deferred.await(gate), derive(...given))
      }))
      const sign = signIn(admin, { username: "olga", password: typed(password) }, here).pipe(
        Effect.provide(passwords),
        Effect.provideService(currentPeer, { host: "192.0.2.1", network: "192.0.2.0/24" })
      )
      const under = yield* Effect.forEach(
        Array.from({ length: admin.login_max_attempts }),
        () => Effect.forkScoped(sign, { startImmediately: true })
      )
      yield* Effect.addFinalizer(() => Deferred.succeed(gate, undefined))
      while ((yield* count("SELECT sum(attempts) FROM login_attempts")) < admin.login_max_attempts) {
        yield* Effect.yieldNow
      }
      const refused = yield* Effect.flip(sign)
      assert.deepInclude({ ...refused }, { _tag: "RateLimited", retryAfter: 5 })
      assert.strictEqual(yield* count("SELECT count(*) FROM login_attempts WHERE key LIKE 'told:%'"), 0)
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(under, Fiber.join)
      yield* sign
    }))

  describe("a full queue of hashes", () => {
    /** Fills every place with a hash that never ends. */
    const stuck = Layer.build(Passwords.layer({ iterations: 4, recoveryIterations: 1, derive: () => Effect.never }))
    const hash = (of?: string) => Effect.flatMap(Passwords, (service) => service.hash("whatever", of))

    test("refuses a sign-in without counting the attempt", () =>
      Effect.gen(function*() {
        yield* olga
        const passwords = yield* stuck
        for (let present = 0; present < 34; present++) yield* Effect.forkScoped(Effect.provide(hash(), passwords))
        yield* Effect.yieldNow
        const signing = signIn(admin, { username: "olga", password: typed(password) }, here)
        assert.strictEqual(yield* tagOf(Effect.provide(signing, passwords)), "RateLimited")
        assert.deepStrictEqual(yield* counted, [])
        assert.deepInclude(fieldsOf("admin_login_failed")[0], { reason: "rate_limited", client_ip: "192.0.2.1" })
      }))

    /** Returns the same hashes, and completes `asked` when the first hash is requested. */
    const noticed = (passwords: Context.Context<Passwords>, asked: Deferred.Deferred<void>) => {
      const { findCode, hash, hashCodes, underWay, verify } = Context.get(passwords, Passwords)
      const notice = <A, E>(self: Effect.Effect<A, E>) => Effect.andThen(Deferred.succeed(asked, undefined), self)
      return Context.make(Passwords, {
        hash: (...given) => notice(hash(...given)),
        verify: (...given) => notice(verify(...given)),
        hashCodes: (...given) => notice(hashCodes(...given)),
        findCode: (...given) => notice(findCode(...given)),
        underWay
      })
    }

    /**
     * Makes the hash of an operator wait while requests of other operators arrive, until this hash loses its place.
     */
    const crowdedOut = <A, E extends { readonly _tag: string }, R>(self: Effect.Effect<A, E, R>) =>
      Effect.gen(function*() {
        const passwords = yield* stuck
        const asked = yield* Deferred.make<void>()
        yield* Effect.forkScoped(Effect.provide(hash("first"), passwords))
        yield* Effect.yieldNow
        const waiting = yield* Effect.forkScoped(tagOf(Effect.provide(self, noticed(passwords, asked))))
        yield* Deferred.await(asked)
        assert.notDeepEqual(yield* counted, [])
        for (let at = 0; at < 16; at++) yield* Effect.forkScoped(Effect.provide(hash(`other-${at}`), passwords))
        return yield* Fiber.join(waiting)
      })

    test("refuses a step-up or a code without counting the attempt", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const pending = yield* enrolling
        const begun = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const code = yield* codeOf(secretOf(begun.secret))
        assert.strictEqual(yield* crowdedOut(stepUp(admin, identity, typed(password), here)), "RateLimited")
        assert.deepStrictEqual(yield* counted, [])
        const confirm = secondFactor.confirmEnrolment(admin, identity, code, here)
        assert.strictEqual(yield* crowdedOut(confirm), "RateLimited")
        assert.deepStrictEqual(yield* counted, [])
        const forced = mfa.confirmEnrolment(strict.admin, pending.identity, code, here)
        assert.strictEqual(yield* crowdedOut(forced), "RateLimited")
        assert.deepStrictEqual(yield* counted, [])
      }))

    test("refuses a recovery code without counting the attempt", () =>
      Effect.gen(function*() {
        const { codes: [code = ""] } = yield* enrolled((yield* olga).identity)
        const { identity } = yield* half("olga")
        assert.strictEqual(yield* crowdedOut(mfa.verify(admin, identity, code, here)), "RateLimited")
        assert.deepStrictEqual(yield* counted, [])
        // A text that cannot be a code is not hashed.
        const odd = Effect.provide(mfa.verify(admin, identity, "no code at all", here), yield* stuck)
        assert.strictEqual(yield* tagOf(odd), "InvalidCredentials")
      }))

    test("causes the attempt to be counted for the operator who has filled the queue", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        const passwords = yield* stuck
        for (let present = 0; present < 17; present++) {
          yield* Effect.forkScoped(Effect.provide(hash("olga"), passwords))
        }
        yield* Effect.yieldNow
        const step = stepUp(admin, identity, typed(password), here)
        assert.strictEqual(yield* tagOf(Effect.provide(step, passwords)), "RateLimited")
        assert.deepStrictEqual(yield* counted, ["192.0.2.1"])
      }))
  })

  describe("a failure of the database", () => {
    /** Runs an effect, and renames a table just before the transaction with this number. */
    const without = <A, E extends { readonly _tag: string }, R>(
      table: string,
      self: Effect.Effect<A, E, R>,
      transaction: number
    ) =>
      Effect.ensuring(
        tagOf(meanwhile(`ALTER TABLE ${table} RENAME TO gone`, self, transaction)),
        sql(`ALTER TABLE gone RENAME TO ${table}`)
      )

    test("asks to try again and changes nothing if it happens after the code was counted", () =>
      Effect.gen(function*() {
        yield* olga
        const { code, identity, next } = yield* enrolling
        const confirm = mfa.confirmEnrolment(strict.admin, identity, code, here)
        assert.strictEqual(yield* without("audit_log", confirm, 2), "Busy")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_users WHERE totp_secret IS NOT NULL"), 0)
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions WHERE state = 'pending_mfa'"), 1)
        yield* confirm
        const { identity: verifying } = yield* half("olga")
        assert.strictEqual(
          yield* without("admin_recovery_codes", mfa.verify(admin, verifying, yield* next, here), 2),
          "Busy"
        )
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions WHERE state = 'pending_mfa'"), 1)
      }))

    test("changes nothing if it happens while a password is compared or a row of the trail is written", () =>
      Effect.gen(function*() {
        const { identity } = yield* olga
        yield* sql("ALTER TABLE login_attempts RENAME TO gone")
        const tag = yield* Effect.ensuring(
          tagOf(stepUp(admin, identity, typed(password), here)),
          sql("ALTER TABLE gone RENAME TO login_attempts")
        )
        assert.strictEqual(tag, "Busy")
        const begun = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
        const confirm = secondFactor.confirmEnrolment(admin, identity, yield* codeOf(secretOf(begun.secret)), here)
        assert.strictEqual(yield* without("audit_log", confirm, 2), "StorageFailed")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_users WHERE totp_secret IS NOT NULL"), 0)
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 0)
        const otto = { username: "otto", password: typed(password), role: undefined, contact: undefined }
        assert.strictEqual(yield* without("audit_log", operators.create(config, keyboard, otto), 1), "StorageFailed")
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_users WHERE username = 'otto'"), 0)
        yield* enrolled(identity)
        const codes = yield* column("SELECT code_hash FROM admin_recovery_codes ORDER BY code_hash")
        const disable = secondFactor.disable(admin, identity, typed(password), here)
        const renew = secondFactor.reissueCodes(admin, identity, typed(password), here)
        const revoke = sessions.revokeOwn(identity, nameOf(identity), here)
        assert.strictEqual(yield* without("audit_log", disable, 1), "StorageFailed")
        assert.strictEqual(yield* without("audit_log", renew, 1), "StorageFailed")
        assert.strictEqual(yield* without("audit_log", revoke, 1), "StorageFailed")
        assert.strictEqual(
          yield* without("audit_log", operatorSessions.revokeEverySession(keyboard), 1),
          "StorageFailed"
        )
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_users WHERE totp_secret IS NOT NULL"), 1)
        assert.deepStrictEqual(yield* column("SELECT code_hash FROM admin_recovery_codes ORDER BY code_hash"), codes)
        assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 1)
      }))
  })
})
