import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Database } from "../../src/kernel/sql/Database.ts"
import * as eab from "../../src/operations/Eab.ts"
import * as operators from "../../src/operations/operators/Operators.ts"
import * as tokens from "../../src/operations/operators/Tokens.ts"
import type { Passwords } from "../../src/services/operators/Passwords.ts"
import * as nonces from "../../src/store/Nonces.ts"
import type { Asking } from "../support/Api.ts"
import { signedIn, useApi } from "../support/Api.ts"
import type { Ask, Held } from "../support/Asked.ts"
import { secretOf } from "../support/Authenticator.ts"
import { databases } from "../support/Databases.ts"
import type { World } from "../support/Graph.ts"
import { callerAt, column, newPrivateKey, orderOf, profileOf, sql } from "../support/Graph.ts"
import { accountKeyOf } from "../support/Graph.ts"
import { enrolled, enter, keyboard, made, password, startsAt } from "../support/Operators.ts"
import { codeOf } from "../support/Operators.ts"
import { freshPlace } from "../support/RunCommand.ts"

/*
 * Every act that operators have over the API and on the command line: both leave the same rows of the trail and the same
 * records of the log, but for who acted and by which way (docs/decisions/audit-rows.md, "Vocabulary").
 */

/** What an act is about, made anew for each way. `more` is what else the ways are told. */
interface Subject {
  readonly id: string
  readonly more?: string
}

type Needs = Database | World | Passwords

interface Act {
  readonly subject: (way: "api" | "cli") => Effect.Effect<Subject, unknown, Needs>
  /** Method, path and body. */
  readonly api: (subject: Subject) => readonly [string, string, unknown?]
  readonly cli: (subject: Subject) => ReadonlyArray<string>
  /** The rows and records that both leave. */
  readonly rows: ReadonlyArray<string>
  readonly records: ReadonlyArray<string>
}

const chosen = "Łódź trolleybus, 9 stops"

describe.each(databases)("an act of operators on $name", (backend) => {
  const { config, database, records, test } = useApi(backend)
  /** Of a credential, whose id is octets on both. */
  const octets = (kid: string) => {
    const hex = kid.replaceAll("-", "")
    return backend.dialect === "sqlite" ? `X'${hex}'` : `'\\x${hex}'`
  }
  const literal = (id: string) => backend.dialect === "sqlite" ? `X'${id.replaceAll("-", "")}'` : `'${id}'`

  const account = Effect.map(
    Effect.suspend(() => callerAt(profileOf(config), accountKeyOf(newPrivateKey()))),
    ({ accountId }): Subject => ({ id: accountId })
  )
  const order = Effect.gen(function*() {
    const caller = yield* callerAt(profileOf(config), accountKeyOf(newPrivateKey()))
    const { id } = yield* orderOf(caller, "a.example")
    const subject: Subject = { id, more: caller.accountId }
    return subject
  })
  const live = Effect.tap(order, ({ id }) =>
    sql(
      `UPDATE orders SET status = 'valid', certificate = 'PEM', cert_serial = 'ab${id.slice(-4)}', cert_not_after = ${
        startsAt + 1000
      }
       WHERE id = ${literal(id)}`
    ))
  const revoked = Effect.tap(live, ({ id }) => sql(`UPDATE orders SET revoked_at = 1 WHERE id = ${literal(id)}`))
  const credential = Effect.map(
    eab.create(keyboard, { label: "web", profile: undefined }),
    ({ credential: { kid } }): Subject => ({ id: kid })
  )
  const bound = Effect.gen(function*() {
    const { id } = yield* credential
    const owner = yield* account
    yield* sql(`UPDATE accounts SET eab_kid = ${octets(id)} WHERE id = ${literal(owner.id)}`)
    const subject: Subject = { id, more: owner.id }
    return subject
  })
  const job = (status: "ready" | "failed") =>
    Effect.gen(function*() {
      const [count = "0"] = yield* column("SELECT count(*) FROM jobs")
      const id = `01890a5d-ac96-774b-bcce-${count.padStart(12, "0")}`
      yield* sql(
        `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
         VALUES (${literal(id)}, 'local_ca_crl_regenerate', 'ca-${count}', '{}', '${status}', ${startsAt + 900}, 1, 3,
           ${startsAt}, ${startsAt})`
      )
      const subject: Subject = { id, more: `ca-${count}` }
      return subject
    })
  const person = (way: string) => Effect.as(made(`p-${way}`, "operator"), { id: `p-${way}` })
  const factored = (way: string) =>
    Effect.tap(person(way), ({ id }) => Effect.flatMap(enter(id), ({ identity }) => enrolled(identity)))
  const seated = (way: string) =>
    Effect.map(Effect.zipRight(person(way), enter(`p-${way}`)), ({ identity }): Subject => ({
      id: `p-${way}`,
      more: identity.tokenHash.slice(0, 16)
    }))
  const owned = (way: string) =>
    Effect.flatMap(person(way), ({ id }) =>
      Effect.map(
        tokens.create(keyboard, { username: id, name: "t", role: "viewer", expiresInDays: 1, allowedAddresses: [] }),
        ({ record }): Subject => ({ id: record.id, more: id })
      ))

  const step = { password }
  const acts: Readonly<Record<string, Act>> = {
    "changes contacts": {
      subject: () => account,
      api: ({ id }) => ["PATCH", `/api/accounts/${id}`, { contact: ["mailto:a@example.org"] }],
      cli: ({ id }) => ["account", "update-contact", id, "--contact", "mailto:a@example.org"],
      rows: ["account_contact_updated"],
      records: ["admin_account_contact_updated"]
    },
    "deactivates an account": {
      subject: () => account,
      api: ({ id }) => ["POST", `/api/accounts/${id}/deactivate`],
      cli: ({ id }) => ["account", "deactivate", id, "--yes"],
      rows: ["account_deactivated"],
      records: ["admin_account_deactivated"]
    },
    "deletes an account": {
      subject: () => Effect.map(order, ({ id, more = "" }) => ({ id: more, more: id })),
      api: ({ id }) => ["DELETE", `/api/accounts/${id}`],
      cli: ({ id }) => ["account", "delete", id, "--yes"],
      rows: ["account_deleted"],
      records: ["admin_account_deleted"]
    },
    "deletes an order": {
      subject: () => order,
      api: ({ id }) => ["DELETE", `/api/orders/${id}`],
      cli: ({ id }) => ["order", "delete", id, "--yes"],
      rows: ["order_deleted"],
      records: ["admin_order_deleted"]
    },
    "revokes what is revoked": {
      subject: () => revoked,
      api: ({ id }) => ["POST", `/api/orders/${id}/revoke`, {}],
      cli: ({ id }) => ["order", "revoke", id],
      rows: ["certificate_revoke_failed"],
      records: []
    },
    "makes a credential": {
      subject: () => Effect.succeed({ id: "-" }),
      api: () => ["POST", "/api/eab", { label: "web", profile: "default" }],
      cli: () => ["eab", "create", "--label", "web", "--profile", "default"],
      rows: ["eab_created"],
      records: ["admin_eab_created"]
    },
    "revokes a credential": {
      subject: () => credential,
      api: ({ id }) => ["POST", `/api/eab/${id}/revoke`],
      cli: ({ id }) => ["eab", "revoke", id],
      rows: ["eab_revoked"],
      records: ["admin_eab_revoked"]
    },
    "deletes a credential and keeps its accounts": {
      subject: () => bound,
      api: ({ id }) => ["DELETE", `/api/eab/${id}`],
      cli: ({ id }) => ["eab", "delete", id, "--yes"],
      rows: ["eab_deleted"],
      records: ["admin_eab_deleted"]
    },
    "deletes a credential and deactivates its accounts": {
      subject: () => bound,
      api: ({ id }) => ["DELETE", `/api/eab/${id}?accounts=deactivate`],
      cli: ({ id }) => ["eab", "delete", id, "--deactivate-accounts", "--yes"],
      rows: ["eab_deleted", "account_deactivated"],
      records: ["admin_eab_deleted"]
    },
    "deletes a credential with its accounts": {
      subject: () => bound,
      api: ({ id }) => ["DELETE", `/api/eab/${id}?accounts=delete`],
      cli: ({ id }) => ["eab", "delete", id, "--delete-accounts", "--yes"],
      rows: ["eab_deleted", "account_deleted"],
      records: ["admin_eab_deleted"]
    },
    "cleans nonces up": {
      subject: () => Effect.as(nonces.insert(["a", "b"], 1), { id: "-" }),
      api: () => ["POST", "/api/nonces/cleanup", {}],
      cli: () => ["nonce", "cleanup", "--yes"],
      rows: ["nonce_cleanup_completed"],
      records: ["admin_nonces_cleaned"]
    },
    "cancels a job that waits": {
      subject: () => job("ready"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/cancel`],
      cli: ({ id }) => ["jobs", "cancel", id, "--yes"],
      rows: ["job_cancelled"],
      records: ["admin_job_cancelled"]
    },
    "cancels a job that has failed": {
      subject: () => job("failed"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/cancel`],
      cli: ({ id }) => ["jobs", "cancel", id, "--yes"],
      rows: ["job_cancelled"],
      records: ["admin_job_cancelled"]
    },
    "has a job run now": {
      subject: () => job("ready"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/run`],
      cli: ({ id }) => ["jobs", "run-now", id],
      rows: ["job_advanced"],
      records: ["admin_job_advanced"]
    },
    "has a failed job run once more": {
      subject: () => job("failed"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/run`],
      cli: ({ id }) => ["jobs", "run-now", id],
      rows: ["job_advanced"],
      records: ["admin_job_advanced"]
    },
    "disables an operator": {
      subject: seated,
      api: ({ id }) => ["POST", `/api/operators/${id}/disable`, step],
      cli: ({ id }) => ["admin", "user", "disable", id],
      rows: ["operator_disabled"],
      records: ["admin_operator_disabled"]
    },
    "enables an operator": {
      subject: (way) => Effect.tap(person(way), ({ id }) => operators.disable(keyboard, id)),
      api: ({ id }) => ["POST", `/api/operators/${id}/enable`, step],
      cli: ({ id }) => ["admin", "user", "enable", id],
      rows: ["operator_enabled"],
      records: ["admin_operator_enabled"]
    },
    "changes a role": {
      subject: seated,
      api: ({ id }) => ["POST", `/api/operators/${id}/role`, { ...step, role: "viewer" }],
      cli: ({ id }) => ["admin", "user", "role", id, "viewer"],
      rows: ["operator_role_changed"],
      records: ["admin_operator_role_changed"]
    },
    "changes an operator's contact": {
      subject: person,
      api: ({ id }) => ["POST", `/api/operators/${id}/contact`, { ...step, contact: "p@example.org" }],
      cli: ({ id }) => ["admin", "user", "contact", id, "--contact", "p@example.org"],
      rows: ["operator_contact_updated"],
      records: ["admin_operator_contact_changed"]
    },
    "takes a second factor away": {
      subject: factored,
      api: ({ id }) => ["POST", `/api/operators/${id}/totp/reset`, step],
      cli: ({ id }) => ["admin", "user", "totp", "reset", id, "--yes"],
      rows: ["operator_totp_disabled"],
      records: ["admin_operator_totp_reset"]
    },
    "ends a session": {
      subject: seated,
      api: ({ id, more = "" }) => ["POST", `/api/operators/${id}/sessions/${more}/revoke`, step],
      cli: ({ id, more = "" }) => ["admin", "session", "revoke", "--user", id, "--session", more],
      rows: ["session_revoked"],
      records: ["admin_operator_session_revoked"]
    },
    "ends the sessions of an operator": {
      subject: seated,
      api: ({ id }) => ["POST", `/api/operators/${id}/sessions/revoke`, step],
      cli: ({ id }) => ["admin", "session", "revoke", "--user", id],
      rows: ["session_revoked"],
      records: ["admin_operator_session_revoked"]
    },
    "makes a token": {
      subject: person,
      api: ({ id }) => ["POST", "/api/tokens", { ...step, user: id, name: "t", role: "viewer", expiresInDays: 2 }],
      cli: ({ id }) => ["admin", "token", "create", id, "--name", "t", "--expires-in", "2"],
      rows: ["token_created"],
      records: ["admin_token_created"]
    },
    "revokes a token": {
      subject: owned,
      api: ({ id }) => ["POST", `/api/tokens/${id}/revoke`],
      cli: ({ id }) => ["admin", "token", "revoke", id, "--yes"],
      rows: ["token_revoked"],
      records: ["admin_token_revoked"]
    }
  }

  /** Columns that say who acted and by which way. */
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

  /** The rows after a number, with what differs from subject to subject named alike. */
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
      assert.strictEqual(ended.code, words.includes("revoke") && words[0] === "order" ? 3 : 0, ended.err)
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
    test(`that ${name} leaves the same rows and records over the API and on the command line`, (api) =>
      Effect.gen(function*() {
        const held = yield* signedIn(api, "root", "admin")
        const byApi = yield* act.subject("api")
        const beforeApi = yield* last
        records.length = 0
        const told = yield* asked(api, held, act.api(byApi))
        assert.isBelow(told.status, act.records.length === 0 ? 500 : 300, told.text)
        const apiEvents = records.map(({ event }) => event).filter(ofActs)
        const apiRows = yield* rowsAfter(beforeApi, byApi)
        const byCli = yield* act.subject("cli")
        const beforeCli = yield* last
        const ended = yield* run(act.cli(byCli))
        const cliRows = yield* rowsAfter(beforeCli, byCli)
        assert.deepStrictEqual(apiRows, cliRows)
        const events = yield* column(`SELECT event FROM audit_log WHERE id > ${beforeCli} ORDER BY id`)
        assert.deepStrictEqual(events, act.rows)
        assert.deepStrictEqual(apiEvents, act.records)
        assert.deepStrictEqual(ended.events.filter(ofActs), act.records)
        const actors = yield* column(
          `SELECT actor_kind || ' ' || actor_id FROM audit_log WHERE id > ${beforeApi} AND event = '${
            act.rows[0]
          }' ORDER BY id`
        )
        assert.deepStrictEqual([actors[0], actors.at(-1)], ["admin root", "cli tester"])
      }))
  }

  test("on oneself leaves the rows that it leaves on the command line: password, codes, factor", (api) =>
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
      const begun = yield* did("POST", "/api/mfa/totp", {})
      assert.deepStrictEqual(begun.rows, [], "nothing is in force yet")
      const code = yield* codeOf(secretOf(begun.told.json.secret))
      const confirmed = yield* did("POST", "/api/mfa/totp/confirm", { code })
      assert.deepStrictEqual(confirmed.rows, [`operator_totp_enrolled {"target":"root"}`])
      const codes = yield* did("POST", "/api/mfa/recovery-codes", step)
      assert.deepStrictEqual(codes.rows, yield* typed("admin", "user", "totp", "recovery-codes", "root"))
      const off = yield* did("DELETE", "/api/mfa/totp", step)
      yield* factored("cli")
      const reset = yield* typed("admin", "user", "totp", "reset", "p-cli", "--yes")
      assert.deepStrictEqual(off.rows, reset.map((row) => row.replace("p-cli", "root")))
      const changed = yield* did("POST", "/api/account/password", { currentPassword: password, newPassword: chosen })
      writeFileSync(join(place.directory, "pw"), password, { mode: 0o600 })
      assert.deepStrictEqual(changed.rows, yield* typed("admin", "user", "passwd", "root", "--password-file", "pw"))
      const contact = yield* asked(api, held, ["POST", "/api/account/contact", { ...step, contact: "r@example.org" }])
      assert.strictEqual(contact.status, 401, "the session ended with the password")
    }))

  test("that is refused for a certificate in use is logged as that, with the id", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "root", "admin")
      const { id, more = "" } = yield* live
      const owner = yield* credential
      yield* sql(`UPDATE accounts SET eab_kid = ${octets(owner.id)} WHERE id = ${literal(more)}`)
      records.length = 0
      for (const path of [`orders/${id}`, `accounts/${more}`, `eab/${owner.id}?accounts=delete`]) {
        assert.strictEqual((yield* asked(api, held, ["DELETE", `/api/${path}`])).json.error, "live_certificates")
      }
      const told = records.filter(({ event }) => event === "admin_delete_refused").map(({ fields }) => fields)
      const who = { username: "root", surface: "api", reason: "live_certificates" }
      const none = { account_id: undefined, order_id: undefined, kid: undefined }
      assert.deepStrictEqual(told, [
        { ...who, ...none, order_id: id },
        { ...who, ...none, account_id: more },
        { ...who, ...none, kid: owner.id }
      ])
    }))
})
