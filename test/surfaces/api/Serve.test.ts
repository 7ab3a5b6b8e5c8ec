import { Cause, Effect, Exit, Layer, References } from "effect"
import { HttpServerRequest } from "effect/http"
import { assert, describe } from "vitest"
import type { Request } from "../../../src/kernel/http/Message.ts"
import { unmatched } from "../../../src/kernel/http/Message.ts"
import { ReverseNames } from "../../../src/kernel/net/ReverseNames.ts"
import { Passwords } from "../../../src/services/operators/Passwords.ts"
import { checkServicesOf } from "../../../src/surfaces/admin/CheckServices.ts"
import { make } from "../../../src/surfaces/api/ApiApp.ts"
import type { Caller } from "../../../src/surfaces/api/CurrentCaller.ts"
import { declaredApp } from "../../../src/surfaces/api/Declared.ts"
import { served } from "../../../src/surfaces/api/DeclaredAnswer.ts"
import { sqlite } from "../../support/Databases.ts"
import type { World } from "../../support/Graph.ts"
import { configOf, world } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { useStore } from "../../support/UseTests.ts"

/* The declaration by itself: what it does with a request that the checks have let through, and with one they have not seen. */

const config = configOf()

const request = (path: string, method = "GET"): Request => ({
  id: "1",
  method,
  target: path,
  path,
  headers: {},
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.alloc(0))
})

const quiet = Effect.provideService(References.MinimumLogLevel, "None")

const caller = {
  sender: { kind: "token", role: "viewer", id: "t", name: "t", userId: "u", username: "vera" },
  client: { ip: "192.0.2.1", request_id: "1", user_agent: undefined },
  parameters: {}
} as const

describe("the declaration of the API", () => {
  const { test } = useStore<Effect.Success<ReturnType<typeof declaredApp>>, World | Passwords>(sqlite, {
    startsAt,
    layer: ({ name, records }) =>
      Layer.provideMerge(Passwords.layer({ iterations: 2 }), world({ seed: name, records })),
    first: () => declaredApp({ config, sources: new Map() })
  })

  test("answers a path exactly as it is declared, with a parameter or a body where one was brought", (app) =>
    Effect.gen(function*() {
      const ask = (path: string, method = "GET", query = "") =>
        served(app, request(path, method), { query: new URLSearchParams(query), body: undefined }, caller)
      for (const method of ["GET", "HEAD"]) {
        const { body, headers, status } = yield* ask("/api/operators", method, "limit=7")
        assert.deepStrictEqual([status, headers["content-type"]], [200, "application/json"])
        assert.notProperty(headers, "content-length", "the listener counts")
        assert.include(Buffer.from(body as Uint8Array).toString(), "\"limit\":7")
      }
      for (const path of ["/api/operators/", "/api//operators", "/API/operators", "/api/Operators"]) {
        const ended = yield* Effect.exit(quiet(ask(path)))
        assert.notStrictEqual(Exit.isSuccess(ended) ? ended.value.status : 404, 200, path)
      }
    }))

  test("is one place in the metrics for whatever is no route", (app) =>
    Effect.gen(function*() {
      const checkServices = checkServicesOf(config.admin, { policy: undefined, names: yield* ReverseNames })
      const { route } = make(config.admin, checkServices, app, {
        resolved: { config, sources: new Map() },
        version: "0.0.0-test",
        mostRows: config.admin.page_size_max
      })
      const id = "01890a5d-ac96-774b-bcce-b302099a8057"
      const patterns = [`/api/orders/${id}`, "/api/none", "/"].map((path) => route(request(path)).pattern)
      assert.deepStrictEqual(patterns, ["/api/orders/{id}", unmatched, unmatched])
    }))

  test("gives no handler a request that the checks have not seen", (app) =>
    Effect.gen(function*() {
      for (const path of ["/api/tokens", "/api/operators"]) {
        const source = HttpServerRequest.fromWeb(new globalThis.Request(`http://api.invalid${path}`))
        const ended = yield* Effect.exit(
          Effect.scoped(Effect.provideService(app, HttpServerRequest.HttpServerRequest, source))
        )
        assert.include(Exit.isFailure(ended) ? Cause.pretty(ended.cause) : "answered", "without the checks", path)
      }
    }))

  test("lets nobody act whom the checks should have refused", (app) =>
    Effect.gen(function*() {
      const half = {
        kind: "half",
        step: "verify",
        userId: "u",
        username: "vera",
        tokenHash: "t",
        csrfToken: "c",
        expiresAt: 1
      } as const
      const query = new URLSearchParams()
      const ended = (path: string, method: string, sender: Caller["sender"]) =>
        Effect.exit(
          served(app, request(path, method), { query, body: method === "GET" ? undefined : {} }, { ...caller, sender })
        )
      for (
        const [method, path, sender, kind] of [
          ["GET", "/api/account/sessions", caller.sender, "token"],
          ["GET", "/api/account/sessions", half, "half"],
          ["GET", "/api/account/sessions", undefined, "nobody"]
        ] as const
      ) {
        const exit = yield* quiet(ended(path, method, sender))
        const said = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "answered"
        assert.include(said, `a request of ${kind} reached a handler that is not for it`, path)
      }
    }))
})
