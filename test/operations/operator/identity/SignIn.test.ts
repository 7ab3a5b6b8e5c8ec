import { Clock, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { RateLimited } from "../../../../src/domain/OperatorError.ts"

import type { Derive } from "../../../../src/crypto/PasswordHash.ts"
import { derive } from "../../../../src/crypto/PasswordHash.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { stepUp } from "../../../../src/operations/operator/identity/StepUp.ts"
import { sweepSessions } from "../../../../src/operations/work/SessionSweep.ts"
import { Passwords } from "../../../../src/services/operators/Passwords.ts"
import { atOnce, tally } from "../../../support/AtOnce.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import { meanwhile, meanwhileAt } from "../../../support/Meanwhile.ts"
import {
  chosen,
  config,
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

const { admin } = config

describe.each(databases)("signing in on $name", (backend) => {
  const { fieldsOf, hashesOf, records, test } = useOperators(backend)

  const attempt = (username: string, given: string, requester = here) =>
    signIn(admin, { username, password: typed(given) }, requester)

  test("begins a session of 256 random bits, of which the table stores only the hash", () =>
    Effect.gen(function*() {
      yield* made("olga", "operator")
      const { identity, isNewAddress, token } = yield* enter("OLGA")
      assert.deepInclude(identity, { kind: "session", username: "olga", role: "operator", totpEnabled: false })
      assert.isTrue(isNewAddress)
      assert.match(Redacted.value(token), /^[A-Za-z0-9_-]{43}$/)
      assert.match(identity.csrfToken, /^[A-Za-z0-9_-]{43}$/)
      const [row] = yield* sql("SELECT * FROM admin_sessions")
      assert.notInclude(JSON.stringify(row), Redacted.value(token))
      assert.deepInclude(row, { state: "active", created_ip: "192.0.2.1", user_agent: "test/1" })
      const again = yield* sessions.authenticate(admin, token, { touch: true })
      assert.deepStrictEqual(again, identity)
      assert.deepStrictEqual(fieldsOf("admin_login_succeeded"), [
        { username: "olga", client_ip: "192.0.2.1", surface: "api", step: undefined }
      ])
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 1, "a sign-in is no change of the trail's")
      assert.notInclude(eventsOf(records), "admin_role_unknown")
    }))

  test("costs one hash and gives the same answer whether the name is known, unknown, invalid or disabled", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      yield* made("otto")
      yield* operators.disable(keyboard, "otto")
      for (const username of ["olga", "nobody", "otto", "no name at all", ""]) {
        assert.strictEqual(yield* hashesOf(attempt(username, wrong, from("192.0.2.9"))), 1, username)
        yield* sql("DELETE FROM login_attempts")
      }
      assert.strictEqual(yield* hashesOf(attempt("otto", password, from("192.0.2.9"))), 1)
      assert.strictEqual((yield* Effect.flip(attempt("otto", password, here)))._tag, "InvalidCredentials")
      const told = fieldsOf("admin_login_failed").map(({ reason, username }) => [reason, username])
      assert.deepStrictEqual(told, [
        ["wrong_password", "olga"],
        ["unknown_user", undefined],
        ["account_disabled", "otto"],
        ["unknown_user", undefined],
        ["unknown_user", undefined],
        ["account_disabled", "otto"],
        ["account_disabled", "otto"]
      ])
    }))

  test("computes five hashes for fifty wrong passwords at once, and refuses the other attempts until the window is over", () =>
    Effect.gen(function*() {
      yield* made("olga")
      let tags: ReadonlyArray<string | undefined> = []
      const all = Effect.map(atOnce(50, attempt("olga", wrong)), (found) => void (tags = found))
      assert.strictEqual(yield* hashesOf(all), 5)
      assert.deepStrictEqual(tally(tags), { InvalidCredentials: 5, RateLimited: 45 })
      yield* TestClock.adjust("100 seconds")
      const refused = yield* Effect.flip(attempt("olga", password))
      assert.deepInclude(refused, { _tag: "RateLimited", retryAfter: 200 })
      assert.strictEqual(yield* hashesOf(attempt("olga", password)), 0)
      assert.strictEqual((yield* attempt("olga", password, from("192.0.2.2")))._tag, "Active")
      yield* TestClock.adjust("199 seconds")
      assert.strictEqual((yield* Effect.flip(attempt("olga", password)))._tag, "RateLimited", "no attempt lengthens it")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* attempt("olga", password))._tag, "Active")
    }))

  test("is logged as refused even if the client disconnects while the password is compared", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity } = yield* enter("olga")
      const guesses = [
        [Effect.ignore(attempt("olga", wrong)), "admin_login_failed"],
        [Effect.ignore(stepUp(admin, identity, typed(wrong), here)), "admin_step_up_failed"]
      ] as const
      for (const [guess, event] of guesses) {
        const begun = yield* Deferred.make<void>()
        const goOn = yield* Deferred.make<void>()
        let isHeld = false
        const held: Derive = (...asked) =>
          Effect.andThen(
            Effect.suspend(() =>
              isHeld ? Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(goOn)) : Effect.void
            ),
            derive(...asked)
          )
        const passwords = yield* Layer.build(Passwords.layer({ iterations: 4, recoveryIterations: 1, derive: held }))
        isHeld = true
        const running = yield* Effect.forkChild(Effect.provide(guess, passwords))
        yield* Deferred.await(begun)
        const leaving = yield* Effect.forkChild(Fiber.interrupt(running))
        yield* Effect.yieldNow
        yield* Deferred.succeed(goOn, undefined)
        yield* Fiber.join(leaving)
        assert.lengthOf(fieldsOf(event), 1, event)
      }
    }))

  describe("guessing the password of one operator", () => {
    /** Makes one guess from each of `count` addresses, five seconds apart. */
    const guesses = (username: string, count: number, first = 0) =>
      Effect.forEach(
        Array.from({ length: count }, (_, at) => first + at),
        (at) =>
          Effect.tap(tagOf(attempt(username, wrong, from(`10.0.${at >> 8}.${at & 255}`))), () =>
            TestClock.adjust("5 seconds"))
      )

    /** Returns the seconds that an attempt has to wait. */
    const waitOf = (refused: ReturnType<typeof attempt>) =>
      Effect.map(
        Effect.flip(refused),
        (error) => error._tag === "RateLimited" ? error.retryAfter : assert.fail(error._tag)
      )

    for (const [name, whose] of [["olga", "an operator"], ["nobody", "a name that no operator has"]] as const) {
      test(`has to wait after eleven comparisons, even from 120 addresses, for ${whose}`, () =>
        Effect.gen(function*() {
          yield* made("olga")
          const tags = yield* guesses(name, 120)
          // The attempts of ten minutes: ten that need not wait, the next one, and four after waits of 30, 60, 120 and
          // 240 seconds.
          assert.deepStrictEqual(tally(tags), { InvalidCredentials: 15, RateLimited: 105 })
          assert.deepStrictEqual(tags.slice(0, 11), Array(11).fill("InvalidCredentials"))
          const retryAfter = yield* waitOf(attempt(name, wrong, from("10.9.9.9")))
          assert.isAbove(retryAfter, 240)
          assert.isAtMost(retryAfter, 480)
          assert.strictEqual(yield* hashesOf(attempt(name, wrong, from("10.9.9.9"))), 0)
          const refused = fieldsOf("admin_login_failed").filter(({ reason }) => reason === "operator_rate_limited")
          assert.deepInclude(refused[0], { username: name === "olga" ? "olga" : undefined })
          const keys = yield* column("SELECT key FROM login_attempts WHERE attempts > 0")
          if (name === "olga") {
            assert.deepStrictEqual(fieldsOf("admin_login_guessed"), [
              { username: "olga", client_ip: "10.0.0.9", failures: 10 }
            ])
          }
          assert.lengthOf(keys, 15, "who is refused is given the attempt of the address back")
        }))
    }

    test("is refused after fifty failures in a row except once a day, and the count ends after a quiet time", () =>
      Effect.gen(function*() {
        yield* made("olga")
        let compared = 0
        for (let hour = 0; hour < 24 * 5; hour++) {
          for (let at = 0; at < 12; at++) {
            const tag = yield* tagOf(attempt("olga", wrong, from(`10.${hour}.${at}.1`)))
            if (tag === "InvalidCredentials") compared++
            yield* TestClock.adjust("5 minutes")
          }
        }
        assert.isAtLeast(compared, 50)
        assert.isAtMost(compared, 54)
        yield* sweepSessions(admin)
        assert.strictEqual(yield* tagOf(attempt("olga", password, from("10.200.0.1"))), "RateLimited")
        // The test changes the row and not the clock, because the clock of the database server stays behind.
        yield* sql("UPDATE login_failures SET last_failed_at = 1")
        yield* sweepSessions(admin)
        assert.deepStrictEqual(yield* column("SELECT key FROM login_failures"), [])
        assert.strictEqual((yield* attempt("olga", password, from("10.200.0.1")))._tag, "Active")
      }))

    test("does not affect a known address or an existing session", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const { identity } = yield* enter("olga", from("2001:db8:1:2::7"))
        yield* guesses("olga", 30)
        assert.strictEqual(yield* tagOf(attempt("olga", password, from("10.1.0.1"))), "RateLimited")
        // another address of the same /64
        assert.strictEqual((yield* attempt("olga", password, from("2001:db8:1:2::8")))._tag, "Active")
        assert.strictEqual(yield* tagOf(attempt("olga", password, from("10.1.0.1"))), "RateLimited")
        yield* stepUp(admin, identity, typed(password), from("10.1.0.2"))
        const passwords = { current: typed(password), chosen: typed(chosen) }
        yield* own.changePassword(config, identity, passwords, from("10.1.0.2"))
        assert.deepStrictEqual(
          yield* column("SELECT key FROM login_failures"),
          [],
          "with a new password they begin anew"
        )
        assert.strictEqual((yield* attempt("olga", chosen, from("10.1.0.1")))._tag, "Active")
        yield* guesses("olga", 30)
        yield* operators.setPassword(config, keyboard, "olga", typed(password))
        assert.strictEqual((yield* attempt("olga", password, from("10.2.0.1")))._tag, "Active")
      }))

    test("is refused after ten failures in a row from a known address, and other addresses are not affected", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const [home, office] = [from("198.51.100.1"), from("198.51.100.2")]
        yield* enter("olga", home)
        yield* enter("olga", office)
        let compared = 0
        for (let time = 0; time < 40; time++) {
          if ((yield* tagOf(attempt("olga", wrong, office))) === "InvalidCredentials") compared++
          yield* TestClock.adjust("2 minutes")
        }
        assert.strictEqual(compared, 10)
        const retryAfter = yield* waitOf(attempt("olga", password, office))
        assert.isAbove(retryAfter, 80_000)
        assert.strictEqual((yield* attempt("olga", password, home))._tag, "Active")
        assert.strictEqual((yield* attempt("olga", password, from("10.0.0.1")))._tag, "Active")
        yield* TestClock.adjust("1 day")
        assert.strictEqual((yield* attempt("olga", password, office))._tag, "Active")
        assert.notInclude(yield* column("SELECT key FROM login_failures"), "198.51.100.2")
      }))

    test("causes a limited number of rows to be stored, however many names are tried", () =>
      Effect.gen(function*() {
        const names = Array.from({ length: 400 }, (_, at) => `name-${at}`)
        for (const [at, name] of names.entries()) {
          yield* tagOf(attempt(name, wrong, from(`10.0.${at >> 8}.${at & 255}`)))
        }
        const keys = yield* column("SELECT key FROM login_failures")
        for (const key of keys) assert.match(key, /^name:[0-9a-f]{4}$/)
      }))

    test("is not counted if the queue of hashes is full", () =>
      Effect.gen(function*() {
        yield* made("olga")
        const full = { ...yield* Passwords, verify: () => new RateLimited({ retryAfter: 1 }) }
        yield* Effect.provideService(guesses("olga", 30), Passwords, full)
        assert.deepStrictEqual(yield* column("SELECT failures FROM login_failures"), ["0"])
      }))
  })

  test("uses the same window in processes whose clocks differ, whichever process reads it", () =>
    Effect.gen(function*() {
      yield* made("olga")
      let tried = 0
      // The clock is alternately an hour ahead and an hour behind. Neither clock ends the window of the other.
      for (const apart of ["3600 seconds", "-3600 seconds", "3600 seconds", "-3600 seconds"] as const) {
        for (let time = 0; time < 10; time++) {
          const { _tag } = yield* Effect.flip(attempt("olga", wrong))
          if (_tag === "InvalidCredentials") tried++
        }
        const now = yield* Clock.currentTimeMillis
        yield* TestClock.setTime(now + Number.parseInt(apart, 10) * 1000)
      }
      assert.strictEqual(tried, 10, "five by each clock, and no more")
      assert.deepInclude(yield* Effect.flip(attempt("olga", password)), { _tag: "RateLimited", retryAfter: 300 })
      yield* sweepSessions(admin)
      assert.strictEqual((yield* attempt("olga", password))._tag, "Active", "nobody is locked out by a clock for long")
    }))

  test("counts IPv6 addresses by their /64, and an IPv4-mapped address as the IPv4 address", () =>
    Effect.gen(function*() {
      yield* made("olga")
      for (let host = 1; host <= 5; host++) {
        yield* Effect.flip(attempt("olga", wrong, from(`2001:db8:0:7::${host}`)))
      }
      assert.strictEqual(
        (yield* Effect.flip(attempt("olga", password, from("2001:db8:0:7:ffff::1"))))._tag,
        "RateLimited"
      )
      assert.strictEqual((yield* attempt("olga", password, from("2001:db8:0:8::1")))._tag, "Active")
      yield* Effect.flip(attempt("olga", wrong, from("::ffff:192.0.2.7")))
      yield* Effect.flip(attempt("olga", wrong, from("192.0.2.7")))
      assert.deepStrictEqual(
        yield* column("SELECT key || ' ' || attempts FROM login_attempts WHERE attempts > 0 ORDER BY key"),
        ["192.0.2.7 2", "2001:db8:0:7::/64 5", "2001:db8:0::/48 5"]
      )
    }))

  test("also counts a client with many IPv6 networks by the /48, with a limit ten times as high", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const tried = Array.from({ length: 60 }, (_, at) => at)
      const tags = yield* Effect.forEach(
        tried,
        (at) => tagOf(attempt(`nobody-${at}`, wrong, from(`2001:db8:7:${at.toString(16)}::1`)))
      )
      assert.deepStrictEqual(tally(tags), { InvalidCredentials: 50, RateLimited: 10 })
      assert.strictEqual(
        (yield* Effect.flip(attempt("olga", password, from("2001:db8:7:ffff::1"))))._tag,
        "RateLimited"
      )
      assert.strictEqual(
        yield* count("SELECT count(*) FROM login_attempts WHERE attempts > 0"),
        51,
        "who is refused for the network is given the attempt of the host back"
      )
      assert.strictEqual((yield* attempt("olga", password, from("2001:db8:8::1")))._tag, "Active")
    }))

  test("counts each IPv6 address that embeds an IPv4 address as that IPv4 address", () =>
    Effect.gen(function*() {
      yield* made("olga")
      for (let network = 1; network <= 5; network++) {
        yield* Effect.flip(attempt("olga", wrong, from(`2002:c000:207:${network}::1`)))
      }
      assert.strictEqual(
        (yield* Effect.flip(attempt("olga", password, from("2002:c000:207:9::1"))))._tag,
        "RateLimited"
      )
      assert.strictEqual(
        (yield* Effect.flip(attempt("olga", password, from("64:ff9b::192.0.2.7"))))._tag,
        "RateLimited"
      )
      assert.strictEqual((yield* attempt("olga", password, from("64:ff9b::192.0.2.8")))._tag, "Active")
    }))

  test("tells a refused client to wait for at least a second, even if the window is deleted or ends meanwhile", () =>
    Effect.gen(function*() {
      yield* made("olga")
      for (let time = 0; time < 5; time++) yield* Effect.flip(attempt("olga", wrong))
      /** Returns the seconds to wait if another process changes the window after the attempt was refused. */
      const waitAfter = (text: string) =>
        Effect.map(
          meanwhileAt("after", "INSERT INTO login_attempts", text, Effect.flip(attempt("olga", password))),
          (error) => error._tag === "RateLimited" ? error.retryAfter : assert.fail(error._tag)
        )
      assert.strictEqual(yield* waitAfter(`UPDATE login_attempts SET window_started_at = ${startsAt - 1000}`), 1)
      yield* sql(`UPDATE login_attempts SET window_started_at = ${startsAt}`)
      assert.strictEqual(yield* waitAfter("DELETE FROM login_attempts"), admin.login_window_seconds)
    }))

  test("does not count an attempt that succeeds, even if there are six in a row", () =>
    Effect.gen(function*() {
      yield* made("olga")
      for (let time = 0; time < 6; time++) yield* attempt("olga", password)
      assert.deepStrictEqual(yield* column("SELECT attempts FROM login_attempts"), ["0"])
    }))

  test("is refused without a hash while attempts cannot be counted", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* sql("ALTER TABLE login_attempts RENAME TO gone")
      const refused = yield* Effect.ensuring(
        Effect.all([Effect.flip(attempt("olga", password)), hashesOf(attempt("olga", password))]),
        sql("ALTER TABLE gone RENAME TO login_attempts")
      )
      assert.deepInclude(refused[0], { _tag: "Busy", retryAfter: 5 })
      assert.strictEqual(refused[1], 0)
    }))

  test("renews a hash that has fewer iterations, and a guess at such a hash costs as much as at any other hash", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const weaker = Passwords.layer({ iterations: 2 })
      const hash = yield* Effect.provide(Effect.flatMap(Passwords, (passwords) => passwords.hash(password)), weaker)
      yield* sql(`UPDATE admin_users SET password_hash = '${hash}'`)
      assert.strictEqual(yield* hashesOf(attempt("olga", wrong)), 1)
      const full = { ...yield* Passwords, hash: () => new RateLimited({ retryAfter: 1 }) }
      assert.strictEqual((yield* Effect.provideService(attempt("olga", password), Passwords, full))._tag, "Active")
      assert.deepStrictEqual(yield* column("SELECT password_hash FROM admin_users"), [hash], "another time, then")
      yield* enter("olga")
      const [renewed = ""] = yield* column("SELECT password_hash FROM admin_users")
      assert.match(renewed, /^\$pbkdf2-sha256\$i=4\$/)
      yield* enter("olga")
      assert.deepStrictEqual(yield* column("SELECT password_hash FROM admin_users"), [renewed])
      assert.notInclude(yield* column("SELECT event FROM audit_log"), "operator_password_changed")
    }))

  test("fails and is logged if the stored hash cannot be read", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* sql("UPDATE admin_users SET password_hash = 'bcrypt of old'")
      assert.strictEqual(yield* hashesOf(attempt("olga", password)), 1)
      assert.strictEqual((yield* Effect.flip(attempt("olga", password)))._tag, "InvalidCredentials")
      assert.deepStrictEqual(fieldsOf("admin_password_hash_unreadable")[0], { username: "olga" })
    }))

  test("stores the last five addresses, and reports an address that is not among them as new", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const isNew = (host: number) =>
        Effect.map(enter("olga", from(`192.0.2.${host}`)), ({ isNewAddress }) => isNewAddress)
      const seen: Array<boolean> = []
      for (const host of [1, 2, 1, 3, 4, 5, 6, 2]) seen.push(yield* isNew(host))
      assert.deepStrictEqual(seen, [true, true, false, true, true, true, true, true])
      const [known = ""] = yield* column("SELECT known_login_ips FROM admin_users")
      assert.deepStrictEqual(JSON.parse(known), [2, 6, 5, 4, 3].map((host) => `192.0.2.${host}`))
    }))

  test("is refused if the password was changed or the operator was disabled while the password was hashed", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      // This is the transaction that begins the session.
      const refusedAfter = (text: string) => Effect.flip(meanwhile(text, attempt("olga", password)))
      const changed = yield* refusedAfter("UPDATE admin_users SET password_hash = 'another' WHERE username = 'olga'")
      assert.strictEqual(changed._tag, "InvalidCredentials")
      yield* operators.setPassword(config, keyboard, "olga", typed(password))
      const disabled = yield* refusedAfter("UPDATE admin_users SET status = 'disabled' WHERE username = 'olga'")
      assert.strictEqual(disabled._tag, "InvalidCredentials")
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 0)
    }))

  test("begins an incomplete session of five minutes if a factor must be enrolled first", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity, token } = yield* half("olga", here, strict.admin)
      assert.strictEqual(identity.step, "enrol")
      assert.strictEqual((yield* Effect.flip(sessions.authenticate(admin, token, { touch: true })))._tag, "MfaPending")
      assert.deepStrictEqual(yield* sessions.authenticateHalf(admin, token), identity)
      assert.isNull((yield* sql("SELECT last_login_at FROM admin_users"))[0]?.last_login_at)
      yield* TestClock.adjust("299 seconds")
      yield* sessions.authenticateHalf(admin, token)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(sessions.authenticateHalf(admin, token)))._tag, "SessionExpired")
      assert.include(eventsOf(records), "admin_login_mfa_pending")
    }))

  test("treats an unknown role as viewer and a missing role as admin, and stores neither", () =>
    Effect.gen(function*() {
      yield* made("olga", "admin")
      yield* sql("UPDATE admin_users SET role = 'auditor'")
      assert.strictEqual((yield* enter("olga")).identity.role, "viewer")
      assert.deepStrictEqual(fieldsOf("admin_role_unknown"), [{ username: "olga" }])
      yield* sql("UPDATE admin_users SET role = NULL")
      assert.strictEqual((yield* enter("olga")).identity.role, "admin")
      assert.isNull((yield* sql("SELECT role FROM admin_users"))[0]?.role)
    }))
})
