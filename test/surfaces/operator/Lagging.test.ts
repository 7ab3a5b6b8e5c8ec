import { Context, Effect, Layer, Redacted } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { routeOf } from "../../../src/surfaces/operator/ActRoute.ts"
import type { Guarded } from "../../../src/surfaces/operator/gate/RouteMatcher.ts"
import { nouns } from "../../../src/surfaces/operator/Nouns.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Ask, Told } from "../../support/Asked.ts"
import { postgres } from "../../support/Databases.ts"
import { column, eventsOf } from "../../support/Graph.ts"
import { sqlAt } from "../../support/OpenDatabase.ts"
import { entered, form, usePanel } from "../../support/Panel.ts"
import { panelRoutes } from "../../support/PanelRoutes.ts"
import { populate } from "../../support/Populated.ts"

/* Which routes a standby may answer. */

const acts = nouns.flatMap(({ acts }) => acts)
const apiRoutes: ReadonlyArray<Guarded> = acts.flatMap(routeOf)
const lagging = (routes: ReadonlyArray<Guarded>) =>
  routes.filter(({ mayLag }) => mayLag === true).map(({ pattern }) => pattern)

describe("the routes that may lag", () => {
  it("only read, are open to every role, and do not change the session", () => {
    const may = [...apiRoutes, ...panelRoutes].filter(({ mayLag }) => mayLag === true)
    assert.isAbove(may.length, 40)
    for (const { access, isStepUp, isWithoutCsrf, method, pattern } of may) {
      assert.deepStrictEqual([method, access, isStepUp, isWithoutCsrf], ["GET", "viewer", false, false], pattern)
    }
  })

  it("are not declared for an act without a route", () => {
    const without = acts.filter(({ http, mayLag }) => mayLag === true && http === undefined)
    assert.deepStrictEqual(without.map(({ id }) => id), [])
  })

  it("are all routes for viewers except those that must show the present state", () => {
    const must = [...apiRoutes, ...panelRoutes].filter(({ access, mayLag, method }) =>
      method === "GET" && access === "viewer" && mayLag !== true
    )
    assert.deepStrictEqual(must.map(({ pattern }) => pattern).toSorted(), [
      "/api/attention",
      "/api/audit/chain",
      "/api/audit/receivers",
      "/api/cas",
      "/api/cas/{issuer}",
      "/api/config",
      "/api/kinds",
      "/api/nonces",
      "/api/openapi.json",
      "/api/profiles",
      "/api/profiles/{name}/filter",
      "/api/queue",
      "/api/trends",
      "/api/workers",
      "/ui/",
      "/ui/audit/chain",
      "/ui/authorities",
      "/ui/authorities/{issuer}",
      "/ui/authorities/{issuer}/ca.crl",
      "/ui/authorities/{issuer}/ca.pem",
      "/ui/campaigns/preview",
      "/ui/configuration",
      "/ui/nonces",
      "/ui/orders/{id}/chain.pem",
      "/ui/profiles",
      "/ui/profiles/{name}",
      "/ui/profiles/{name}/filter",
      "/ui/profiles/{profile}/kinds",
      "/ui/workers"
    ])
  })
})

/** The tables of sessions, tokens, roles and guards, and the one that a standby cannot read. */
const forbidden = [
  "admin_sessions",
  "admin_users",
  "admin_recovery_codes",
  "admin_password_links",
  "api_tokens",
  "login_attempts",
  "login_failures",
  "nonces"
]

const reader = `reader_${process.pid}`

/**
 * Makes a database whose standby is the primary itself, with a user who has no right to read the tables that decide who
 * may do what.
 */
const withReader = (url: string) => {
  const own = new URL(url)
  own.username = reader
  own.password = "secret"
  return Effect.orDie(Effect.map(
    Layer.build(
      Postgres.layer({
        url: Redacted.make(url),
        pool_max: 4,
        acquire_timeout_ms: 5000,
        isServing: true,
        read_url: Redacted.make(own.href)
      })
    ),
    Context.get(Database)
  ))
}

/** Returns the events of reads that the standby refused. */
const refused = (records: ReadonlyArray<Record>) =>
  eventsOf(records).filter((event) => event.startsWith("db_standby") || event === "db_statement_failed")

type Asks<R> = (target: string, asked?: Ask) => Effect.Effect<Told, unknown, R>

/** Sends a GET to every pattern, with every id that the database has, and returns the patterns that were answered. */
const visited = Effect.fnUntraced(function*<R>(
  ask: Asks<R>,
  patterns: ReadonlyArray<string>,
  held: Ask,
  isOfStandby: (told: Told) => boolean
) {
  const ids = yield* column(
    `SELECT id::text FROM accounts UNION ALL (SELECT id::text FROM orders ORDER BY id LIMIT 2)
     UNION ALL SELECT encode(kid, 'hex')::uuid::text FROM eab_keys UNION ALL (SELECT id::text FROM jobs LIMIT 2)
     UNION ALL SELECT order_id::text FROM upstream_orders UNION ALL SELECT id::text FROM audit_log
     UNION ALL SELECT id::text FROM campaigns`
  )
  const answered = new Set<string>()
  for (const pattern of patterns) {
    const targets = pattern.includes("{") ? ids.map((id) => pattern.replace(/\{\w+\}/, id)) : [pattern]
    for (const target of targets) {
      const told = yield* ask(target.endsWith("/search") ? `${target}?q=example.com` : target, held)
      assert.include([200, 404], told.status, `${target}: ${told.text}`)
      if (told.status !== 200) continue
      assert.isTrue(isOfStandby(told), `${target}: ${JSON.stringify(told.headers)}`)
      answered.add(pattern)
    }
  }
  return [...answered]
})

describe("a database user who may read neither sessions, tokens and operators nor nonces", () => {
  const api = useApi(postgres)
  const panel = usePanel(postgres)

  const grant = async (url: string) => {
    await sqlAt(url, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${reader}`)
    await sqlAt(url, `REVOKE SELECT ON ${forbidden.join(", ")} FROM ${reader}`)
  }

  beforeAll(async () => {
    await sqlAt(api.database.url(), `CREATE ROLE ${reader} LOGIN PASSWORD 'secret'`)
    for (const { database } of [api, panel]) await grant(database.url())
  })

  afterAll(async () => {
    for (const { database } of [api, panel]) await sqlAt(database.url(), `DROP OWNED BY ${reader}`)
    await sqlAt(api.database.url(), `DROP ROLE ${reader}`)
  })

  api.test("has enough rights for every route of the API that may lag", ({ ask }) =>
    Effect.gen(function*() {
      yield* populate
      const held = yield* signedIn({ ask }, "anne", "admin")
      const driver = yield* withReader(api.database.url())
      const patterns = lagging(apiRoutes)
      const header = "x-acme-svc-read-lag-ms"
      const answered = yield* visited(
        (target, asked) => Effect.provideService(ask(target, asked), Database, driver),
        patterns,
        held,
        ({ headers }) => headers[header] === "0"
      )
      assert.deepStrictEqual(answered, patterns)
      const others = apiRoutes.filter(({ mayLag, method, pattern }) =>
        method === "GET" && mayLag !== true && !pattern.includes("{")
      )
      for (const { pattern } of others) {
        const told = yield* Effect.provideService(ask(pattern, held), Database, driver)
        assert.isUndefined(told.headers[header], pattern)
      }
      assert.deepStrictEqual(refused(api.records), [])
    }).pipe(Effect.scoped))

  panel.test("has enough rights for every page that may lag", ({ ask }) =>
    Effect.gen(function*() {
      yield* populate
      const held = yield* entered({ ask }, "anne", "admin")
      const driver = yield* withReader(panel.database.url())
      const patterns = lagging(panelRoutes)
      const said = "Read from a standby, less than a second behind."
      const answered = yield* visited(
        (target, asked) => Effect.provideService(ask(target, asked), Database, driver),
        patterns,
        held,
        ({ headers, text }) => !(headers["content-type"] ?? "").startsWith("text/html") || text.includes(said)
      )
      assert.deepStrictEqual(answered, patterns)
      for (const path of ["/ui/", "/ui/operators", "/ui/account", "/ui/nonces"]) {
        const told = yield* Effect.provideService(ask(path, held), Database, driver)
        assert.deepStrictEqual([told.status, told.text.includes("standby")], [200, false], path)
      }
      // The page after a refused form shows the present state.
      const [id = ""] = yield* column("SELECT id::text FROM orders WHERE certificate IS NULL LIMIT 1")
      const page = `/ui/orders/${id}`
      const conflict = yield* Effect.provideService(
        ask(`${page}/revoke`, {
          method: "POST",
          body: form({ reason: "superseded" }),
          headers: { "hx-request": "true", "hx-current-url": `${panel.config.admin.base_url}${page}` },
          ...held
        }),
        Database,
        driver
      )
      assert.strictEqual(conflict.status, 409, conflict.text)
      assert.include(conflict.text, id)
      assert.notInclude(conflict.text, "standby")
      assert.deepStrictEqual(refused(panel.records), [])
    }).pipe(Effect.scoped))
})
