import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { declaration } from "../../src/surfaces/operator/ActDocument.ts"
import { routesOf } from "../../src/surfaces/operator/ApiRoutes.ts"
import { matcherOf } from "../../src/surfaces/operator/gate/RouteMatcher.ts"
import type { Act, Subject, Way } from "../support/Acts.ts"
import { actsOn, step } from "../support/Acts.ts"
import type { Asking } from "../support/Api.ts"
import { signedIn, useApi } from "../support/Api.ts"
import type { Ask, Held, Told } from "../support/Asked.ts"
import { secretOf } from "../support/Authenticator.ts"
import { databases } from "../support/Databases.ts"
import { column, fieldsOf, sql } from "../support/Graph.ts"
import { chosen, codeOf, password } from "../support/Operators.ts"
import { panelOf, send } from "../support/Panel.ts"
import { panelRoutes, patternOf } from "../support/PanelRoutes.ts"
import { freshPlace } from "../support/RunCommand.ts"

/*
 * Every act that operators can perform over the API, in the panel and on the command line. Each way leaves the same
 * rows of the trail and the same records of the log, except for who acted and by which way
 * (docs/contribute/decisions/audit-rows.md, "Vocabulary").
 */

describe.each(databases)("an act of operators on $name", (backend) => {
  const { config, database, records, test } = useApi(backend)
  const { acts, credential, factored, literal, live, octets } = actsOn(backend.dialect, config)

  /** Columns that say who acted and through which interface. */
  const ofActor = new Set([
    "id",
    "created_at",
    "actor_kind",
    "actor_id",
    "client_ip",
    "client_ptr",
    "user_agent",
    "request_id"
  ])

  /** Returns the rows with a greater id. Values that differ from subject to subject are replaced by a placeholder. */
  const rowsAfter = (before: string, { id, more = "" }: Subject) =>
    Effect.map(sql(`SELECT * FROM audit_log WHERE id > ${before} ORDER BY id`), (rows) =>
      rows.map((row) => {
        const shared = Object.entries(row).filter(([name]) => !ofActor.has(name)).map((
          [name, value]
        ) => [name, String(value)])
        const text = JSON.stringify(Object.fromEntries(shared))
        const named = [id, more].filter((one) => one.length > 1).reduce((all, one) => all.replaceAll(one, "…"), text)
        return named.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "…").replaceAll(/"cert_serial":"ab\w+"/g, "")
      }))
  const last = Effect.map(column("SELECT coalesce(max(id), 0) FROM audit_log"), ([id = "0"]) => id)

  const ofActs = (event: unknown): event is string =>
    typeof event === "string" && event.startsWith("admin_") && !/login|request|socket|listening/.test(event)

  const place = freshPlace()
  const run = (words: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const env = { ACME_SVC_DATABASE__URL: database.url() }
      const ended = yield* place.run([...words, "--log-level", "info"], { env })
      assert.strictEqual(
        ended.code,
        words.includes("revoke") && /^(?:order|cert)$/.test(words[0] ?? "") ? 3 : 0,
        ended.err
      )
      const told = ended.err.split("\n").filter((line) => line.startsWith("{\"")).map((line): { fields?: object } =>
        JSON.parse(line)
      )
      return {
        ...ended,
        events: told.flatMap(({ fields }) => fields !== undefined && "event" in fields ? [fields.event] : [])
      }
    })

  const asked = ({ ask }: Asking, held: Held, [method, path, body]: ReturnType<Act["api"]>) => {
    const request: Ask = { method, ...held, ...(body === undefined ? {} : { body }) }
    return ask(path, request)
  }

  for (const [name, act] of Object.entries(acts)) {
    test(`leaves the same rows and records over the API, in the panel and on the command line if it ${name}`, (api) =>
      Effect.gen(function*() {
        const held = yield* signedIn(api, "root", "admin")
        const panel = yield* panelOf(config)
        /** Performs the act in one way, and returns the rows and records that it leaves. */
        const did = <E, R>(way: Way, ask: (subject: Subject) => Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
          Effect.gen(function*() {
            const subject = yield* act.subject(way)
            const before = yield* last
            records.length = 0
            const events = (yield* ask(subject)).filter(ofActs)
            const actors = yield* column(
              `SELECT DISTINCT actor_kind || ' ' || actor_id FROM audit_log WHERE id > ${before}`
            )
            const kinds = yield* column(`SELECT event FROM audit_log WHERE id > ${before} ORDER BY id`)
            return { rows: yield* rowsAfter(before, subject), kinds, events, actors }
          })
        const logged = (told: Told) => {
          assert.isBelow(told.status, act.records.length === 0 ? 500 : 400, told.text)
          return records.map(({ event }) => event)
        }
        const byApi = yield* did("api", (subject) => Effect.map(asked(api, held, act.api(subject)), logged))
        const byPanel = yield* did("panel", (subject) => Effect.map(send(panel, held, ...act.panel(subject)), logged))
        const byCli = yield* did("cli", (subject) => Effect.map(run(act.cli(subject)), ({ events }) => events))
        for (const way of [byApi, byPanel, byCli]) {
          assert.deepStrictEqual(way.rows, byCli.rows)
          assert.deepStrictEqual(way.kinds, act.rows)
          assert.deepStrictEqual(way.events, act.records)
        }
        assert.deepStrictEqual([byApi, byPanel, byCli].map(({ actors }) => actors), [
          ["admin root"],
          ["admin root"],
          ["cli tester"]
        ])
      }))
  }

  test("is tested in this file if it requires the role operator or admin", () =>
    Effect.sync(() => {
      const forRoles = ["operator", "admin"]
      const ofApi = routesOf(declaration)
      const find = matcherOf(ofApi)
      // A sample of a notification, the trial of a CSR and the preview of a campaign change nothing, and are tested
      // elsewhere. So is the import of a credential, whose key a command reads from a file.
      const others = /notify|notifications|kinds\/try|profiles\/\{name\}\/explain|campaigns\/preview|eab\/import/
      const nameOf = (method: string, pattern: string | undefined) => `${method} ${pattern}`
      const declared = [
        ...ofApi.filter(({ access, method }) => method !== "GET" && forRoles.includes(access)),
        ...panelRoutes.filter(({ access, method }) => method !== "GET" && forRoles.includes(access))
      ].map(({ method, pattern }) => nameOf(method, pattern)).filter((name) => !others.test(name))
      const subject = { id: "01890a5d-ac96-774b-bcce-b302099a8057", more: "more" }
      const done = Object.values(acts).flatMap((act) => {
        const [method, target] = act.api(subject)
        const [page] = act.panel(subject)
        return [nameOf(method, find(target.split("?")[0] ?? "")?.pattern), nameOf("POST", patternOf(page))]
      })
      assert.deepStrictEqual(declared.filter((name) => !done.includes(name)), [])
    }))

  test("leaves the same rows as on the command line if it changes the operator's own password, codes or factor", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "root", "admin")
      const eventOf = (before: string) =>
        column(`SELECT event || ' ' || detail FROM audit_log WHERE id > ${before} ORDER BY id`)
      const did = Effect.fnUntraced(function*(method: string, path: string, body: object) {
        const before = yield* last
        const told = yield* asked(api, held, [method, path, body])
        assert.isBelow(told.status, 300, told.text)
        return { told, rows: yield* eventOf(before) }
      })
      const typed = Effect.fnUntraced(function*(...words: ReadonlyArray<string>) {
        const before = yield* last
        yield* run(words)
        return yield* eventOf(before)
      })
      const begun = yield* did("POST", "/api/mfa/totp", step)
      assert.deepStrictEqual(begun.rows, [], "nothing is in force yet")
      const code = yield* codeOf(secretOf(begun.told.json.secret))
      const confirmed = yield* did("POST", "/api/mfa/totp/confirm", { code })
      assert.deepStrictEqual(confirmed.rows, [`operator_totp_enrolled {"target":"root","sessions_revoked":0}`])
      const codes = yield* did("POST", "/api/mfa/recovery-codes", step)
      assert.deepStrictEqual(codes.rows, yield* typed("admin", "user", "totp", "recovery-codes", "root"))
      const off = yield* did("DELETE", "/api/mfa/totp", step)
      yield* factored("cli")
      const reset = yield* typed("admin", "user", "totp", "reset", "p-cli", "--yes")
      assert.deepStrictEqual(off.rows, reset.map((row) => row.replace("p-cli", "root").replace(":1", ":0")))
      const changed = yield* did("POST", "/api/account/password", { currentPassword: password, newPassword: chosen })
      writeFileSync(join(place.directory, "pw"), password, { mode: 0o600 })
      // The session that changes its own password stays, but the command line ends that session.
      assert.deepStrictEqual(changed.rows, [`operator_password_changed {"target":"root","sessions_revoked":0}`])
      const passwd = yield* typed("admin", "user", "passwd", "root", "--password-file", "pw")
      assert.deepStrictEqual(passwd, [`operator_password_changed {"target":"root","sessions_revoked":1}`])
      const contact = yield* asked(api, held, ["POST", "/api/account/contact", { ...step, contact: "r@example.org" }])
      assert.strictEqual(contact.status, 401, "the session ended with the password")
    }))

  test("is logged with the reason and the id if it is refused because of a valid certificate", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "root", "admin")
      const { id, more = "" } = yield* live
      const owner = yield* credential
      yield* sql(`UPDATE accounts SET eab_kid = ${octets(owner.id)} WHERE id = ${literal(more)}`)
      records.length = 0
      for (const path of [`orders/${id}`, `accounts/${more}`, `eab/${owner.id}?accounts=delete`]) {
        assert.strictEqual((yield* asked(api, held, ["DELETE", `/api/${path}`])).json.error, "live_certificates")
      }
      const told = fieldsOf(records, "admin_delete_refused")
      const who = { username: "root", surface: "api", reason: "live_certificates" }
      const none = { account_id: undefined, order_id: undefined, kid: undefined }
      assert.deepStrictEqual(told, [
        { ...who, ...none, order_id: id },
        { ...who, ...none, account_id: more },
        { ...who, ...none, kid: owner.id }
      ])
    }))
})
