import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { tables } from "../../../src/store/transfer/Tables.ts"
import type { Guarded } from "../../../src/surfaces/operator/gate/RouteMatcher.ts"
import { routesOf } from "../../../src/surfaces/panel/PanelRoutes.ts"
import type { Told } from "../../support/Asked.ts"
import { databases } from "../../support/Databases.ts"
import { isFull } from "../../support/Full.ts"
import { callerAt, eventsOf, fieldsOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { made, password } from "../../support/Operators.ts"
import { entered, form, usePanel } from "../../support/Panel.ts"

/*
 * Whatever an operator types, and whatever the database does, the answer of the panel is readable and shows no
 * internals.
 */

/** Every field of a form, with a value that some field accepts. */
const fields = {
  accounts: "keep",
  allowedAddresses: "192.0.2.0/24",
  code: "123456",
  contact: "ops@corp.example",
  expiresInDays: "30",
  label: "printers",
  name: "backup",
  newPassword: "Gdańsk shipyard, 9 cranes",
  next: "/ui/orders",
  password,
  profile: "default",
  reason: "4",
  repeated: "Gdańsk shipyard, 9 cranes",
  role: "viewer",
  ttlSeconds: "3600",
  username: "olga"
}

const all = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "x".repeat(10_000),
  "👩‍🚀 ü\u0301 \u202E\uFEFF",
  "-1",
  "99999999999999999999",
  "1e999",
  "NaN",
  "'; DROP TABLE orders; --",
  "<script>alert(1)</script>{{ 7 * 7 }}",
  "../../etc/passwd",
  "a\r\nSet-Cookie: a=b"
]

/** A full run uses all of them, any other run uses every second one. */
const odd = isFull ? all : all.filter((_, index) => index % 2 === 1)

/** Words of code, of SQL and of files. No answer may contain them. */
const inside =
  /\bat [\w.]+ \(|node_modules|\.ts:\d|SQLITE|SqlError|\bSELECT \w|\bINSERT INTO\b|\bUPDATE \w+ SET\b|admin_users|pbkdf2/

const isEnding = ({ pattern }: Guarded): boolean =>
  ["/ui/logout", "/ui/login/abandon", "/ui/account/sign-out-everywhere"].includes(pattern)

describe.each(databases)("the panel on $name", (backend) => {
  const { config, records, test } = usePanel(backend)
  const none = { urls: {}, answer: () => undefined }
  const routes: ReadonlyArray<Guarded> = routesOf({ config, sources: new Map() }, none)

  /** An order and its account. The paths of routes contain these ids, or ids that do not exist. */
  const ordered = Effect.gen(function*() {
    const caller = yield* callerAt(profileOf(config))
    const order = yield* orderOf(caller, "a.example")
    return ({ pattern }: Guarded): string =>
      pattern.replace("{username}", "olga").replace("{name}", "default")
        .replace(/\{\w+\}/, pattern.includes("/accounts/") ? caller.accountId : order.id)
  })
  const ground = Effect.andThen(made("olga"), ordered)

  /** Undoes the changes that forms have made to operators. */
  const restored = (hash: string) =>
    sql(
      `UPDATE admin_users SET password_hash = '${hash}', totp_secret = NULL, totp_pending_secret = NULL, status = 'active'`
    )
  const hashOf = Effect.map(sql("SELECT * FROM admin_users"), ([user]) => String(user?.password_hash))

  const fits = (told: Told, most: number, what: string) => {
    assert.isAtMost(told.status, most, `${what}: ${told.text.slice(0, 500)}`)
    assert.notMatch(told.text, inside, what)
    assert.notInclude(told.text, "<script>alert", what)
    assert.notProperty(told.headers, "a", what)
  }

  test("accepts every field of every form with every unusual value, or says what is wrong with it", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "anna", "admin")
      const pathOf = yield* ground
      const hash = yield* hashOf
      let asked = 0
      for (const route of routes.filter((one) => one.method === "POST" && !isEnding(one))) {
        for (const [field, usual] of Object.entries(fields)) {
          for (const value of [undefined, ...odd]) {
            const { [field as keyof typeof fields]: _, ...rest } = fields
            const body = form(value === undefined ? rest : { ...rest, [field]: value })
            // Every request comes from its own network, so that no request is refused because of earlier ones.
            const clientIp = `2001:db8:${(++asked).toString(16)}::1`
            const told = yield* panel.ask(pathOf(route), { method: "POST", body, clientIp, ...held })
            fits(told, 499, `${route.pattern} ${field} = ${JSON.stringify(value ?? usual).slice(0, 60)}`)
          }
          yield* restored(hash)
        }
      }
      assert.notInclude(eventsOf(records), "request_handler_panicked")
      assert.notInclude(eventsOf(records), "db_statement_failed")
    }))

  test("filters every list by every unusual value, or says what is wrong with it", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "anna", "admin")
      const pathOf = yield* ground
      for (const route of routes.filter((one) => one.method === "GET" && one.access !== "half")) {
        const path = pathOf(route)
        const { text } = yield* panel.ask(path, held)
        const names = new Set(["page", "q", ...[...text.matchAll(/ name="(\w+)"/g)].map(([, name = ""]) => name)])
        for (const name of names) {
          for (const value of odd) {
            const told = yield* panel.ask(`${path}?${form({ [name]: value }).toString()}`, held)
            fits(told, 499, `${route.pattern} ${name} = ${JSON.stringify(value).slice(0, 60)}`)
          }
        }
      }
      assert.notInclude(eventsOf(records), "request_handler_panicked")
      assert.notInclude(eventsOf(records), "db_statement_failed")
    }))

  test("shows no internals while a table is missing", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "anna", "admin")
      yield* made("olga")
      const hash = yield* hashOf
      // A full run removes every table, any other run removes the tables that most pages read.
      const read = ["admin_users", "admin_sessions", "orders", "accounts", "jobs", "audit_log", "api_tokens"]
      for (const table of isFull ? tables.map(({ name }) => name) : read) {
        const pathOf = yield* ordered
        yield* restored(hash)
        yield* sql(`ALTER TABLE ${table} RENAME TO gone`)
        // An export whose rows fail is cut off, because its head was already sent.
        const whole = routes.filter((one) => !isEnding(one) && !one.pattern.endsWith("/export"))
        const asked = Effect.forEach(whole, (route, number) =>
          Effect.map(
            panel.ask(pathOf(route), {
              method: route.method,
              ...route.method === "POST" ? { body: form(fields) } : {},
              clientIp: `2001:db8:${number.toString(16)}::1`,
              ...held
            }),
            (told) => {
              const what = `${route.method} ${route.pattern} without ${table}`
              fits(told, 503, what)
              assert.notInclude(eventsOf(records), "request_handler_panicked", what)
            }
          ))
        yield* Effect.ensuring(asked, sql(`ALTER TABLE gone RENAME TO ${table}`))
      }
      assert.include(eventsOf(records), "db_statement_failed")
    }))

  test("shows nothing of an internal fault", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vera", "viewer")
      const driver: Driver = { ...yield* Database, aside: () => Effect.die(new Error("inside ".repeat(1000))) }
      const told = yield* Effect.provideService(panel.ask("/ui/orders", held), Database, driver)
      assert.strictEqual(told.status, 500)
      assert.include(told.text, "data-code=\"internal\"")
      assert.notInclude(told.text, "inside")
      assert.property(told.headers, "content-security-policy")
      const [{ error } = { error: "" }] = fieldsOf(records, "request_handler_panicked")
      assert.match(String(error), /inside/)
      assert.lengthOf(String(error), 2000)
    }))
})
