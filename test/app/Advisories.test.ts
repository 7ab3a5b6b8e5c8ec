import { it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { advise, adviseOfFile, adviseOnOperators } from "../../src/app/Advisories.ts"
import type { Role } from "../../src/domain/Role.ts"
import { everyRole } from "../../src/domain/Role.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import * as operators from "../../src/operations/operator/identity/Operators.ts"
import { accepted } from "../settings/Samples.ts"
import { databases, freshDirectory } from "../support/Databases.ts"
import { sql } from "../support/Graph.ts"
import { enrolled, enter, keyboard, made, useOperators } from "../support/Operators.ts"

/*
 * The advisories about the configuration that an operator gets at startup and at a reload. Each appears only when it
 * applies.
 */

/** A configuration that causes no advisory. */
const quiet = `[server]
base_url = "https://acme.example"
tls.enabled = true
[profiles.default]
enabled = true
filter.rules = ["inside"]
filter.rule.inside = { when = "office", then = "allow" }
filter.check.office = { type = "allowed_ip", allow = ["10.0.0.0/8"] }
`

type Told = { readonly event: string; readonly [field: string]: unknown }

const told = (fileText: string, roles: ReadonlyArray<Role> = everyRole): Effect.Effect<ReadonlyArray<Told>> =>
  Effect.suspend(() => {
    const records: Array<Record> = []
    const { config } = accepted({ fileText })
    return Effect.map(
      Effect.provide(advise(config, new Set(roles)), layerMemory(records)),
      () => records.map(({ event, fields }) => ({ event, ...fields }))
    )
  })

describe("advisories", () => {
  it.effect("are absent for a secure configuration", () =>
    Effect.map(told(quiet), (records) => assert.deepStrictEqual(records, [])))

  it.effect("report a configuration file with secrets if its mode allows more than reading by the group", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "config.toml")
      const tellOf = (fileText: string, mode: number, env = {}): Effect.Effect<ReadonlyArray<Told>> =>
        Effect.suspend(() => {
          const records: Array<Record> = []
          rmSync(path, { force: true })
          writeFileSync(path, fileText)
          chmodSync(path, mode)
          const resolved = accepted({ fileText, env })
          return Effect.map(
            Effect.provide(adviseOfFile({ ...resolved, path, filePresent: true }), layerMemory(records)),
            () => records.map(({ event, fields }) => ({ event, ...fields }))
          )
        })
      const posted = `${quiet}[database]\nurl = "postgres://acme:kept@db.example/acme"\n`
      const hooked =
        `${quiet}[profiles.hooked]\nnotify.enabled = ["webhook"]\nnotify.webhook_enabled = ["chat"]\nnotify.webhook.chat.url = "https://chat.example/hook/kept"\n`
      for (const secret of [posted, hooked]) {
        for (const mode of [0o600, 0o400, 0o640, 0o440]) assert.deepStrictEqual(yield* tellOf(secret, mode), [])
        for (const mode of [0o644, 0o604, 0o620, 0o660, 0o601]) {
          assert.deepStrictEqual(yield* tellOf(secret, mode), [{ event: "server_config_file_permissive", path }])
        }
      }
      const plain = `${quiet}[database]\nurl = "postgres://db.example/acme"\n`
      for (const open of [quiet, plain]) assert.deepStrictEqual(yield* tellOf(open, 0o666), [])
      const ofVariable = { ACME_SVC_DATABASE__URL: "postgres://acme:kept@db.example/acme" }
      assert.deepStrictEqual(yield* tellOf(quiet, 0o666, ofVariable), [])
    }))

  it.effect("report a process that runs no jobs", () =>
    Effect.map(
      told(quiet, ["acme"]),
      (records) => assert.deepStrictEqual(records, [{ event: "server_role_no_worker", roles: "acme" }])
    ))

  it.effect("report a SQLite setting with which a power loss may lose acknowledged work", () =>
    Effect.gen(function*() {
      const normal = `${quiet}[database]\nsqlite.synchronous = "normal"\n`
      assert.deepStrictEqual(yield* told(normal), [
        { event: "db_commits_unsynced", key: "database.sqlite.synchronous" }
      ])
      assert.deepStrictEqual(yield* told(`${normal}url = "postgres://localhost/acme"\n`), [])
    }))

  it.effect("report connections without TLS, and a base URL whose scheme does not match the listener", () =>
    Effect.gen(function*() {
      const plain = quiet.replace("tls.enabled = true", "tls.enabled = false")
      const base_url = "https://acme.example"
      const key = "server.base_url"
      const [disabled, mismatch] = [
        { event: "tls_disabled", base_url },
        { event: "tls_base_url_mismatch", key, base_url }
      ]
      assert.deepStrictEqual(yield* told(plain), [disabled, mismatch])
      assert.deepStrictEqual(yield* told(plain, ["worker"]), [], "which serves nobody")
      const http = quiet.replace("https://acme", "http://acme")
      assert.deepStrictEqual(yield* told(http), [{ ...mismatch, base_url: "http://acme.example" }])
      // Behind a trusted proxy, the listener may use http while clients use https, and the other way round.
      const behind = "filter.trusted_proxies = [\"127.0.0.1\"]\n"
      assert.deepStrictEqual(yield* told(`${behind}${plain}`), [disabled])
      assert.deepStrictEqual(yield* told(`${plain}${behind}`), [disabled], "of a profile alone")
      assert.deepStrictEqual(yield* told(`${behind}${http}`), [])
    }))

  it.effect("report a base URL of operators whose scheme does not match their listener", () =>
    Effect.gen(function*() {
      const admin = (lines: string) => `${quiet}[admin]\nenabled = true\n${lines}`
      const mismatch = { event: "tls_base_url_mismatch", key: "admin.base_url" }
      const tls = admin("tls.enabled = true\n")
      assert.deepStrictEqual(yield* told(tls), [{ ...mismatch, base_url: "http://localhost:3001" }])
      assert.deepStrictEqual(yield* told(tls, ["acme", "worker"]), [], "which serves no operator")
      const plain = admin("base_url = \"https://admin.example\"\n")
      assert.deepStrictEqual(yield* told(plain), [{ ...mismatch, base_url: "https://admin.example" }])
      const behind = "[admin.filter]\ntrusted_proxies = [\"127.0.0.1\"]\n"
      assert.deepStrictEqual(yield* told(`${plain}${behind}`), [])
      assert.deepStrictEqual(yield* told(admin("")), [])
      // The trusted proxies of another listener have no effect on this one.
      const elsewhere = `filter.trusted_proxies = ["127.0.0.1"]\n${plain}`
      assert.deepStrictEqual(yield* told(elsewhere), [{ ...mismatch, base_url: "https://admin.example" }])
    }))

  it.effect("report profiles without validation or without a policy", () =>
    Effect.gen(function*() {
      const open = "[server]\nbase_url = \"https://acme.example\"\ntls.enabled = true\n"
      const said = yield* told(`${open}[profiles.a]\nchallenge.bypass = true\n[profiles.b]\nenabled = false\n`)
      assert.deepStrictEqual(said, [
        { event: "challenge_validation_bypassed", profile: "a" },
        { event: "filter_disabled", profile: "a" }
      ])
    }))

  it.effect("report policies that refuse no client", () =>
    Effect.gen(function*() {
      const policy = (rule: string, otherwise = "allow") =>
        `${quiet}[profiles.p.filter]
rules = ["one"]
default = "${otherwise}"
[profiles.p.filter.check.office]
type = "allowed_ip"
allow = ["192.0.2.0/24"]
[profiles.p.filter.rule.one]
when = "not office"
${rule}
`
      const disabled = [{ event: "filter_disabled", profile: "p" }]
      assert.deepStrictEqual(yield* told(policy("then = \"deny\"")), [])
      assert.deepStrictEqual(yield* told(policy("then = \"deny\"\nmode = \"warn\"")), disabled)
      assert.deepStrictEqual(yield* told(policy("then = \"allow\"")), disabled)
      assert.deepStrictEqual(yield* told(policy("then = \"allow\"", "deny")), [])
    }))

  it.effect("report checks that no rule uses, and an inventory whose certificate is not verified", () =>
    Effect.gen(function*() {
      const idle = `${quiet}filter.check.idle = { type = "path", deny = ["/keyChange"] }\n`
      assert.deepStrictEqual(yield* told(idle), [{ event: "filter_check_unused", profile: "default", check: "idle" }])
      const idleOfOperators =
        `${quiet}[admin]\nenabled = true\nfilter.check.idle = { type = "path", deny = ["/ui/x"] }\n`
      assert.deepStrictEqual(yield* told(idleOfOperators), [
        { event: "filter_check_unused", profile: "__admin__", check: "idle" }
      ])
      const netbox =
        `ipam = { backend = "netbox", netbox = { url = "https://n.example", token = "t", insecure_skip_verify = true } }\n`
      assert.deepStrictEqual(yield* told(`${quiet}${netbox}`), [
        { event: "ipam_tls_verification_disabled", profile: "default" }
      ])
    }))

  it.effect("report the key and the path of each program that cannot be run", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "sign")
      writeFileSync(path, "#!/bin/sh\n")
      const signer = `${quiet}signer = { backend = "custom", custom.script_path = "${path}" }\n`
      const missing = { event: "script_not_executable", key: "profiles.default.signer.custom.script_path", path }
      assert.deepStrictEqual(yield* told(signer), [missing])
      const check = `filter.check.ask = { type = "custom", script_path = "${path}", stages = ["connection"] }\n`
      const asked = `${quiet.replace("when = \"office\"", "when = \"office and ask\"")}${check}`
      assert.deepStrictEqual(yield* told(asked), [
        { ...missing, key: "profiles.default.filter.check.ask.script_path" }
      ])
      chmodSync(path, 0o755)
      assert.deepStrictEqual([...yield* told(signer), ...yield* told(asked)], [])
    }))

  it.effect("report that the configuration contains a secret for the upstream, without its value", () =>
    Effect.gen(function*() {
      const relay = `relay = { directory_url = "https://up.example/dir", eab = { kid = "k", hmac_key = "c2VjcmV0" } }`
      const said = yield* told(`${quiet}signer = { backend = "relay", ${relay} }\n`)
      assert.deepStrictEqual(said, [{ event: "signer_relay_eab_secret_in_config", profile: "default" }])
    }))

  it.effect("report the configured proxies without their credentials", () =>
    Effect.gen(function*() {
      const proxy = `proxy = { http_url = "http://u:hunter2@p.example:3128", no_proxy = ["a.example"] }\n`
      assert.deepStrictEqual(yield* told(`${proxy}${quiet}`), [{
        event: "proxy_configured",
        http: "http://p.example:3128",
        https: undefined,
        no_proxy_entries: 1,
        source: "config"
      }])
    }))
})

describe.each(databases)("advisories about operators who sign in, on $name", (backend) => {
  const { records, test } = useOperators(backend)
  const remarked = (fileText: string, roles: ReadonlyArray<Role> = everyRole) =>
    Effect.suspend(() => {
      records.length = 0
      return Effect.map(
        adviseOnOperators(accepted({ fileText }).config, new Set(roles)),
        (): ReadonlyArray<Told> => records.map(({ event, fields }) => ({ event, ...fields }))
      )
    })
  const enabled = `${quiet}[admin]\nenabled = true\n`

  test("report that there are no operators, or how many must still enrol a second factor", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* remarked(quiet), [])
      assert.deepStrictEqual(yield* remarked(enabled, ["acme", "worker"]), [])
      assert.deepStrictEqual(yield* remarked(enabled), [{ event: "admin_no_users" }])
      for (const name of ["ann", "ben", "cid"]) yield* made(name, "admin")
      yield* operators.disable(keyboard, "cid")
      yield* enrolled((yield* enter("ben")).identity)
      assert.deepStrictEqual(yield* remarked(enabled), [])
      const demanded = yield* remarked(`${enabled}require_mfa = true\n`)
      assert.deepStrictEqual(demanded, [{ event: "admin_mfa_enrolment_pending", count: 1 }])
    }))

  test("are replaced by a record of the failed statement if the database cannot be read", () =>
    Effect.gen(function*() {
      yield* sql("ALTER TABLE admin_users RENAME TO admin_users_gone")
      const said = yield* Effect.ensuring(
        remarked(enabled),
        sql("ALTER TABLE admin_users_gone RENAME TO admin_users")
      )
      assert.deepInclude(said.find(({ event }) => event === "db_statement_failed"), {
        event: "db_statement_failed",
        statement: "user_count"
      })
    }))
})
