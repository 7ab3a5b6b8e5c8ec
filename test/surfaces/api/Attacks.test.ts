import { Effect } from "effect"
import { assert, describe } from "vitest"
import { printApiToken } from "../../../src/domain/ApiToken.ts"
import { currentPeer } from "../../../src/engine/net/FairSemaphore.ts"
import type { Peer } from "../../../src/engine/net/Peer.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { Passwords } from "../../../src/services/operators/Passwords.ts"
import { declaration } from "../../../src/surfaces/operator/ActDocument.ts"
import type { Route } from "../../../src/surfaces/operator/ApiRoutes.ts"
import { routesOf } from "../../../src/surfaces/operator/ApiRoutes.ts"
import { sessionCookie } from "../../../src/surfaces/operator/gate/Credentials.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import { cookieOf } from "../../support/Asked.ts"
import { sqlite } from "../../support/Databases.ts"
import { crookedPathsOf, fromElsewhere, withoutToken } from "../../support/Forged.ts"
import { eventsOf, fieldsOf, sql } from "../../support/Graph.ts"
import { enrolled, enter, made, password } from "../../support/Operators.ts"

/*
 * Attacks every route of the declaration, and so also every route that is added later (docs/contribute/attacks.md,
 * "Operators").
 */

const routes = routesOf(declaration)
const id = "01890a5d-ac96-774b-bcce-b302099a8057"
const pathOf = ({ pattern }: Route): string => pattern.replaceAll(/\{\w+\}/g, id)
const isChange = ({ method }: Route): boolean => method !== "GET"
const bodyOf = ({ payload }: Route) => payload === undefined ? {} : { body: {} }
const nameOf = ({ method, pattern }: Route): string => `${method} ${pattern}`

describe("every route of the API", () => {
  const { config, records, test } = useApi(sqlite)
  const signIn = { method: "POST", body: { username: "anna", password } } as const

  test("requires the CSRF token of its session and the right origin if it changes something", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      const other = yield* signedIn({ ask }, "otto", "admin")
      const changes = routes.filter((route) =>
        isChange(route) && !route.isWithoutCsrf && route.access !== "half" && route.access !== "public"
      )
      assert.isAbove(changes.length, 25)
      for (const route of changes) {
        const change = { method: route.method, ...bodyOf(route) }
        const forged = [...withoutToken(change, held, other), ...fromElsewhere(change, held, config.admin.base_url)]
        for (const refused of forged) {
          const told = yield* ask(pathOf(route), refused)
          assert.deepStrictEqual([nameOf(route), told.status, told.json.error], [nameOf(route), 403, "csrf_failed"])
        }
      }
      assert.strictEqual((yield* ask("/api/session", held)).status, 200, "and nothing was done")
    }))

  test("is refused to a session that lacks its second factor, except the routes of the second factor", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("anna", "admin")
      yield* enrolled((yield* enter("anna")).identity)
      const told = yield* ask("/api/session", signIn)
      const half = { cookie: cookieOf(told), csrf: told.json.csrfToken }
      for (const route of routes.filter(({ access }) => access !== "half" && access !== "public")) {
        const answer = yield* ask(pathOf(route), { method: route.method, ...half, ...bodyOf(route) })
        assert.deepStrictEqual(
          [nameOf(route), answer.status, answer.json.error],
          [nameOf(route), 401, "mfa_pending"]
        )
      }
      assert.strictEqual((yield* ask("/api/session/mfa", half)).status, 200)
      const none = yield* ask("/api/none", half)
      assert.strictEqual(none.status, 404)
    }))

  test("is not reached by a similar path, whether the request has a session or not", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      for (const route of routes.filter(({ pattern }) => pattern.startsWith("/api/"))) {
        for (const trick of crookedPathsOf(pathOf(route), "/api/")) {
          const asked = { method: route.method, ...bodyOf(route) }
          const stranger = yield* ask(trick, asked)
          assert.include([401, 404], stranger.status, `${trick}: ${stranger.text}`)
          const known = yield* ask(trick, { ...asked, ...held })
          assert.strictEqual(known.status, 404, `${trick}: ${known.text}`)
        }
      }
    }))

  test("logs the reason and the caller of each refusal, unless there is no such route", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "vera", "viewer")
      records.length = 0
      yield* ask("/api/orders")
      yield* ask("/api/operators", held)
      yield* ask("/api/session", { method: "DELETE", cookie: held.cookie })
      yield* ask("/api/session", { method: "DELETE", ...held, headers: { origin: "null" } })
      yield* ask("/api/session", { method: "DELETE", ...held, headers: { origin: "http://127.0.0.1:3001" } })
      yield* ask("/api/none", held)
      const { origin } = new URL(config.admin.base_url)
      const nobody = { username: undefined, origin: undefined, sent_origin: undefined }
      assert.deepStrictEqual(fieldsOf(records, "admin_request_refused"), [
        { ...nobody, reason: "session_state" },
        { ...nobody, reason: "role", username: "vera" },
        { ...nobody, reason: "csrf", username: "vera" },
        { ...nobody, reason: "origin", origin },
        { ...nobody, reason: "origin", origin, sent_origin: "http://127.0.0.1:3001" }
      ])
    }))

  test("refuses unknown tokens without blocking the address that sends them", ({ ask }) =>
    Effect.gen(function*() {
      const tries = config.admin.login_max_attempts + 1
      const guess = ask("/api/orders", { headers: { authorization: `Bearer ${printApiToken("A".repeat(43))}` } })
      for (let time = 0; time < tries; time++) assert.strictEqual((yield* guess).status, 401)
      assert.lengthOf(fieldsOf(records, "admin_request_refused"), tries)
      yield* signedIn({ ask }, "vera", "viewer")
    }))

  test("counts the hashing of a password towards its client's share", ({ ask }) =>
    Effect.gen(function*() {
      const seen: Array<Peer | undefined> = []
      const verify = () =>
        Effect.map(currentPeer, (peer) => {
          seen.push(peer)
          return { _tag: "Wrong" } as const
        })
      const body = { username: "nobody", password: "whatever it may be" }
      const peer = peerOf("198.51.100.7")
      yield* ask("/api/session", { method: "POST", body }).pipe(
        Effect.provideService(Passwords, { ...yield* Passwords, verify }),
        Effect.provideService(currentPeer, peer)
      )
      assert.deepStrictEqual(seen, [peer])
    }))

  test("sends no details if it fails through a fault of the service", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "vera", "viewer")
      const driver: Driver = { ...yield* Database, aside: () => Effect.die(new Error("inside ".repeat(1000))) }
      const told = yield* Effect.provideService(ask("/api/orders", held), Database, driver)
      assert.deepStrictEqual([told.status, told.json.error], [500, "internal"])
      assert.notInclude(told.text, "inside")
      const [{ error } = { error: "" }] = fieldsOf(records, "request_handler_panicked")
      assert.match(String(error), /inside/)
      assert.lengthOf(String(error), 2000)
    }))

  test("logs a failed statement once, without a second record about a fault", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "vera", "viewer")
      yield* sql("ALTER TABLE admin_sessions RENAME TO gone")
      const told = yield* Effect.ensuring(ask("/api/orders", held), sql("ALTER TABLE gone RENAME TO admin_sessions"))
      assert.deepStrictEqual([told.status, told.json.error], [500, "internal"])
      assert.include(eventsOf(records), "db_statement_failed")
      assert.notInclude(eventsOf(records), "request_handler_panicked")
    }))

  test("is hidden from strangers, who get 401 for any path below /api", ({ ask }) =>
    Effect.gen(function*() {
      for (const path of ["/api/none", "/api/orders"]) assert.strictEqual((yield* ask(path)).status, 401)
      assert.strictEqual((yield* ask("/none")).status, 404)
    }))

  test("accepts one session or one token, but not two credentials", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      const pair = `${sessionCookie}=${held.cookie}`
      const token = { password, name: "t", role: "viewer", expiresInDays: 1 }
      const minted = yield* ask("/api/tokens", { method: "POST", ...held, body: token })
      const bearer = `Bearer ${minted.json.token}`
      for (
        const headers of [
          { cookie: `${pair}; ${pair}` },
          { cookie: [pair, `${sessionCookie}=${"A".repeat(43)}`] },
          { authorization: [bearer, bearer] },
          { authorization: `${bearer}, ${bearer}` },
          { authorization: "Basic YW5uYTp4" },
          { authorization: bearer, cookie: pair }
        ]
      ) {
        const told = yield* ask("/api/orders", { headers })
        assert.deepStrictEqual([told.status, told.json.error], [400, "bad_request"], JSON.stringify(headers))
      }
      assert.strictEqual((yield* ask("/api/orders", { headers: { authorization: bearer } })).status, 200)
    }))

  test("accepts no session cookie that the browser had before the sign-in", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("anna", "admin")
      const planted = "A".repeat(43)
      const told = yield* ask("/api/session", { ...signIn, cookie: planted })
      assert.strictEqual(told.status, 200)
      assert.notStrictEqual(cookieOf(told), planted)
      assert.strictEqual((yield* ask("/api/orders", { cookie: planted })).status, 401)
      assert.strictEqual((yield* ask("/api/orders", { cookie: cookieOf(told) })).status, 200)
    }))
})

describe("the address of a client of the API", () => {
  const forged = (ip: string) => ({ "x-forwarded-for": ip, forwarded: `for=${ip}` })
  const wrong = { method: "POST", body: { username: "anna", password: "another password" } } as const

  describe("without a trusted proxy", () => {
    const { config, test } = useApi(sqlite)

    test("is the address of the connection, whatever a header says", ({ ask }) =>
      Effect.gen(function*() {
        for (let at = 0; at < config.admin.login_max_attempts; at++) {
          assert.strictEqual(
            (yield* ask("/api/session", { ...wrong, headers: forged(`198.51.100.${at}`) })).status,
            401
          )
        }
        assert.strictEqual((yield* ask("/api/session", { ...wrong, headers: forged("198.51.100.99") })).status, 429)
        const rows = yield* sql("SELECT key FROM login_attempts")
        assert.deepStrictEqual(rows.map(({ key }) => key), ["192.0.2.1"])
      }))
  })

  describe("behind a trusted proxy", () => {
    const { test } = useApi(sqlite, `[admin.filter]\ntrusted_proxies = ["192.0.2.1"]\n`)

    test("is the address that the proxy reports", ({ ask }) =>
      Effect.gen(function*() {
        yield* ask("/api/session", { ...wrong, headers: { "x-forwarded-for": "198.51.100.1" } })
        yield* ask("/api/session", { ...wrong, headers: forged("198.51.100.2"), clientIp: "192.0.2.9" })
        const rows = yield* sql("SELECT key FROM login_attempts ORDER BY key")
        assert.deepStrictEqual(rows.map(({ key }) => key), ["192.0.2.9", "198.51.100.1"])
      }))
  })
})
