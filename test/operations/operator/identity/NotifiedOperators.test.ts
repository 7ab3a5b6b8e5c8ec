import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Payload } from "../../../../src/domain/Notification.ts"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { Notifier } from "../../../../src/services/notify/Notifier.ts"
import { secretOf } from "../../../support/Authenticator.ts"
import { databases } from "../../../support/Databases.ts"
import { column, configOf, sql, world } from "../../../support/Graph.ts"
import {
  codeOf,
  config as quiet,
  enrolled,
  enter,
  from,
  half,
  here,
  keyboard,
  made,
  password,
  strict,
  typed,
  useOperators
} from "../../../support/Operators.ts"

/*
 * Tests the messages to operators about their own account, one for each event
 * (docs/contribute/decisions/notifications.md).
 */

const section = `[admin.notify]
enabled = ["email", "webhook"]
webhook_enabled = ["chat"]
[admin.notify.email]
smtp_host = "localhost"
from = "a@example.org"
[admin.notify.webhook.chat]
url = "https://chat.example/secret"
`
const config = configOf(`admin.enabled = true\n${section}`)
const unserved = configOf(section)

const queued = Effect.map(
  column("SELECT payload FROM jobs WHERE kind = 'notify_deliver' ORDER BY dedup_key"),
  (rows) =>
    rows.map((row) => JSON.parse(row) as { readonly backend: string; readonly scope: string; readonly fields: Payload })
)

/** Runs an act, and returns the backends that get its message, and the members of the message. */
const told = <A, E, R>(act: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    yield* sql("DELETE FROM jobs WHERE kind = 'notify_deliver'")
    yield* act
    const rows = yield* queued
    const { at: _, delivery_id: _1, profile, ...members } = rows[0]?.fields ??
      { at: 0, delivery_id: "", profile: "none" }
    return { to: rows.map(({ backend }) => backend).join(), profile, members }
  })

describe.each(databases)("operators are notified on $name", (backend) => {
  const { test } = useOperators(backend)
  const telling = <A, E, R>(body: Effect.Effect<A, E, R>, of = config) =>
    Effect.provide(Effect.provide(body, Notifier.layer(() => of)), world())

  const jane = Effect.gen(function*() {
    yield* made("jane", "admin")
    yield* operators.setContact(keyboard, "jane", "jane@example.org")
  })

  test("of a sign-in from a new address, but not of the first sign-in", () =>
    telling(Effect.gen(function*() {
      yield* jane
      assert.deepStrictEqual(yield* told(enter("jane")), { to: "", profile: "none", members: {} })
      assert.deepStrictEqual(yield* told(enter("jane")), { to: "", profile: "none", members: {} })
      assert.deepStrictEqual(yield* told(enter("jane", from("192.0.2.9"))), {
        to: "email,webhook",
        profile: "__admin__",
        members: {
          hook: "admin_sign_in",
          username: "jane",
          recipient: "jane@example.org",
          outcome: "succeeded_from_new_address",
          client_ip: "192.0.2.9",
          user_agent: "test/1"
        }
      })
    })))

  test("when their attempts at sign-ins are used up, once in a window, and never about an unknown name", () =>
    telling(Effect.gen(function*() {
      yield* jane
      const wrong = (username: string) =>
        Effect.ignore(signIn(config.admin, { username, password: typed("wrong") }, here))
      const used = yield* told(Effect.replicateEffect(wrong("jane"), config.admin.login_max_attempts + 3))
      assert.deepInclude(used.members, { hook: "admin_sign_in", outcome: "locked_out", username: "jane" })
      assert.strictEqual(used.to, "email,webhook")
      assert.strictEqual((yield* told(wrong("nobody"))).to, "")
      yield* TestClock.adjust("301 seconds")
      // So many failures in a row would make the next attempt wait, and this test does not check that.
      yield* sql("DELETE FROM login_failures")
      yield* Effect.replicateEffect(wrong("jane"), config.admin.login_max_attempts)
      yield* Effect.acquireUseRelease(
        sql("ALTER TABLE jobs RENAME TO gone"),
        () => wrong("jane"),
        () => sql("ALTER TABLE gone RENAME TO jobs")
      )
      const next = yield* told(wrong("jane"))
      assert.strictEqual(next.to, "email,webhook", "what could not be told is told by the next one")
      yield* TestClock.adjust("301 seconds")
      yield* sql("DELETE FROM login_failures")
      const again = yield* told(Effect.replicateEffect(wrong("jane"), config.admin.login_max_attempts + 1))
      assert.strictEqual(again.to, "email,webhook")
    })))

  test("when the attempts at their password in a session are used up, because somebody else may use that session", () =>
    telling(Effect.gen(function*() {
      yield* jane
      const { identity } = yield* enter("jane")
      const change = { password: typed("wrong"), contact: "thief@example.org" }
      const wrong = Effect.ignore(own.changeContact(quiet, identity, change, here))
      const signing = Effect.ignore(signIn(config.admin, { username: "nobody", password: typed("wrong") }, here))
      yield* Effect.replicateEffect(signing, config.admin.login_max_attempts)
      const used = yield* told(Effect.replicateEffect(wrong, 3))
      assert.deepInclude(used.members, { hook: "admin_sign_in", outcome: "locked_out", recipient: "jane@example.org" })
      assert.strictEqual(used.to, "email,webhook")
    })))

  test("of every tenth wrong password in a row, and so are the admins", () =>
    telling(Effect.gen(function*() {
      yield* jane
      for (const [username, role] of [["amy", "admin"], ["ann", "admin"], ["vera", "viewer"]] as const) {
        yield* made(username, role)
        yield* operators.setContact(keyboard, username, `${username}@example.org`)
      }
      yield* operators.disable(keyboard, "amy")
      const guess = (at: number) =>
        Effect.ignore(signIn(config.admin, { username: "vera", password: typed("wrong") }, from(`10.0.0.${at}`)))
      const numbers = (count: number, first: number) => Array.from({ length: count }, (_, at) => first + at)
      assert.strictEqual((yield* told(Effect.forEach(numbers(9, 1), guess))).to, "")
      const tenth = yield* told(guess(10))
      assert.strictEqual(tenth.to, "email,webhook")
      assert.deepInclude(tenth.members, {
        outcome: "password_guessed",
        username: "vera",
        recipient: "vera@example.org",
        admins: ["ann@example.org", "jane@example.org"],
        failures: 10,
        client_ip: "10.0.0.10"
      })
      const more = Effect.forEach(numbers(9, 11), (at) => Effect.andThen(guess(at), TestClock.adjust("1 hour")))
      assert.strictEqual((yield* told(more)).to, "")
      assert.deepInclude((yield* told(guess(20))).members, { outcome: "password_guessed", failures: 20 })
      const strangers = (at: number) =>
        Effect.ignore(signIn(config.admin, { username: "nobody", password: typed("wrong") }, from(`10.0.1.${at}`)))
      assert.strictEqual((yield* told(Effect.forEach(numbers(10, 1), strangers))).to, "")
    })))

  test("of the first wrong password in a session in each window, and when the session ended after too many", () =>
    telling(Effect.gen(function*() {
      yield* jane
      const { identity } = yield* enter("jane")
      const change = { password: typed("wrong"), contact: "thief@example.org" }
      const wrongFrom = (at: number) =>
        Effect.ignore(own.changeContact(quiet, identity, change, from(`198.51.100.${at}`)))
      const first = yield* told(wrongFrom(1))
      assert.deepInclude(first.members, { outcome: "step_up_failed", recipient: "jane@example.org" })
      assert.strictEqual(first.to, "email,webhook")
      assert.strictEqual((yield* told(Effect.forEach([2, 3, 4], wrongFrom))).to, "")
      const used = yield* told(Effect.forEach([5, 6], wrongFrom))
      assert.deepInclude(used.members, { hook: "admin_sign_in", outcome: "step_up_refused", client_ip: "198.51.100.5" })
      assert.strictEqual(used.to, "email,webhook")
    })))

  test("of every change to their credentials, and whether the operator made the change", () =>
    telling(Effect.gen(function*() {
      yield* jane
      const { identity } = yield* enter("jane")
      const whole = { ...quiet }
      const next = "Kraków tramway, 5 stops"
      const change = (members: object) => (members as { readonly change?: string; readonly by_self?: boolean })
      const seen: Array<readonly [string, string | undefined, boolean | undefined]> = []
      const see = <A, E, R>(act: Effect.Effect<A, E, R>) =>
        Effect.gen(function*() {
          const { members, to } = yield* told(act)
          seen.push([to, change(members).change, change(members).by_self])
          return members
        })
      yield* see(own.changePassword(whole, identity, { current: typed(password), chosen: typed(next) }, here))
      const set = yield* see(operators.setPassword(whole, keyboard, "jane", typed(password)))
      assert.notProperty(set, "previous_recipient")
      const again = yield* enter("jane")
      const moved = yield* see(
        own.changeContact(whole, again.identity, { password: typed(password), contact: "new@example.org" }, here)
      )
      assert.deepInclude(moved, { recipient: "new@example.org", previous_recipient: "jane@example.org" })
      yield* see(operators.setContact(keyboard, "jane", "other@example.org"))
      yield* see(operators.setContact({ ...keyboard, id: "jane" }, "jane", "last@example.org"))
      const asRoot = { kind: "admin", id: "root", client: here.client, surface: "api" } as const
      yield* made("root", "admin")
      const reset = yield* see(operators.setContact(asRoot, "jane", "other@example.org"))
      assert.deepInclude(reset, { previous_recipient: "last@example.org" })
      assert.deepStrictEqual((yield* told(operators.setContact(keyboard, "jane", "other@example.org"))).to, "")
      assert.deepStrictEqual(seen, [
        ["email,webhook", "password", true],
        ["email,webhook", "password", false],
        ["email,webhook", "contact_address", true],
        ["email,webhook", "contact_address", false],
        ["email,webhook", "contact_address", false],
        ["email,webhook", "contact_address", false]
      ])
    })))

  test("when their second factor is activated, gets new codes, is removed or is refused", () =>
    telling(Effect.gen(function*() {
      yield* jane
      const set = yield* told(enrolled((yield* enter("jane")).identity))
      assert.deepInclude(set.members, { change: "second_factor_enabled", by_self: true })
      const codes = yield* told(operators.renewCodes(keyboard, "jane"))
      assert.deepInclude(codes.members, { change: "recovery_codes_regenerated", by_self: false })
      const thief = from("198.51.100.5")
      const wrong = (code: string) =>
        Effect.gen(function*() {
          const { identity } = yield* half("jane", thief)
          yield* Effect.ignore(mfa.verify(config.admin, identity, code, thief))
        })
      const refused = yield* told(wrong("000000"))
      const outcome = { hook: "admin_sign_in", outcome: "second_factor_refused", username: "jane" }
      assert.deepInclude(refused.members, { ...outcome, client_ip: "198.51.100.5" })
      assert.strictEqual((yield* told(Effect.replicateEffect(wrong("AAAAA-AAAAA"), 3))).to, "", "once in a window")
      yield* TestClock.adjust("301 seconds")
      assert.deepInclude((yield* told(wrong("AAAAA-AAAAA"))).members, outcome, "of a recovery code too")
      const reset = yield* told(operators.resetTotp(keyboard, "jane"))
      assert.deepInclude(reset.members, { change: "second_factor_disabled", by_self: false })
    })))

  test("when they enrol a second factor that a sign-in required", () =>
    telling(Effect.gen(function*() {
      yield* jane
      const { identity } = yield* half("jane", here, strict.admin)
      const { secret } = yield* mfa.beginEnrolment(config.admin, identity)
      const code = yield* codeOf(secretOf(secret))
      const set = yield* told(mfa.confirmEnrolment(strict.admin, identity, code, here))
      assert.deepInclude(set.members, { change: "second_factor_enabled", by_self: true, client_ip: "192.0.2.1" })
    })))

  test("by mail only if they have an address, and not at all while no process serves operators", () =>
    Effect.gen(function*() {
      yield* telling(made("jane", "admin"))
      const change = operators.setPassword(quiet, keyboard, "jane", typed(password))
      assert.strictEqual((yield* telling(told(change))).to, "webhook")
      assert.strictEqual((yield* telling(told(change), unserved)).to, "")
    }))
})
