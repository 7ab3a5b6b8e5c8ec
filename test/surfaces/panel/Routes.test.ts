import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as tokens from "../../../src/operations/operator/identity/Tokens.ts"
import type { Access } from "../../../src/surfaces/operator/gate/OperatorChecks.ts"
import type { Guarded } from "../../../src/surfaces/operator/gate/RouteMatcher.ts"
import { routesOf } from "../../../src/surfaces/panel/PanelRoutes.ts"
import type { Ask, Told } from "../../support/Asked.ts"
import { cookieOf } from "../../support/Asked.ts"
import { sqlite } from "../../support/Databases.ts"
import { crookedPathsOf, fromElsewhere, withoutToken } from "../../support/Forged.ts"
import { enrolled, enter, keyboard, made, password } from "../../support/Operators.ts"
import { entered, form, usePanel } from "../../support/Panel.ts"

/*
 * Tests every route of the panel with every kind of caller and with attacks, and so also every route that is added
 * later.
 */

const senders = ["nobody", "half", "viewer", "operator", "admin", "token"] as const
type Sender = (typeof senders)[number]

/** If the session of a caller is not enough, the caller is sent to `login` or to `verify`. */
type Cell = "yes" | "login" | "verify" | 403

/** One row for each kind of access. A new kind without a row does not compile. */
const rows: { readonly [A in Access]: { readonly [S in Sender]: Cell } } = {
  public: { nobody: "yes", half: "yes", viewer: "yes", operator: "yes", admin: "yes", token: 403 },
  half: { nobody: "login", half: "yes", viewer: "login", operator: "login", admin: "login", token: 403 },
  own: { nobody: "login", half: "verify", viewer: "yes", operator: "yes", admin: "yes", token: 403 },
  viewer: { nobody: "login", half: "verify", viewer: "yes", operator: "yes", admin: "yes", token: 403 },
  operator: { nobody: "login", half: "verify", viewer: 403, operator: "yes", admin: "yes", token: 403 },
  admin: { nobody: "login", half: "verify", viewer: 403, operator: 403, admin: "yes", token: 403 }
}

const isRefused = ({ status, text }: Told, code: string): boolean => status === 403 && text.includes(code)

/**
 * Returns the result of the checks, as far as the answer shows it. After the checks, a sign-in that needs a code is
 * also sent to `verify`.
 */
const cellOf = ({ access }: Guarded, told: Told): Cell => {
  const { location = "", "set-cookie": cookie } = told.headers
  if (told.status === 303 && cookie === undefined && /^\/ui\/login(?:\?next=|$)/.test(location)) return "login"
  if (told.status === 303 && location === "/ui/login/verify" && access !== "half") return "verify"
  return isRefused(told, "insufficient_role") || isRefused(told, "csrf_failed") ? 403 : "yes"
}

/** Returns whether a route ends sessions. Such routes are requested last, each by a separate session. */
const isEnding = ({ pattern }: Guarded): boolean =>
  ["/ui/logout", "/ui/login/abandon", "/ui/account/sign-out-everywhere"].includes(pattern)

const id = "01890a5d-ac96-774b-bcce-b302099a8057"
const pathOf = ({ pattern }: Guarded): string => pattern.replaceAll(/\{\w+\}/g, id)
const nameOf = ({ method, pattern }: Guarded): string => `${method} ${pattern}`

describe("the routes of the panel", () => {
  const { config, test } = usePanel(sqlite)
  const none = { urls: {}, answer: () => undefined }
  const routes: ReadonlyArray<Guarded> = routesOf({ config, sources: new Map() }, none)
  const changes = routes.filter(({ method }) => method === "POST")
  const sent = ({ method }: Guarded): Ask => method === "POST" ? { method, body: form({}) } : { method }

  const usernames = { half: "hanna", viewer: "vera", operator: "otto", admin: "anna" } as const

  test("admit the callers that their rules permit, and no others", (panel) =>
    Effect.gen(function*() {
      const { ask } = panel
      const held = {
        viewer: yield* entered(panel, usernames.viewer, "viewer"),
        operator: yield* entered(panel, usernames.operator, "operator"),
        admin: yield* entered(panel, usernames.admin, "admin")
      }
      yield* made(usernames.half, "admin")
      yield* enrolled((yield* enter(usernames.half)).identity)
      const asked = {
        username: usernames.admin,
        name: "t",
        role: "admin",
        expiresInDays: 1,
        allowedAddresses: []
      } as const
      const { token } = yield* tokens.create(keyboard, asked)
      /** Begins a session for a single request. */
      const another = Effect.fnUntraced(function*(sender: keyof typeof usernames) {
        const body = form({ username: usernames[sender], password })
        // This sign-in needs a separate address, because the sign-in form is also sent empty, which counts as a failed
        // attempt.
        const cookie = cookieOf(yield* ask("/ui/login", { method: "POST", body, clientIp: "198.51.100.1" }))
        const { text } = yield* ask("/ui/", { cookie })
        return { cookie, csrf: /X-CSRF-Token":"([\w-]+)"/.exec(text)?.[1] ?? "" }
      })
      const half = yield* another("half")
      const bringing = Effect.fnUntraced(function*(route: Guarded, sender: Sender) {
        if (sender === "nobody") return {}
        if (sender === "token") return { headers: { authorization: `Bearer ${token}` } }
        if (isEnding(route)) return yield* another(sender)
        return sender === "half" ? half : held[sender]
      })
      for (const route of routes.toSorted((one, other) => Number(isEnding(one)) - Number(isEnding(other)))) {
        for (const sender of senders) {
          const told = yield* ask(pathOf(route), { ...sent(route), ...yield* bringing(route, sender) })
          const what = `${nameOf(route)} by ${sender}: ${told.status} ${told.headers["location"]} ${told.text}`
          assert.strictEqual(cellOf(route, told), rows[route.access][sender], what)
          assert.isBelow(told.status, 500, what)
        }
      }
    }))

  test("require the CSRF token of their session and the right origin if they change something", (panel) =>
    Effect.gen(function*() {
      const { ask } = panel
      const held = yield* entered(panel, "anna", "admin")
      const other = yield* entered(panel, "otto", "admin")
      assert.isAbove(changes.length, 30)
      for (const route of changes) {
        const refused = [
          ...fromElsewhere(sent(route), held, config.admin.base_url),
          ...(route.isWithoutCsrf ? [] : withoutToken(sent(route), held, other))
        ]
        for (const one of refused) {
          const told = yield* ask(pathOf(route), one)
          assert.isTrue(isRefused(told, "csrf_failed"), `${nameOf(route)}: ${told.status} ${told.text}`)
        }
      }
      assert.strictEqual((yield* ask("/ui/", held)).status, 200, "and nothing was done")
      const open = changes.filter(({ isWithoutCsrf }) => isWithoutCsrf).map(({ pattern }) => pattern)
      assert.isTrue(open.every((pattern) => /^\/ui\/(?:link|login)(?:\/|$)/.test(pattern)), open.join())
    }))

  test("are not reached by a similar path, or by another method", (panel) =>
    Effect.gen(function*() {
      const { ask } = panel
      const held = yield* entered(panel, "anna", "admin")
      for (const route of routes.filter(({ pattern }) => /^\/ui\/./.test(pattern))) {
        const path = pathOf(route)
        for (const trick of crookedPathsOf(path, "/ui/")) {
          const stranger = yield* ask(trick, sent(route))
          assert.include([303, 404], stranger.status, `${trick}: ${stranger.text}`)
          const known = yield* ask(trick, { ...sent(route), ...held })
          assert.strictEqual(known.status, 404, `${trick}: ${known.text}`)
        }
        const told = yield* ask(path, { method: "DELETE", ...held })
        assert.strictEqual(told.status, 405, nameOf(route))
      }
    }))

  test("let viewers change only what is their own, and only admins change operators", () =>
    Effect.sync(() => {
      const free = changes.filter(({ access }) => access !== "operator" && access !== "admin")
      const own = /^\/ui\/(?:link|login|logout|account)(?:\/|$)/
      assert.deepStrictEqual(free.filter(({ pattern }) => !own.test(pattern)).map(nameOf), [])
      const ofOperators = routes.filter(({ pattern }) => pattern.startsWith("/ui/operators"))
      assert.isAbove(ofOperators.length, 5)
      assert.deepStrictEqual(ofOperators.filter(({ access }) => access !== "admin").map(nameOf), [])
      const open = routes.filter(({ access }) => access === "public").map(nameOf)
      assert.sameMembers(open, [
        "GET /",
        "GET /ui",
        "GET /ui/static/{name}",
        "GET /ui/link",
        "POST /ui/link",
        "POST /ui/link/password",
        "GET /ui/login",
        "POST /ui/login"
      ])
    }))
})
