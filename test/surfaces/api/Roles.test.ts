import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Route } from "../../../src/surfaces/operator/ApiRoutes.ts"
import type { Access } from "../../../src/surfaces/operator/gate/OperatorChecks.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Ask, Held, Told } from "../../support/Asked.ts"
import { cookieOf } from "../../support/Asked.ts"
import { secretOf } from "../../support/Authenticator.ts"
import { sqlite } from "../../support/Databases.ts"
import { codeOf, password } from "../../support/Operators.ts"
import type { Sender } from "../../support/Roles.ts"
import { cellOf, routes, senders } from "../../support/Roles.ts"

/*
 * Every route for every kind of caller: the test sends a request for each cell of the table in
 * docs/reference/api-roles.md.
 */

const pathOf = ({ pattern }: Route): string => pattern.replaceAll(/\{\w+\}/g, "01890a5d-ac96-774b-bcce-b302099a8057")

/** Routes that end the session of the request, or change what a sign-in needs. Each gets a separate session. */
const ending = ["signOut", "revokeOwnSession", "changeOwnPassword", "beginEnrolment", "abandonSignIn"]

const codesOfChecks = ["session_invalid", "session_expired", "session_idle", "csrf_failed", "insufficient_role"]

/** The routes of enrolment also answer mfa_pending after the checks, if a sign-in needs a code. */
const refusedByChecks = ({ access }: Route, { json, status }: Told): number | undefined =>
  codesOfChecks.includes(json?.error) || json?.error === "mfa_pending" && access !== "half" ? status : undefined

const usernames = { viewer: "vera", operator: "otto", admin: "anna" }

describe("the routes of the API", () => {
  const { test } = useApi(sqlite)

  test("admit the callers that their rules permit, and no others", ({ ask }) =>
    Effect.gen(function*() {
      const held = {
        viewer: yield* signedIn({ ask }, "vera", "viewer"),
        operator: yield* signedIn({ ask }, "otto", "operator"),
        admin: yield* signedIn({ ask }, "anna", "admin")
      }
      const tokenOf = (of: Held, role: string) =>
        Effect.map(
          ask("/api/tokens", {
            method: "POST",
            ...of,
            body: { password, name: `for ${role}`, role, expiresInDays: 1 }
          }),
          ({ json }) => String(json.token)
        )
      const tokens = {
        viewer: yield* tokenOf(held.viewer, "viewer"),
        operator: yield* tokenOf(held.operator, "operator"),
        admin: yield* tokenOf(held.admin, "admin")
      }
      const factor = yield* signedIn({ ask }, "hanna", "admin")
      const begun = yield* ask("/api/mfa/totp", { method: "POST", ...factor, body: { password } })
      const code = yield* codeOf(secretOf(begun.json.secret))
      yield* ask("/api/mfa/totp/confirm", { method: "POST", ...factor, body: { code } })
      const half = Effect.map(
        ask("/api/session", { method: "POST", body: { username: "hanna", password } }),
        (told): Held => ({ cookie: cookieOf(told), csrf: told.json.csrfToken })
      )
      const halfHeld = yield* half
      const another = (sender: keyof typeof held) =>
        Effect.map(
          ask("/api/session", { method: "POST", body: { username: usernames[sender], password } }),
          (told): Held => ({ cookie: cookieOf(told), csrf: told.json.csrfToken })
        )
      const asked = Effect.fnUntraced(function*(sender: Sender, route: Route) {
        const isEnding = ending.includes(route.name) && cellOf(route, sender) === "yes"
        if (sender === "nobody") return {}
        if (sender === "half") return isEnding ? yield* half : halfHeld
        if (sender === "viewer" || sender === "operator" || sender === "admin") {
          return isEnding ? yield* another(sender) : held[sender]
        }
        const role = sender.slice(6) as keyof typeof tokens
        const ask: Ask = { headers: { authorization: `Bearer ${tokens[role]}` } }
        return ask
      })
      let cells = 0
      for (const route of routes) {
        for (const sender of senders) {
          const told = yield* ask(pathOf(route), {
            method: route.method,
            ...yield* asked(sender, route),
            ...(route.payload === undefined ? {} : { body: {} })
          })
          const what = `${route.method} ${route.pattern} by ${sender}: ${told.text}`
          assert.strictEqual(refusedByChecks(route, told) ?? "yes", cellOf(route, sender), what)
          cells++
        }
      }
      assert.strictEqual(cells, routes.length * senders.length)
    }))

  const counts = (access: Access) => routes.filter((route) => route.access === access).length

  test("are unambiguous, because no path fits two routes with equally many parameters", () =>
    Effect.sync(() => {
      const segmentsOf = ({ pattern }: Route) => pattern.split("/")
      const patterns = [...new Map(routes.map((route) => [route.pattern, segmentsOf(route)])).values()]
      const isParameter = (segment: string | undefined) => segment?.startsWith("{") === true
      const parameters = (segments: ReadonlyArray<string>) => segments.filter(isParameter).length
      for (const one of patterns) {
        for (const other of patterns) {
          if (one === other || one.length !== other.length || parameters(one) !== parameters(other)) continue
          const overlap = one.every((part, at) => part === other[at] || isParameter(part) || isParameter(other[at]))
          assert.isFalse(overlap, `${one.join("/")} and ${other.join("/")}`)
        }
      }
    }))

  test("are open only to admins if they are about operators", () =>
    Effect.sync(() => {
      assert.strictEqual(counts("public"), 2)
      assert.isAbove(counts("viewer"), 20)
      assert.isTrue(
        routes.filter(({ pattern }) => pattern.startsWith("/api/operators")).every(({ access }) => access === "admin")
      )
      assert.isTrue(
        routes.filter(({ method, pattern }) => method !== "GET" && pattern.startsWith("/api/operators")).every((
          route
        ) => route.isStepUp)
      )
    }))

  test("let viewers change only what is their own", () =>
    Effect.sync(() => {
      const nameOf = ({ method, pattern }: Route) => `${method} ${pattern}`
      const changes = routes.filter(({ method }) => method !== "GET")
      assert.isAbove(changes.length, 30)
      const free = changes.filter(({ access }) => access !== "operator" && access !== "admin")
      const own = /^\/api\/(?:session|mfa|account|tokens)(?:\/|$)/
      assert.deepStrictEqual(free.filter(({ pattern }) => !own.test(pattern)).map(nameOf), [])
      assert.deepStrictEqual(free.filter(({ access }) => access === "viewer").map(nameOf), [], "nor do their tokens")
      const without = changes.filter(({ isWithoutCsrf }) => isWithoutCsrf).map(nameOf)
      assert.deepStrictEqual(without, ["POST /api/session", "POST /api/session/mfa"])
    }))
})
