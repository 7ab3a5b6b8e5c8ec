import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as crls from "../../../src/store/revocation/Crls.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import { cookieOf } from "../../support/Asked.ts"
import { secretOf } from "../../support/Authenticator.ts"
import { sqlite } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"
import { chosen, codeOf, enter, made, password, wrong } from "../../support/Operators.ts"
import { routes } from "../../support/Roles.ts"

/* Changes over the API that a stolen session must not make, and what their answers do with the cookie. */

const members = new Set(["password", "currentPassword"])
const membersOf = (schema: (typeof routes)[number]["payload"]) =>
  schema?.ast._tag === "Objects" ? schema.ast.propertySignatures.map(({ name }) => String(name)) : []

/** Every route whose body has the caller's password, except the sign-in itself. */
const guarded = routes.filter(({ isWithoutCsrf, payload }) =>
  !isWithoutCsrf && membersOf(payload).some((name) => members.has(name))
)

/** The other members of the bodies, with values that would change something. */
const others: Readonly<Record<string, unknown>> = {
  role: "operator",
  contact: "p@example.org",
  newPassword: chosen,
  name: "t",
  expiresInDays: 1
}

describe("a change that needs the caller's password", () => {
  const { test } = useApi(sqlite)
  const rows = Effect.forEach(
    [
      "* FROM admin_users",
      "token_hash, state FROM admin_sessions",
      "* FROM api_tokens",
      "* FROM admin_recovery_codes",
      "* FROM audit_log"
    ],
    (what) => sql(`SELECT ${what}`)
  )

  test("is made with the right password only", (api) =>
    Effect.gen(function*() {
      assert.sameMembers(
        routes.filter(({ isStepUp }) => isStepUp).filter((route) => !guarded.includes(route)),
        [],
        "what is said to need it has a member for it"
      )
      assert.isAtLeast(guarded.length, 13)
      for (const [at, { method, name, payload, pattern }] of guarded.entries()) {
        const clientIp = `198.51.100.${at}`
        const held = yield* signedIn(api, `caller-${at}`, "admin")
        const username = `target-${at}`
        yield* made(username, "viewer")
        const { identity } = yield* enter(username)
        yield* sql(`UPDATE admin_users SET totp_secret = X'0102' WHERE username IN ('caller-${at}', '${username}')`)
        if (name === "enableOperator") {
          yield* sql(`UPDATE admin_users SET status = 'disabled' WHERE username = '${username}'`)
        }
        const issuer = "ab".repeat(32)
        const campaign = "01890a5d-ac96-774b-bcce-b302099a8057"
        if (name === "compromiseCa") {
          yield* crls.insert({ issuer, number: 1, der: Buffer.from("x"), thisUpdate: 0, nextUpdate: 4_102_444_800 })
        }
        if (name === "confirmCampaign") {
          yield* sql(
            `INSERT INTO campaigns (id, state, filter, reason, created_at, actor_kind, revoke_at, revoked_to, filled_to,
               looked_to) VALUES (X'${campaign.replaceAll("-", "")}', 'running', '{"key":"rsa"}', 'x', 0, 'cli',
               4102444800, zeroblob(16), zeroblob(16), zeroblob(16))`
          )
        }
        const path = pattern.replace("/campaigns/{id}", `/campaigns/${campaign}`).replace("{username}", username)
          .replace("{id}", identity.tokenHash.slice(0, 16))
          .replace("{issuer}", issuer)
        const body = (word: string) =>
          Object.fromEntries(
            membersOf(payload).flatMap((member) =>
              members.has(member) ? [[member, word]] : member in others ? [[member, others[member]]] : []
            )
          )
        const before = yield* rows
        const refused = yield* api.ask(path, { method, clientIp, ...held, body: body(wrong) })
        assert.deepStrictEqual([name, refused.status, refused.json.error], [name, 403, "step_up_failed"])
        assert.deepStrictEqual(yield* rows, before, name)
        const done = yield* api.ask(path, { method, clientIp, ...held, body: body(password) })
        assert.isBelow(done.status, 300, `${name}: ${done.text}`)
        assert.notDeepEqual(yield* rows, before, name)
      }
    }))

  test("is refused without the password if it is about a second factor, even at the first enrolment", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "ann", "viewer")
      for (const [method, path] of [["POST", "totp"], ["DELETE", "totp"], ["POST", "recovery-codes"]] as const) {
        for (const body of [{}, undefined]) {
          const told = yield* api.ask(`/api/mfa/${path}`, { method, ...held, body })
          assert.deepStrictEqual([told.status, told.json.error], [400, "bad_request"])
          assert.match(told.json.message, /^The member password is missing/)
        }
      }
    }))
})

const cleared = /=; .*Max-Age=0$/

describe("one's own sessions", () => {
  const { test } = useApi(sqlite)

  test("can be ended one by one, and only the end of the present session removes the cookie", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "ann", "viewer")
      yield* enter("ann")
      const { items } = (yield* api.ask("/api/account/sessions", held)).json as {
        readonly items: ReadonlyArray<{ readonly id: string; readonly current?: true }>
      }
      assert.sameMembers(items.map(({ current }) => current), [true, undefined])
      for (const { current, id } of items.toSorted((one) => one.current === true ? 1 : -1)) {
        const told = yield* api.ask(`/api/account/sessions/${id}/revoke`, { method: "POST", ...held })
        assert.strictEqual(told.status, 204, told.text)
        if (current) assert.match(told.headers["set-cookie"] ?? "", cleared)
        else assert.notProperty(told.headers, "set-cookie")
        assert.strictEqual((yield* api.ask("/api/session", held)).status, current ? 401 : 200)
      }
    }))
})

describe("the cookie of a session", () => {
  const { test } = useApi(sqlite, "[admin]\nrequire_mfa = true\n")
  const signIn = { method: "POST", body: { username: "ann", password } } as const

  test("is replaced after the enrolment that a sign-in demands, and is removed when a sign-in is abandoned", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const first = yield* ask("/api/session", signIn)
      const abandoned = { cookie: cookieOf(first), csrf: first.json.csrfToken }
      const given = yield* ask("/api/session/mfa", { method: "DELETE", ...abandoned })
      assert.match(given.headers["set-cookie"] ?? "", cleared)
      assert.strictEqual((yield* ask("/api/session/mfa", abandoned)).status, 401)
      assert.isEmpty(yield* column("SELECT token_hash FROM admin_sessions"))

      const told = yield* ask("/api/session", signIn)
      const half = { cookie: cookieOf(told), csrf: told.json.csrfToken }
      const begun = yield* ask("/api/session/mfa/totp", { method: "POST", ...half })
      const code = yield* codeOf(secretOf(begun.json.secret))
      const whole = yield* ask("/api/session/mfa/totp/confirm", { method: "POST", ...half, body: { code } })
      assert.lengthOf(whole.json.recoveryCodes, 10)
      assert.strictEqual((yield* ask("/api/session", { cookie: cookieOf(whole) })).status, 200)
      assert.strictEqual((yield* ask("/api/session", half)).status, 401)
    }))
})
