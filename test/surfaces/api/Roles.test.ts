import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Access } from "../../../src/surfaces/admin/Access.ts"
import { Api } from "../../../src/surfaces/api/Api.ts"
import type { Route } from "../../../src/surfaces/api/Routes.ts"
import { routesOf } from "../../../src/surfaces/api/Routes.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Ask, Held, Told } from "../../support/Asked.ts"
import { sqlite } from "../../support/Databases.ts"
import { password } from "../../support/Operators.ts"

/* Every route for everybody: printed from the declaration, so that a route without a rule of access fails here. */

const routes = routesOf(Api)

const pathOf = ({ pattern }: Route): string => pattern.replaceAll(/\{\w+\}/g, "01890a5d-ac96-774b-bcce-b302099a8057")

/** Who asks. */
const senders = [
  "nobody",
  "half",
  "viewer",
  "operator",
  "admin",
  "token viewer",
  "token operator",
  "token admin"
] as const
type Sender = (typeof senders)[number]

const rank = { viewer: 0, operator: 1, admin: 2 }

/** What the checks say before the operation; undefined where the request comes through. */
const expected = ({ access, isStepUp, isWithoutCsrf }: Route, sender: Sender): number | undefined => {
  const isToken = sender.startsWith("token ")
  if (access === "public") return isToken && isWithoutCsrf ? 403 : undefined
  if (sender === "nobody") return 401
  if (sender === "half") return access === "half" ? undefined : 401
  if (isToken && (access === "own" || access === "half" || isStepUp)) return 403
  if (access === "half") return 401
  if (access === "own") return undefined
  const role = sender.replace("token ", "") as "viewer" | "operator" | "admin"
  return rank[role] >= rank[access] ? undefined : 403
}

const refusedByChecks = ({ json, status }: Told): number | undefined =>
  ["session_invalid", "session_expired", "session_idle", "mfa_pending", "csrf_failed", "insufficient_role"]
      .includes(json?.error)
    ? status
    : undefined

describe("the routes of the API", () => {
  const { test } = useApi(sqlite)

  test("are reached by whom their rules let through, and by nobody else", ({ ask }) =>
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
      const asked = (sender: Sender): Ask => {
        if (sender === "nobody") return {}
        if (sender.startsWith("token ")) {
          return { headers: { authorization: `Bearer ${tokens[sender.slice(6) as keyof typeof tokens]}` } }
        }
        return sender === "half" ? {} : held[sender as keyof typeof held]
      }
      const lines: Array<string> = []
      for (const route of routes) {
        const cells: Array<string> = []
        for (const sender of senders) {
          if (sender === "half") continue
          // What ends the session that the others are asked with is not really done.
          if (route.name === "signOut" && sender === "nobody") continue
          const isEnding = ["signOut", "revokeOwnSession", "changeOwnPassword", "beginEnrolment"].includes(route.name)
          const told = isEnding && expected(route, sender) === undefined
            ? undefined
            : yield* ask(pathOf(route), {
              method: route.method,
              ...asked(sender),
              ...(route.payload === undefined ? {} : { body: {} })
            })
          const found = told === undefined ? undefined : refusedByChecks(told)
          assert.strictEqual(
            found,
            expected(route, sender),
            `${route.method} ${route.pattern} by ${sender}: ${told?.text}`
          )
          cells.push(`${sender} ${found ?? "passes"}`)
        }
        lines.push(`${route.method} ${route.pattern} (${route.access}): ${cells.join(", ")}`)
      }
      assert.isAbove(lines.length, 60)
    }))

  const counts = (access: Access) => routes.filter((route) => route.access === access).length

  test("are found in one way by whoever looks for them: no path is that of two with as many parameters", () =>
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

  test("have a rule of access each, and few are for anybody", () =>
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
})
