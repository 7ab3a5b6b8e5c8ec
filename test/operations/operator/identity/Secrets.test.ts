import { Effect, Inspectable, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { authenticateToken } from "../../../../src/operations/operator/identity/Bearer.ts"
import * as mfa from "../../../../src/operations/operator/identity/MfaSignIn.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as own from "../../../../src/operations/operator/identity/OwnAccount.ts"
import * as secondFactor from "../../../../src/operations/operator/identity/SecondFactor.ts"
import * as sessions from "../../../../src/operations/operator/identity/Sessions.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import * as tokens from "../../../../src/operations/operator/identity/Tokens.ts"
import { databases } from "../../../support/Databases.ts"
import { sql } from "../../../support/Graph.ts"
import {
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
  typed,
  useOperators
} from "../../../support/Operators.ts"

const { admin } = config

/* Tests that no output contains a secret that gives access. */

describe.each(databases)("the secrets of operators on $name", (backend) => {
  const { records, test } = useOperators(backend)

  test("are in no record of the log, no row of the trail, no error and no listing", () =>
    Effect.gen(function*() {
      const errors: Array<unknown> = []
      const failing = <A, E, R>(self: Effect.Effect<A, E, R>) =>
        Effect.map(Effect.flip(self), (error) => void errors.push(error))
      const [wrong, weak] = ["Poznań goats butt at noon", "abcdefghijklmnop"]
      yield* made("olga", "admin")
      const first = yield* enter("olga")
      const { codes, secret } = yield* enrolled(first.identity)
      yield* TestClock.adjust("30 seconds")
      const pending = yield* half("olga")
      const code = yield* codeOf(secret)
      const active = yield* mfa.verify(admin, pending.identity, code, here)
      const again = yield* half("olga")
      const stranger = from("198.51.100.7")
      yield* failing(mfa.verify(admin, again.identity, code, stranger))
      yield* failing(mfa.verify(admin, again.identity, "999999", stranger))
      yield* mfa.verify(admin, again.identity, codes[0] ?? "", here)
      yield* failing(signIn(admin, { username: wrong, password: typed(wrong) }, here))
      yield* failing(signIn(admin, { username: "olga", password: typed(wrong) }, here))
      yield* failing(operators.setPassword(config, keyboard, "olga", typed(weak)))
      const { identity } = active
      yield* failing(own.changePassword(config, identity, { current: typed(wrong), chosen: typed(`${wrong}!`) }, here))
      const next = yield* secondFactor.beginEnrolment(admin, identity, typed(password), here)
      const made_ = yield* tokens.create(keyboard, {
        username: "olga",
        name: "backup",
        role: "admin",
        expiresInDays: 1,
        allowedAddresses: ["198.51.100.1"]
      })
      yield* failing(authenticateToken(typed(made_.token), here))
      yield* failing(authenticateToken(typed(`${made_.token}x`), here))
      yield* failing(sessions.authenticate(admin, pending.token, { touch: true }))
      const listed = [
        yield* operators.list({ status: undefined, role: undefined }, { limit: 9, offset: 0 }),
        yield* operators.show(admin, "olga"),
        yield* tokens.list(undefined, { limit: 9, offset: 0 })
      ]
      const told = [records, yield* sql("SELECT * FROM audit_log"), errors, listed]
        .map((one) => `${JSON.stringify(one)} ${Inspectable.toStringUnknown(one)}`).join("\n")
      const secrets = [
        password,
        wrong,
        weak,
        code,
        "999999",
        ...codes,
        ...codes.map((one) => one.replace("-", "")),
        Buffer.from(secret).toString("hex"),
        Buffer.from(secret).toString("base64"),
        JSON.stringify([...secret]),
        next.secret,
        made_.token,
        made_.token.slice(9, 52),
        ...[first, pending, active].flatMap((one) => [
          Redacted.value(one.token),
          one.identity.tokenHash,
          one.identity.csrfToken
        ])
      ]
      for (const one of secrets) assert.isFalse(told.includes(one), one)
      assert.isAbove(errors.length, 7)
      assert.isAbove(records.length, 10)
    }))

  test("are stored only as hashes, except for the secrets of authenticators", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { identity, token } = yield* enter("olga")
      const { codes } = yield* enrolled(identity)
      const program = yield* tokens.create(keyboard, {
        username: "olga",
        name: "backup",
        role: "viewer",
        expiresInDays: 1,
        allowedAddresses: []
      })
      const tables = ["admin_users", "admin_sessions", "admin_recovery_codes", "api_tokens", "login_attempts"]
      const stored = JSON.stringify(yield* Effect.forEach(tables, (table) => sql(`SELECT * FROM ${table}`)))
      for (
        const one of [
          password,
          Redacted.value(token),
          program.token,
          ...codes,
          ...codes.map((c) => c.replace("-", ""))
        ]
      ) {
        assert.isFalse(stored.includes(one), one)
      }
    }))
})
