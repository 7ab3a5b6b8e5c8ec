import { Arbitrary, Effect, Schema, SchemaAST } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Route } from "../../../src/surfaces/operator/ApiRoutes.ts"
import { documentOf } from "../../../src/surfaces/operator/OpenApiDocument.ts"
import type { Asking } from "../../support/Api.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Ask, Held } from "../../support/Asked.ts"
import { cookieOf } from "../../support/Asked.ts"
import { databases } from "../../support/Databases.ts"
import { makeDocumented } from "../../support/Documented.ts"
import { isFull } from "../../support/Full.ts"
import { seedOf } from "../../support/Fuzz.ts"
import { sql } from "../../support/Graph.ts"
import { made, password } from "../../support/Operators.ts"
import { populate } from "../../support/Populated.ts"
import { routes } from "../../support/Roles.ts"

/*
 * Sends requests that are made from the schemas of the declaration, over a database with rows of every kind. Some
 * requests are correct and some have a single fault. Every answer is compared with the document.
 */

const documented = makeDocumented(JSON.parse(JSON.stringify(documentOf("0.0.0-test", "https://panel.example"))))

/** The number of requests of either kind for each route. */
const runs = isFull ? 60 : 4

/** The values for paths and members: some exist in the database, and some do not. */
interface Known {
  readonly ids: ReadonlyArray<string>
}

const odd: ReadonlyArray<unknown> = [null, "", 0, -1, 1.5, 1e300, true, [], {}, "x".repeat(300), { a: [null] }]

const strange: fc.Arbitrary<unknown> = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.constantFrom(...odd)
)

/** Makes a text for a member or a parameter of this name. Some of the texts have a meaning. */
const textOf = (name: string, { ids }: Known): fc.Arbitrary<string> => {
  if (/password/i.test(name)) return fc.constantFrom(password, password, "Gdańsk shipyard, 9 cranes", "short")
  if (name === "contact") return fc.constantFrom("mailto:ops@corp.example", "ops@corp.example", "nobody")
  if (name === "profile") return fc.constantFrom("default", "other", "none")
  if (name === "username" || name === "user") return fc.constantFrom("anna", "olga", "vera", "nobody")
  if (name === "since" || name === "until") return fc.constantFrom("2026-01-31", "2026-01-31T12:00:00Z", "soon")
  if (/^(?:limit|offset|days)$/.test(name)) return fc.integer({ min: -3, max: 400 }).map(String)
  if (name.startsWith("identifier") || name === "q") {
    return fc.constantFrom("a.example", "example", "*.b", ...ids)
  }
  return fc.oneof(
    fc.constantFrom(...ids),
    fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 60 })
  )
}

/** Makes values that a schema accepts. */
const madeFrom = (schema: Schema.Constraint): fc.Arbitrary<unknown> => {
  const arbitrary = Arbitrary.schema(schema)
  return fc.nat().map((seed) => Effect.runSync(Arbitrary.sampleEffect(arbitrary, { count: 1, seed }))[0])
}

/** Makes an object with a fitting value for each member of a schema. */
const membersOf = (schema: Route["payload"], known: Known): fc.Arbitrary<object> => {
  if (schema === undefined) return fc.constant({})
  const ast = SchemaAST.toEncoded(schema.ast)
  if (!SchemaAST.isObjects(ast)) return madeFrom(Schema.toEncoded(schema)) as fc.Arbitrary<object>
  const members = ast.propertySignatures.map(({ name, type }) => {
    const word = String(name)
    const isText = type._tag === "String" || type._tag === "Number"
    const fits = isText && !word.startsWith("expires") ? textOf(word, known) : word === "expiresInDays"
      ? fc.integer({ min: 1, max: 366 })
      : madeFrom(Schema.make(type))
    return [word, fits, SchemaAST.isOptional(type)] as const
  })
  const needed = members.filter(([, , isOptional]) => !isOptional).map(([name]) => name)
  return fc.record(Object.fromEntries(members.map(([name, fits]) => [name, fits])), { requiredKeys: needed })
}

interface Made {
  readonly target: string
  readonly body: object | undefined
}

const targetOf = ({ pattern }: Route, path: ReadonlyArray<string>, query: object): string => {
  let at = 0
  const filled = pattern.replaceAll(/\{\w+\}/g, () => encodeURIComponent(path[at++] ?? ""))
  const parameters = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])
  )
  return parameters.size === 0 ? filled : `${filled}?${parameters}`
}

const parametersOf = ({ pattern }: Route): ReadonlyArray<string> =>
  [...pattern.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)

/** Makes requests that fit a route. */
const fitting = (route: Route, known: Known): fc.Arbitrary<Made> =>
  fc.record({
    path: fc.tuple(
      ...parametersOf(route).map((name) => textOf(name, known).filter((text) => /^[\w.-]+$/.test(text)))
    ),
    query: membersOf(route.query, known),
    body: membersOf(route.payload, known)
  }).map(({ body, path, query }) => ({
    target: targetOf(route, path, query),
    body: route.payload === undefined ? undefined : body
  }))

/** Makes requests with one fault: a member or a parameter that is unusual, unknown or missing. */
const misfitting = (route: Route, known: Known): fc.Arbitrary<Made> =>
  fc.tuple(fitting(route, known), strange, fc.nat(), fc.constantFrom("strange", "unknown", "gone"))
    .map(
      ([{ body, target }, value, at, how]) => {
        const names = Object.keys(body ?? {})
        const name = how === "unknown" || names.length === 0 ? "unknown" : names[at % names.length] ?? ""
        if (body === undefined) {
          const joint = target.includes("?") ? "&" : "?"
          return { target: `${target}${joint}${name}=${encodeURIComponent(String(value))}`, body }
        }
        const { [name]: _, ...others } = body as { readonly [member: string]: unknown }
        return { target, body: how === "gone" ? others : { ...others, [name]: value } }
      }
    )

describe.each(databases)("requests made from the document, $name", (backend) => {
  const { records, test } = useApi(backend)

  /** Sends requests as an admin, and signs in again if a request has ended the session. */
  const asking = ({ ask }: Asking, begun: Held) => {
    const now = { held: begun, password, asked: 0 }
    return Effect.fnUntraced(function*({ method, name }: Route, { body, target }: Made) {
      // Each request has its own address. Otherwise wrong passwords would cause 429 for all requests.
      const clientIp = `198.18.${now.asked >> 8}.${now.asked++ & 255}`
      const asked: Ask = { method, clientIp, ...now.held, ...(body === undefined ? {} : { body }) }
      const told = yield* ask(target, asked)
      if (name === "changeOwnPassword" && told.status === 204) {
        now.password = (body as { readonly newPassword: string }).newPassword
      }
      if ((yield* ask("/api/session", { ...now.held, clientIp })).status !== 200) {
        yield* sql("UPDATE admin_users SET totp_secret = NULL, totp_pending_secret = NULL WHERE username = 'anna'")
        const signIn = { username: "anna", password: now.password }
        const again = yield* ask("/api/session", { method: "POST", clientIp, body: signIn })
        assert.strictEqual(again.status, 200, `after ${method} ${target}: ${again.text}`)
        now.held = { cookie: cookieOf(again), csrf: again.json.csrfToken }
      }
      return told
    })
  }

  test("get the documented answers, and never 500", (api) =>
    Effect.gen(function*() {
      yield* populate
      // The service never writes such values: numbers that are too large to be exact, and a list that is no list.
      yield* sql("UPDATE orders SET cert_not_after = 1900000000 WHERE cert_not_after IS NOT NULL")
      yield* sql("UPDATE orders SET error = NULL")
      yield* sql("DELETE FROM audit_log")
      for (const table of ["admin_users", "crls"]) yield* sql(`DELETE FROM ${table}`)
      for (const [username, role] of [["olga", "operator"], ["vera", "viewer"]] as const) yield* made(username, role)
      const { dialect } = yield* Database
      const text = dialect === "postgres" ? "id::text" : "lower(hex(id))"
      const columns = yield* Effect.forEach(
        ["accounts", "orders", "jobs", "admin_users", "api_tokens"],
        (table) =>
          sql(`SELECT ${text} AS id FROM ${table} LIMIT 5`) as Effect.Effect<
            ReadonlyArray<{ id: string }>,
            never,
            Database
          >
      )
      const hyphenated = (id: string) => id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
      const known: Known = {
        ids: [...columns.flat().map(({ id }) => hyphenated(id)), "1", "2", "01890a5d-ac96-774b-bcce-b302099a8057"]
      }
      const ask = asking(api, yield* signedIn(api, "anna", "admin"))
      const [succeeded, faults] = [new Set<string>(), new Array<string>()]
      for (const route of routes) {
        const options = { numRuns: runs, seed: seedOf(1) }
        const requests = [
          ...fc.sample(fitting(route, known), options),
          ...fc.sample(misfitting(route, known), options)
        ]
        for (const one of requests) {
          const told = yield* ask(route, one)
          const fault = told.status === 500 ? "500" : documented.faultOf({ ...route, ...told })
          if (fault !== undefined) {
            const body = JSON.stringify(one.body)
            faults.push(`${route.method} ${one.target} ${body}: ${fault}; ${told.status} ${told.text.slice(0, 400)}`)
          }
          if (told.status < 300) succeeded.add(route.name)
        }
      }
      assert.deepStrictEqual(faults, [])
      assert.isAbove(succeeded.size, 30, [...succeeded].join(", "))
    }))

  test("get an error of the service if the answer is undocumented", (api) =>
    Effect.gen(function*() {
      yield* populate
      for (const table of ["admin_users", "audit_log"]) yield* sql(`DELETE FROM ${table}`)
      const held = yield* signedIn(api, "anna", "admin")
      // The type in this error is not a string.
      const error = `'{"type":7,"status":500,"detail":"x"}'`
      yield* sql(`UPDATE orders SET cert_not_after = 1900000000, error = ${error} WHERE cert_not_after IS NOT NULL`)
      const told = yield* api.ask("/api/orders?identifier=a.example&profile=default", held)
      assert.deepStrictEqual([told.status, told.json.error], [500, "internal"])
      const { fields } = records.find(({ event }) => event === "request_handler_panicked") ?? { fields: {} }
      assert.match(
        String((fields as { readonly error?: string }).error),
        /at \["items"\]\[0\]\["error"\]/
      )
    }))
})
