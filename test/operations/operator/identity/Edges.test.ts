import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { longestTokenName, mostTokenAddresses, tokenLife } from "../../../../src/domain/ApiToken.ts"
import { authenticateToken } from "../../../../src/operations/operator/identity/Bearer.ts"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import { remarks } from "../../../../src/operations/operator/identity/Remarks.ts"
import * as secondFactor from "../../../../src/operations/operator/identity/SecondFactor.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { stepUp } from "../../../../src/operations/operator/identity/StepUp.ts"
import * as tokens from "../../../../src/operations/operator/identity/Tokens.ts"
import { secretOf } from "../../../support/Authenticator.ts"
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
  password,
  startsAt,
  strict,
  tagOf,
  typed,
  useOperators,
  wrong
} from "../../../support/Operators.ts"

/* Tests limits at their last permitted value, refusals that change nothing, and the log records about both. */

const { admin } = config

describe.each(databases)("limits of operators on $name", (backend) => {
  const { fieldsOf, records, test } = useOperators(backend)

  const reasons = (event: Parameters<typeof fieldsOf>[0]) => fieldsOf(event).map(({ reason }) => reason)
  const pendingSecrets = count("SELECT count(*) FROM admin_users WHERE totp_pending_secret IS NOT NULL")

  test("attempts beyond the limit are logged as such and do not increase the count", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      const { secret } = yield* enrolled(identity)
      const strangers = [from("192.0.2.66"), from("192.0.2.67")] as const
      const session = yield* half("olga", strangers[0])
      const guess = mfa.verify(admin, session.identity, "000000", strangers[0])
      for (let time = 0; time < 5; time++) assert.strictEqual(yield* tagOf(guess), "InvalidCredentials")
      assert.deepStrictEqual(reasons("admin_mfa_failed"), [
        ...Array<string>(5).fill("wrong_code"),
        "attempts_exhausted"
      ])
      const next = yield* half("olga", strangers[1])
      const right = mfa.verify(admin, next.identity, yield* codeOf(secret, 30), strangers[1])
      assert.strictEqual(yield* tagOf(right), "RateLimited")
      assert.strictEqual(reasons("admin_mfa_failed").at(-1), "rate_limited")
      const attempts = column("SELECT mfa_attempts FROM admin_sessions WHERE state = 'pending_mfa'")
      assert.deepStrictEqual(yield* attempts, ["0"], "the session has all its codes left")
      const step = (given: string) => stepUp(admin, identity, typed(given), here)
      for (let time = 0; time < 5; time++) assert.strictEqual(yield* tagOf(step(wrong)), "StepUpFailed")
      assert.strictEqual(yield* tagOf(step(password)), "RateLimited")
      assert.lengthOf(fieldsOf("admin_step_up_failed"), 6)
      assert.strictEqual(
        yield* tagOf(signIn(admin, { username: "olga", password: typed(password) }, here)),
        "RateLimited"
      )
      assert.deepStrictEqual(reasons("admin_login_failed"), ["rate_limited"])
    }))

  test("attempts that succeed are logged with their step and are not counted", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const enrolling = yield* half("olga", here, strict.admin)
      const { secret: shown } = yield* mfa.beginEnrolment(config.admin, enrolling.identity)
      const secret = secretOf(shown)
      const [first, second] = [(yield* codeOf(secret)).slice(0, 3), (yield* codeOf(secret)).slice(3)]
      records.length = 0
      yield* mfa.confirmEnrolment(strict.admin, enrolling.identity, `${first} ${second}`, here)
      assert.deepStrictEqual(yield* counted, [])
      assert.deepStrictEqual(fieldsOf("admin_mfa_enrolled"), [{ username: "olga", method: "totp" }])
      assert.deepInclude(fieldsOf("admin_login_succeeded")[0], { step: "enrol" })
      const verifying = yield* half("olga")
      records.length = 0
      const { identity } = yield* mfa.verify(admin, verifying.identity, yield* codeOf(secret, 30), here)
      assert.deepStrictEqual(yield* counted, [])
      assert.deepInclude(fieldsOf("admin_login_succeeded")[0], { step: "verify" })
      yield* stepUp(admin, identity, typed(password), here)
      assert.deepStrictEqual(yield* counted, [])
      const again = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
      const code = yield* codeOf(secretOf(again.secret))
      yield* secondFactor.confirmEnrolment(admin, identity, `${code.slice(0, 3)} ${code.slice(3)}`, here)
      assert.deepStrictEqual(yield* counted, [])
    }))

  test("a wrong code activates nothing and is counted", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      const { secret } = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
      const code = yield* codeOf(secretOf(secret))
      const confirm = secondFactor.confirmEnrolment(admin, identity, code === "000000" ? "000001" : "000000", here)
      assert.strictEqual(yield* tagOf(confirm), "InvalidCode")
      assert.sameMembers([...yield* counted], ["192.0.2.1", `mfa:${identity.userId}@192.0.2.1`])
      assert.strictEqual(yield* pendingSecrets, 1)
    }))

  test("an operator without a factor cannot turn a factor off, and an enrolment in progress continues", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
      assert.strictEqual(yield* tagOf(secondFactor.disable(admin, identity, typed("wrong"), here)), "StepUpFailed")
      yield* secondFactor.disable(admin, identity, typed(password), here)
      assert.lengthOf(fieldsOf("admin_mfa_disabled"), 0)
      assert.strictEqual(yield* pendingSecrets, 1)
    }))

  test("a session that has to verify a factor cannot enrol one, even if the factor was removed", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* enrolled((yield* enter("olga")).identity)
      const { identity } = yield* half("olga")
      yield* operators.resetTotp(keyboard, "olga")
      assert.strictEqual(yield* tagOf(mfa.beginEnrolment(config.admin, identity)), "MfaPending")
      assert.strictEqual(yield* pendingSecrets, 0)
    }))

  test("an address is stored only once, and a sign-in without an address is counted but reports no new address", () =>
    Effect.gen(function*() {
      yield* made("olga")
      for (let time = 0; time < 3; time++) yield* enter("olga")
      const known = column("SELECT known_login_ips FROM admin_users")
      assert.deepStrictEqual(yield* known, ["[\"192.0.2.1\"]"])
      const nowhere = { ...here, client: { ...here.client, ip: undefined } }
      assert.isFalse((yield* enter("olga", nowhere)).isNewAddress)
      assert.deepStrictEqual(yield* known, ["[\"192.0.2.1\"]"])
      yield* tagOf(signIn(admin, { username: "olga", password: typed(wrong) }, nowhere))
      assert.deepStrictEqual(yield* counted, ["unknown"])
    }))

  test("a step-up fails and is logged if the hash of the password cannot be read", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      yield* sql("UPDATE admin_users SET password_hash = 'bcrypt of old'")
      assert.strictEqual(yield* tagOf(stepUp(admin, identity, typed(password), here)), "StepUpFailed")
      assert.deepStrictEqual(fieldsOf("admin_password_hash_unreadable"), [{ username: "olga" }])
    }))

  test("setting the same contact again is not logged", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      const contact = "olga@example.org"
      const set = own.changeContact(config, identity, { password: typed(password), contact }, here)
      yield* set
      yield* set
      assert.lengthOf(fieldsOf("admin_operator_contact_changed"), 1)
    }))

  test("an impossible name matches no operator, and the command line is not an operator of the same name", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("tester")
      for (const name of ["", "No Name", "../olga", "a\u0000b", "ö".repeat(100)]) {
        assert.strictEqual(yield* tagOf(operators.show(admin, name)), "NoSuch", name)
        assert.strictEqual(yield* tagOf(operators.disable(keyboard, name)), "NoSuch", name)
        const wanted = { name: "t", role: "viewer", expiresInDays: 1, allowedAddresses: [] } as const
        assert.strictEqual(yield* tagOf(tokens.create(keyboard, { ...wanted, username: name })), "NoSuch", name)
      }
      const found = (text: string, most: number) =>
        Effect.map(operators.containing(text, most), (some) => some.map(({ username }) => username).join())
      assert.deepStrictEqual([yield* found("OT", 9), yield* found("t", 9), yield* found("t", 1)], [
        "root",
        "root,tester",
        "root"
      ])
      assert.strictEqual(keyboard.id, "tester")
      yield* operators.disable(keyboard, "tester")
      assert.deepStrictEqual(
        yield* column("SELECT status FROM admin_users WHERE username = 'tester'"),
        ["disabled"]
      )
    }))

  test("a missing role counts as admin in the trail, and setting the role to admin is no change", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga", "admin")
      yield* sql("UPDATE admin_users SET role = NULL WHERE username = 'olga'")
      yield* operators.setRole(keyboard, "olga", "admin")
      assert.notInclude(eventsOf(records), "admin_operator_role_changed")
      yield* operators.setRole(keyboard, "olga", "viewer")
      yield* sql("UPDATE admin_users SET role = NULL WHERE username = 'olga'")
      yield* operators.remove(keyboard, "olga")
      const details = yield* column(
        "SELECT detail FROM audit_log WHERE event IN ('operator_role_changed', 'operator_deleted') ORDER BY id"
      )
      assert.deepStrictEqual(details.map((text) => JSON.parse(text)), [
        { target: "olga", before: "admin", after: "viewer", sessions_revoked: 0 },
        { target: "olga", role: "admin", sessions_revoked: 0 }
      ])
    }))

  test("an unknown role is logged once a minute when a session or token with this role is used", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* enter("olga")
      const wanted = { name: "t", role: "viewer", expiresInDays: 1, allowedAddresses: [] } as const
      const program = yield* tokens.create(keyboard, { ...wanted, username: "olga" })
      yield* sql("UPDATE admin_users SET role = 'auditor'")
      yield* TestClock.adjust("60 seconds")
      records.length = 0
      for (let time = 0; time < 3; time++) yield* sessions.authenticate(admin, token, { touch: true })
      assert.deepStrictEqual(fieldsOf("admin_role_unknown"), [{ username: "olga" }])
      for (let time = 0; time < 3; time++) yield* authenticateToken(typed(program.token), here)
      assert.lengthOf(fieldsOf("admin_role_unknown"), 2)
    }))

  test("an incomplete session lives no longer than a complete session", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const brief = { ...strict.admin, session_ttl_seconds: 100 }
      const wordy = from("192.0.2.1", { client: { ...here.client, user_agent: "x".repeat(1000) } })
      const { identity } = yield* half("olga", wordy, brief)
      assert.strictEqual(identity.expiresAt, startsAt + 100)
      assert.deepStrictEqual(yield* column("SELECT user_agent FROM admin_sessions"), ["x".repeat(256)])
    }))

  test("a time of a session is corrected only if a clock that was ahead has written this time", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* enter("olga")
      const times = Effect.map(sql("SELECT last_seen_at, expires_at FROM admin_sessions"), ([row]) => [
        Number(row?.last_seen_at) - startsAt,
        Number(row?.expires_at) - startsAt
      ])
      const use = sessions.authenticate(admin, token, { touch: false })
      yield* sql(`UPDATE admin_sessions SET last_seen_at = ${startsAt - 100}, expires_at = ${startsAt + 90_000}`)
      assert.strictEqual((yield* use).expiresAt, startsAt + 43_200)
      assert.deepStrictEqual(yield* times, [-100, 43_200])
      yield* sql(`UPDATE admin_sessions SET last_seen_at = ${startsAt + 100}, expires_at = ${startsAt + 500}`)
      assert.strictEqual((yield* use).expiresAt, startsAt + 500)
      assert.deepStrictEqual(yield* times, [0, 500])
      yield* sql(`UPDATE admin_sessions SET last_seen_at = ${startsAt + 60}, expires_at = ${startsAt + 43_260}`)
      yield* use
      assert.deepStrictEqual(yield* times, [60, 43_260], "clocks that are a minute apart are not wrong")
    }))

  test("a token may have a name, a lifetime and addresses up to their limits, and a failure leaves no token", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const most: tokens.NewToken = {
        username: "olga",
        name: "n".repeat(longestTokenName),
        role: "viewer",
        expiresInDays: tokenLife.most,
        allowedAddresses: Array.from({ length: mostTokenAddresses }, (_, host) => `192.0.2.${host}`)
      }
      const { record } = yield* tokens.create(keyboard, most)
      assert.strictEqual(record.name, most.name)
      for (const id of ["", "no id", "01890a5d-ac96-774b-bcce-b302099a8057"]) {
        assert.strictEqual(yield* tagOf(tokens.revoke(keyboard, id)), "NoSuch", id)
        assert.strictEqual(yield* tagOf(tokens.find(id)), "NoSuch", id)
      }
      const failing = <A, E extends { readonly _tag: string }, R>(self: Effect.Effect<A, E, R>) =>
        Effect.andThen(
          sql("ALTER TABLE audit_log RENAME TO gone"),
          Effect.ensuring(tagOf(self), sql("ALTER TABLE gone RENAME TO audit_log"))
        )
      assert.strictEqual(yield* failing(tokens.create(keyboard, { ...most, name: "other" })), "StorageFailed")
      assert.strictEqual(yield* failing(tokens.revoke(keyboard, record.id)), "StorageFailed")
      assert.strictEqual(yield* count("SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL"), 1)
    }))

  test("the log warns at startup about missing operators, missing factors and missing addresses", () =>
    Effect.gen(function*() {
      yield* remarks(strict.admin)
      assert.deepStrictEqual(eventsOf(records), ["admin_no_users"])
      yield* made("olga")
      records.length = 0
      yield* remarks(admin)
      assert.deepStrictEqual(eventsOf(records), [])
      yield* remarks(strict.admin)
      assert.deepStrictEqual(fieldsOf("admin_mfa_enrolment_pending"), [{ count: 1 }])
      yield* enrolled((yield* enter("olga")).identity)
      records.length = 0
      yield* remarks(strict.admin)
      assert.deepStrictEqual(eventsOf(records), [])
      const mailed = { require_mfa: false, notify: { enabled: ["email"] as const } }
      yield* remarks(mailed)
      assert.deepStrictEqual(fieldsOf("admin_users_without_address"), [{ count: 1 }])
      yield* sql("UPDATE admin_users SET contact_email = 'olga@corp.example'")
      records.length = 0
      yield* remarks(mailed)
      assert.deepStrictEqual(eventsOf(records), [])
    }))
})
