import { Clock, Effect } from "effect"
import { assert, describe } from "vitest"
import { readStoredChain } from "../../../src/crypto/x509/Chain.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { mostOverApi } from "../../../src/operations/operator/Exports.ts"
import * as tokens from "../../../src/operations/operator/identity/Tokens.ts"
import * as upstreamOrders from "../../../src/store/upstream/UpstreamOrderRows.ts"
import type { Asking } from "../../support/Api.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import { asleep, wakened } from "../../support/Asleep.ts"
import { sqlite } from "../../support/Databases.ts"
import {
  callerAt,
  column,
  count,
  fieldsOf,
  idLiteral,
  orderOf,
  orderWith,
  profileOf,
  sql
} from "../../support/Graph.ts"
import { keyboard, password, startsAt } from "../../support/Operators.ts"
import { selfSigned } from "../../support/Shown.ts"
import { watched } from "../../support/Watched.ts"

/*
 * The decisions that handlers of the API make themselves: the limit and offset of a list, the filters, what each role
 * sees, and the answer to a revocation.
 */

const custom =
  "challenge.timeout_ms = 2000\nserver.request_timeout_ms = 3000\n[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\"\n"
const off = "[profiles.off]\nenabled = false\n"

describe("a handler of the API", () => {
  const { config, records, test } = useApi(sqlite, `${custom}${off}`)
  const admin = (api: Asking) => signedIn(api, "anna", "admin")

  const jobOf = (number: number, kind: string, key: string) =>
    sql(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
       VALUES (${
        idLiteral("sqlite", `01890a5d-ac96-774b-bcce-00000000000${number}`)
      }, '${kind}', '${key}', '{}', 'failed',
         1, 1, 3, 1, 1)`
    )

  test("replaces a limit or an offset that is out of bounds by the nearest allowed one", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      for (
        const [query, limit, offset] of [
          ["", 50, 0],
          ["?limit=7&offset=3", 7, 3],
          ["?limit=0&offset=-1", 1, 0],
          ["?limit=-5", 1, 0],
          [`?limit=${config.admin.page_size_max + 1}`, config.admin.page_size_max, 0]
        ] as const
      ) {
        const told = yield* api.ask(`/api/orders${query}`, held)
        assert.deepStrictEqual(told.json, { items: [], total: 0, limit, offset })
      }
    }))

  test("exports no more rows than the API sends", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const driver = yield* Database
      /** Returns a database that seems to have `total` rows of everything. */
      const saying = (total: number): Driver => ({
        ...driver,
        aside: undefined,
        single: (statement, params) =>
          Effect.map(driver.single(statement, params), (rows) =>
            rows.map((row) =>
              typeof row === "object" && row !== null && "total" in row ? { ...row, total } : row
            ))
      })
      for (const list of ["accounts", "orders", "eab", "audit", "expiring"]) {
        const told = (total: number) =>
          Effect.provideService(api.ask(`/api/${list}/export`, held), Database, saying(total))
        const file = yield* told(mostOverApi)
        assert.strictEqual(file.status, 200, list)
        const logged = fieldsOf(records, "admin_export_completed").at(-1)
        assert.deepInclude(logged, { list, body_bytes: Buffer.byteLength(file.text) })
        const refused = yield* told(mostOverApi + 1)
        assert.deepStrictEqual([list, refused.status, refused.json?.error], [list, 400, "export_too_large"])
      }
    }))

  test("shows other operators and their tokens only to admins", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const other = yield* signedIn(api, "olga", "operator")
      const name = (username: string) => `/api/tokens?user=${username}`
      for (const allowedAddresses of [[], ["192.0.2.0/24"]]) {
        const asked = {
          username: "olga",
          name: `for ${allowedAddresses.length}`,
          role: "viewer",
          expiresInDays: 1
        } as const
        yield* tokens.create(keyboard, { ...asked, allowedAddresses })
      }
      const listed: ReadonlyArray<object> = (yield* api.ask(name("olga"), held)).json.items
      assert.deepStrictEqual(listed.map((one) => "allowedAddresses" in one).toSorted(), [false, true])
      assert.strictEqual((yield* api.ask(name("olga"), held)).status, 200)
      assert.strictEqual((yield* api.ask(name("OLGA"), other)).status, 200)
      assert.deepInclude((yield* api.ask(name("anna"), other)).json, { error: "insufficient_role" })
      const kinds = (found: { readonly results: ReadonlyArray<{ readonly kind: string }> }) =>
        found.results.map(({ kind }) => kind)
      assert.deepStrictEqual(kinds((yield* api.ask("/api/search?q=anna", held)).json), ["operator"])
      assert.deepStrictEqual(kinds((yield* api.ask("/api/search?q=anna", other)).json), [])
    }))

  test("finds only the profiles that are served", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const { items, ...window } = (yield* api.ask("/api/profiles", held)).json
      assert.deepStrictEqual([items.length, window], [2, { total: 2, limit: 2, offset: 0 }])
      const statusOf = (path: string) => Effect.map(api.ask(`/api/${path}`, held), ({ status }) => status)
      assert.deepStrictEqual(
        yield* Effect.forEach(["default", "off", "none"], (name) => statusOf(`profiles/${name}/filter`)),
        [200, 404, 404]
      )
      assert.deepStrictEqual(yield* Effect.forEach(["default", "none"], (name) => statusOf(`config?profile=${name}`)), [
        200,
        404
      ])
      assert.deepStrictEqual(
        yield* Effect.forEach([{}, { ttlSeconds: 0 }, { ttlSeconds: -1 }], (body) =>
          Effect.map(api.ask("/api/nonces/cleanup", { method: "POST", ...held, body }), ({ status }) => status)),
        [200, 200, 400]
      )
    }))

  test("shows an upstream order with its job, if it has one", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
      const client = { ip: "192.0.2.9", user_agent: undefined, request_id: "request-1" }
      yield* upstreamOrders.insert({ orderId: id, csr: Uint8Array.of(1), client, now: startsAt })
      const shown = api.ask(`/api/upstream-orders/${id}`, held)
      const before = yield* shown
      assert.strictEqual(before.status, 200)
      assert.notProperty(before.json, "job")
      yield* jobOf(1, "signer_relay_issue", id)
      assert.deepInclude((yield* shown).json.job, { kind: "signer_relay_issue", status: "failed" })
    }))

  test("filters jobs by order and by kind", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      const { id: another } = yield* orderOf(caller, "b.example")
      for (const [at, key] of [id, another].entries()) yield* jobOf(at, "signer_issue", key)
      const foundBy = (query: string) =>
        Effect.map(api.ask(`/api/jobs${query}`, held), ({ json }) => json.total ?? json.error)
      assert.deepStrictEqual(
        yield* Effect.forEach(
          ["", `?orderId=${id}`, "?orderId=nobody", "?status=ready", "?kind=nonce_sweep", "?kind=crl_generate"],
          foundBy
        ),
        [2, 1, "bad_request", 0, 0, "invalid_status"]
      )
      yield* jobOf(2, "crl_generate", "default")
      assert.strictEqual(yield* foundBy("?kind=crl_generate"), 1, "of another version, which has left a job")
      const { kinds, ...sums } = (yield* api.ask("/api/queue", held)).json
      assert.deepStrictEqual([kinds.length, sums], [2, { ready: 0, running: 0, failed: 3 }])
    }))

  test("reports that a search for names or a count of unreplaced certificates ended early", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const caller = yield* callerAt(profileOf(config))
      for (const [serial, days] of [["a1", 1], ["a2", 20]] as const) {
        yield* orderWith(
          caller,
          `status = 'valid', certificate = 'PEM', cert_serial = '${serial}', cert_not_after = ${
            startsAt + days * 86_400
          }`,
          `${serial}.example`
        )
      }
      const driver = yield* Database
      const clock = yield* Clock.Clock
      let late = 0
      /** The database, as if each statement took two seconds. */
      const slow: Driver = {
        ...driver,
        aside: undefined,
        single: (statement, params) =>
          Effect.tap(driver.single(statement, params), Effect.sync(() => void (late += 2000)))
      }
      const later = Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + late
      })
      const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100)"
      const row = "unhex(printf('01900000000070008000%012x', i)), 'default'"
      yield* sql(
        `${numbers} INSERT INTO orders (id, profile, account_id, status, identifiers, created_at)
         SELECT ${row}, (SELECT account_id FROM orders LIMIT 1), 'valid', '[]', 1 FROM n`
      )
      yield* sql(
        `${numbers} INSERT INTO order_identifiers (order_id, profile, name, name_rev) SELECT ${row}, 'a', 'a' FROM n`
      )
      const paths = ["orders?identifierContains=example&limit=5", "expiring?superseded=hide&limit=1"]
      const told = Effect.forEach(paths, (path) => Effect.map(api.ask(`/api/${path}`, held), ({ json }) => json))
      const ended = told.pipe(Effect.provideService(Database, slow), Effect.provideService(Clock.Clock)(later))
      for (const one of yield* ended) assert.deepInclude(one, { truncated: true })
      for (const one of yield* told) {
        assert.deepInclude(one, { total: 2 })
        assert.notProperty(one, "truncated")
      }
    }))

  test("reports that a search in the trail ended early", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const seed = (rows: number) =>
        sql(
          `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
           INSERT INTO audit_log (created_at, event, outcome, actor_kind, request_id)
           SELECT i, 'order_created', 'success', 'acme', 'one' FROM n`
        )
      yield* seed(10)
      assert.notProperty((yield* api.ask("/api/audit?requestId=one", held)).json, "truncated")
      yield* seed(10_000)
      assert.deepInclude((yield* api.ask("/api/audit?requestId=one&limit=1", held)).json, { truncated: true })
    }))

  test("clears a contact that is null or empty", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const contact = (given: string | null) =>
        api.ask("/api/account/contact", { method: "POST", ...held, body: { password, contact: given } })
      const stored = column("SELECT COALESCE(contact_email, 'none') FROM admin_users")
      for (const given of [null, "", " "]) {
        yield* contact(" ann@example.org ")
        assert.deepStrictEqual(yield* stored, ["ann@example.org"])
        assert.strictEqual((yield* contact(given)).status, 204)
        assert.deepStrictEqual(yield* stored, ["none"])
      }
      const { accountId } = yield* callerAt(profileOf(config))
      const patch = (body: object) => api.ask(`/api/accounts/${accountId}`, { method: "PATCH", ...held, body })
      const contacts = ["mailto:a@example.org"]
      assert.deepStrictEqual((yield* patch({ contact: contacts })).json.contact, contacts)
      assert.deepStrictEqual((yield* patch({})).json.contact, contacts)
      assert.notProperty((yield* patch({ contact: null })).json, "contact")
    }))

  test("reports at once that a certificate of a CA of this service is revoked", (api) =>
    Effect.gen(function*() {
      const held = yield* admin(api)
      const { cert } = yield* selfSigned("a1.example", startsAt)
      const chain = cert + cert
      const id = yield* orderWith(
        yield* callerAt(profileOf(config)),
        `status = 'valid', certificate = '${chain}', cert_serial = 'a1', cert_not_after = 1900000000`,
        "a1.example"
      )
      const issuer = readStoredChain(chain)?.issuerId
      yield* sql(`INSERT INTO crls VALUES ('${issuer}', 1, X'00', 1, 2)`)
      const told = yield* api.ask(`/api/orders/${id}/revoke`, {
        method: "POST",
        ...held,
        body: { reason: " Superseded " }
      })
      const { job, ...order } = told.json
      assert.deepInclude(order, { id, status: "valid", certSerial: "a1", revocationReason: 4 })
      assert.property(order, "revokedAt")
      assert.strictEqual((yield* api.ask(`/api/jobs/${job}`, held)).json.kind, "local_ca_crl_regenerate")
      assert.deepStrictEqual((yield* api.ask("/api/orders?certSerial=a1", held)).json.items, [order])
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status = 'ready'"), 1)
    }))

  test("answers a revocation when its job ends, or shortly before the request's time is over", (api) =>
    watched(Effect.gen(function*() {
      const held = yield* admin(api)
      const caller = yield* callerAt(profileOf(config))
      const revoking = (id: string, body: object) =>
        api.ask(`/api/orders/${id}/revoke`, { method: "POST", ...held, body })
      const issued = (serial: string) =>
        orderWith(
          caller,
          `status = 'valid', certificate = 'PEM', cert_serial = '${serial}', cert_not_after = 1900000000`,
          `${serial}.example`
        )
      const never = yield* issued("a0")
      for (const reason of [7, 11, -1, 1.5, true, "", "7", "0x4", "4.0", "key"]) {
        const refused = yield* revoking(never, { reason })
        assert.deepStrictEqual([refused.status, refused.json.error], [400, "bad_request"])
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
      const failure = JSON.stringify({ reason: "script_failed", detail: "the HSM is away" })
      const began = yield* Clock.currentTimeMillis
      const ends = [
        ["a1", "status = 'done'", 200, /"certSerial":"a1".*"job":/],
        ["a2", `status = 'failed', last_error = '${failure}'`, 502, /"error":"signer_failed".*the HSM is away/],
        ["a3", "status = 'cancelled'", 502, /is cancelled/],
        ["a4", "status = 'failed'", 502, /is failed/],
        ["a5", "updated_at = 1", 202, /"status":"queued"/]
      ] as const
      for (const [serial, set, status, said] of ends) {
        const asking = yield* Effect.forkChild(revoking(yield* issued(serial), { reason: 4 }))
        yield* asleep
        yield* sql(`UPDATE jobs SET ${set} WHERE status = 'ready'`)
        const told = yield* wakened(asking)
        assert.deepStrictEqual([serial, told.status], [serial, status], told.text)
        assert.match(told.text, said)
        yield* sql("DELETE FROM jobs")
      }
      // This one is answered a second before the request's time is over. The others are answered at the next check, a
      // quarter of a second later.
      assert.strictEqual((yield* Clock.currentTimeMillis) - began, 4 * 250 + 2000)
    })))
})
