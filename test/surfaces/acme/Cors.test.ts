import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { databases } from "../../support/Databases.ts"
import { configOf } from "../../support/Graph.ts"
import { acmeKey, at, freshNonce, posted, requestOf, signed, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* `server.cors_origins` for scripts of other origins (RFC 8555 section 6.1). */

const tool = "https://tool.example.test"
const exposed = "Replay-Nonce, Link, Location, Retry-After"
const surface = (origins: string) => surfaceOf(configOf(`[server]\ncors_origins = [${origins}]\n`))
const listed = surface(`"${tool}", "http://localhost:8080"`)

/** Returns the headers of an answer that concern other origins. */
const sharing = ({ headers }: Answer) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith("access-control-") || name === "vary")
  )

const from = (origin: string | undefined, more: Record<string, string> = {}) => ({
  headers: { ...(origin === undefined ? {} : { origin }), ...more }
})

const asking = { "access-control-request-method": "POST", "access-control-request-headers": "content-type" }

describe.each(databases)("scripts of other origins, on $name", (backend) => {
  const { test } = useWorld(backend)

  const get = (
    origin: string | undefined,
    path = at("/directory"),
    more: Record<string, string> = {},
    method = "GET"
  ) => Effect.flatMap(listed, (app) => app.handle(requestOf(method, path, from(origin, more))))

  test("may read every answer of the profiles with its headers, if their origin is listed", () =>
    Effect.gen(function*() {
      const shared = { vary: "Origin", "access-control-allow-origin": tool, "access-control-expose-headers": exposed }
      assert.deepStrictEqual(sharing(yield* get(tool)), shared)
      assert.deepStrictEqual(sharing(yield* get(tool, at("/newNonce"), {}, "HEAD")), shared)
      assert.deepStrictEqual(sharing(yield* get(tool, at("/nowhere"))), shared, "problems too")
      const tag = String((yield* get(tool)).headers["etag"])
      const held = yield* get(tool, at("/directory"), { "if-none-match": tag })
      assert.deepStrictEqual([held.status, sharing(held)], [304, shared])
      const app = yield* listed
      const key = acmeKey()
      const target = at("/newAccount")
      const header = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
      const registered = yield* app.handle(posted(target, signed(key, header, {}), { origin: tool }))
      assert.strictEqual(registered.status, 201, String(registered.body))
      assert.deepStrictEqual(sharing(registered), shared)
      const late = yield* app.late(requestOf("GET", at("/directory"), from(tool)))
      assert.deepStrictEqual(sharing(late), shared)
    }))

  test("learn from the answer to OPTIONS what they may send", () =>
    Effect.gen(function*() {
      const asked = yield* get(tool, at("/newOrder"), asking, "OPTIONS")
      assert.strictEqual(asked.status, 204)
      assert.deepInclude(sharing(asked), {
        "access-control-allow-origin": tool,
        "access-control-allow-methods": "POST, OPTIONS",
        "access-control-allow-headers": "Content-Type"
      })
      assert.strictEqual(
        (yield* get(tool, at("/directory"), {}, "OPTIONS")).headers["allow"],
        "GET, HEAD, POST, OPTIONS"
      )
      assert.strictEqual((yield* get(tool, at("/nowhere"), asking, "OPTIONS")).status, 404)
      const other = yield* get("https://evil.example", at("/newOrder"), asking, "OPTIONS")
      assert.deepStrictEqual(sharing(other), { vary: "Origin" })
    }))

  test("may read nothing if their scheme, host or port differs from the listed origin", () =>
    Effect.gen(function*() {
      const others = [
        "http://tool.example.test",
        "https://tool.example.test:8443",
        "https://tool.example.test.evil.example",
        "https://sub.tool.example.test",
        "https://TOOL.example.test",
        `${tool}/`,
        `${tool}, ${tool}`,
        "http://localhost",
        "null",
        "*",
        "",
        undefined
      ]
      for (const origin of others) assert.deepStrictEqual(sharing(yield* get(origin)), { vary: "Origin" }, origin)
    }))

  test("may read every answer, whatever their origin, if * is listed", () =>
    Effect.gen(function*() {
      const app = yield* surface("\"*\"")
      for (const origin of [tool, "null", "https://evil.example"]) {
        const answer = yield* app.handle(requestOf("GET", at("/directory"), from(origin)))
        assert.strictEqual(answer.headers["access-control-allow-origin"], "*")
      }
    }))

  test("get no permission outside the profiles, and none at all by default", () =>
    Effect.gen(function*() {
      for (const path of ["/health", "/", "/.well-known/acme-challenge/x", "/profile/nobody/directory"]) {
        assert.deepStrictEqual(sharing(yield* get(tool, path)), {}, path)
      }
      const app = yield* surfaceOf(configOf())
      assert.deepStrictEqual(sharing(yield* app.handle(requestOf("GET", at("/directory"), from(tool)))), {})
      const asked = yield* app.handle(requestOf("OPTIONS", at("/newOrder"), from(tool, asking)))
      assert.deepStrictEqual([asked.status, asked.headers["allow"], sharing(asked)], [405, "POST", {}])
    }))
})
