import { Arbitrary, Effect, Schema } from "effect"
import { assert, describe } from "vitest"
import { operatorCodes } from "../../../src/domain/OperatorProblem.ts"
import { declaration } from "../../../src/surfaces/operator/ActDocument.ts"
import type { Route } from "../../../src/surfaces/operator/ApiRoutes.ts"
import { routesOf } from "../../../src/surfaces/operator/ApiRoutes.ts"
import { documentOf } from "../../../src/surfaces/operator/OpenApiDocument.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Ask, Told } from "../../support/Asked.ts"
import { databases } from "../../support/Databases.ts"
import { makeDocumented } from "../../support/Documented.ts"

/*
 * Bad input for every route of the declaration: the document knows the status and the body of each answer, no answer is
 * 500, and none shows a stack, a statement or a file.
 */

const routes = routesOf(declaration).filter(({ name }) => name !== "signOut" && name !== "revokeOwnSession")
const documented = makeDocumented(JSON.parse(JSON.stringify(documentOf("0.0.0-test", "https://panel.example"))))

const id = "01890a5d-ac96-774b-bcce-b302099a8057"

/** Returns the path with a value for each parameter. */
const pathOf = ({ pattern }: Route, value: string): string => pattern.replaceAll(/\{\w+\}/g, value)

const oddValues: ReadonlyArray<unknown> = [
  null,
  "",
  " ",
  0,
  -1,
  1.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
  true,
  [],
  {},
  "x".repeat(5000),
  "а́dmin\u0000",
  "' OR 1=1 --",
  { a: { b: [null] } },
  ["x", null]
]

const oddBodies: ReadonlyArray<unknown> = [
  "",
  "{",
  "null",
  "[]",
  "\"x\"",
  "1",
  "{\"a\":1,\"a\":2}",
  "{\"__proto__\":{\"role\":\"admin\"}}",
  "[".repeat(5000),
  Buffer.from([0xff, 0xfe, 0x00]),
  "x".repeat(65_537)
]

const membersOf = (schema: Route["payload"]): ReadonlyArray<string> =>
  schema !== undefined && schema.ast._tag === "Objects"
    ? schema.ast.propertySignatures.map(({ name }) => String(name))
    : []

/** Returns a value that fits a schema, if one can be generated. */
const fitting = (schema: Route["payload"]): object =>
  schema === undefined
    ? {}
    : Effect.runSync(
      Arbitrary.sampleEffect(Arbitrary.schema(Schema.toEncoded(schema)), { count: 1, seed: 7 })
    )[0] as object

const holds = (route: Route, asked: string, told: Told): void => {
  const { headers, json, status, text } = told
  const what = `${route.method} ${asked}: ${status} ${text.slice(0, 300)}`
  assert.notStrictEqual(status, 500, what)
  assert.isUndefined(documented.faultOf({ ...route, ...told }), what)
  assert.strictEqual(headers["cache-control"], "no-store", what)
  assert.strictEqual("retry-after" in headers, status === 429 || status === 503, what)
  assert.strictEqual("allow" in headers, status === 405, what)
  if (status < 400) return
  assert.sameMembers(Object.keys(json ?? {}), ["error", "message"], what)
  assert.isTrue(operatorCodes.some((row) => row.code === json.error && row.status === status), what)
  assert.notMatch(text, /\bat .*\.(?:ts|js):|SELECT |INSERT |node_modules|\/src\//, what)
}

describe.each(databases)("bad input to the API, $name", (backend) => {
  const { test } = useApi(backend)

  test("gets an answer that the document describes", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      for (const route of routes) {
        const plain: Ask = { method: route.method, ...held }
        const asks: Array<readonly [string, Ask]> = []
        const body = route.payload === undefined ? {} : { body: fitting(route.payload) }
        for (const value of [id, "0", "x".repeat(250), "ann", "a.b", "%2e%2e", "a%2fb", ".."]) {
          asks.push([pathOf(route, value), { ...plain, ...body }])
        }
        for (const member of membersOf(route.payload)) {
          for (const value of oddValues) {
            asks.push([pathOf(route, id), { ...plain, body: { ...body.body, [member]: value } }])
          }
        }
        for (const odd of route.payload === undefined ? [{}, "x"] : oddBodies) {
          asks.push([pathOf(route, id), { ...plain, body: odd }])
        }
        if (route.payload !== undefined) {
          asks.push([pathOf(route, id), { ...plain, body: { ...body.body, unknown: 1 } }])
          for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json5", ""]) {
            asks.push([pathOf(route, id), { ...plain, body: "{}", headers: { "content-type": type } }])
          }
          asks.push([pathOf(route, id), { ...plain, ...body, headers: { "content-encoding": "gzip" } }])
        }
        for (const parameter of [...membersOf(route.query), "unknown", "__proto__"]) {
          for (
            const value of [
              "",
              "0",
              "-5",
              "1e3",
              "999999999999999",
              "-999999999999999",
              "99999999999999999999",
              "%00",
              "%FF",
              "a&b",
              "x".repeat(3000),
              "ünï"
            ]
          ) {
            asks.push([`${pathOf(route, id)}?${parameter}=${value}`, { ...plain, ...body }])
          }
          asks.push([`${pathOf(route, id)}?${parameter}=1&${parameter}=2`, { ...plain, ...body }])
        }
        for (const [target, asked] of asks) {
          holds(route, target, yield* ask(target, asked))
        }
      }
    }))

  test("is not processed if it has more parameters than any route has", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      const query = (count: number) => Array.from({ length: count }, (_, at) => `p${at}=`).join("&")
      assert.strictEqual((yield* ask(`/api/orders?${query(64)}`, held)).status, 200)
      const refused = yield* ask(`/api/orders?${query(65)}`, held)
      assert.deepStrictEqual([refused.status, refused.json.error], [400, "bad_request"])
      const twice = yield* ask("/api/orders?limit=1&profile=a&limit=2", held)
      assert.strictEqual(twice.json.message, "The parameter limit was given twice.")
      for (const word of ["1e3", "x", "1.0", "0x1"]) {
        const told = yield* ask(`/api/orders?limit=${word}`, held)
        assert.strictEqual(told.json.message, "The parameter limit must be an integer.")
      }
      const wide = yield* ask(`/api/orders?limit=${"9".repeat(400)}&offset=-${"9".repeat(20)}`, held)
      assert.deepInclude(wide.json, { limit: 200, offset: 0 })
      const age = yield* ask("/api/nonces/cleanup", { method: "POST", ...held, body: { ttlSeconds: 1e300 } })
      assert.strictEqual(age.json.message, "ttlSeconds takes a number of seconds from 0 to 2147483647.")
    }))

  test("gets an answer that names the fault if the route or the method is unknown", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      for (
        const path of [
          "/api/",
          "/api//orders",
          "/api/orders/",
          "/api/Orders",
          "/api/orders%2f",
          "/api/none",
          "/none",
          "//"
        ]
      ) {
        const told = yield* ask(path, held)
        assert.deepStrictEqual([path, told.status, told.json.error], [path, 404, "not_found"])
      }
      // A fixed segment in another case counts as a parameter. Here it is an id that no account has.
      const near = yield* ask("/api/accounts/EXPORT", held)
      assert.deepStrictEqual([near.status, near.json.message], [404, "There is no account EXPORT."])
      for (const method of ["OPTIONS", "TRACE", "PUT", "CONNECT"]) {
        const told = yield* ask("/api/orders", { ...held, method })
        assert.deepStrictEqual([told.status, told.headers["allow"]], [405, "HEAD, GET"])
      }
      assert.strictEqual((yield* ask("/api/orders", { ...held, method: "HEAD" })).status, 200)
    }))
})
