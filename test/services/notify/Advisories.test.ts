import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { everyRole } from "../../../src/domain/Role.ts"
import { StorageFailed } from "../../../src/engine/sql/Database.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { compileMessages } from "../../../src/services/notify/MessageTemplates.ts"
import { Notifier, notify, whereWanted } from "../../../src/services/notify/Notifier.ts"
import { advise } from "../../../src/services/notify/NotifyAdvisories.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { configOf } from "../../support/Graph.ts"
import { deliveries, issued, payload } from "../../support/Notified.ts"
import { shellScript } from "../../support/Script.ts"

/* Tests what the log says about the sections of notifications, and which templates are refused. */

const logged = <A, E>(self: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const records: Array<Record> = []
    yield* Effect.provide(self, layerMemory(records))
    return records.map(({ event, fields }) => [event, fields["key"] ?? fields["path"] ?? fields["error"]])
  })

const folder = (files: { readonly [name: string]: string }) => {
  const at = freshDirectory()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(at, name, ".."), { recursive: true })
    writeFileSync(join(at, name), text)
  }
  return at
}

const withTemplates = (files: { readonly [name: string]: string }, body = "cat > ${TO}") => {
  const at = folder(files)
  const to = join(freshDirectory(), "out")
  const toml = `[notify]\nenabled = ["custom", "webhook"]\ntemplate_dir = "${at}"\ncustom_enabled = ["tell"]\n`
    + `webhook_enabled = ["chat"]\n[notify.webhook.chat]\nurl = "http://127.0.0.1:9/"\n`
    + `[notify.custom.tell]\nscript_path = "${shellScript(body.replace("${TO}", to))}"\n`
  return { at, toml }
}

describe("the log", () => {
  it.live("names sections that nothing uses, mail without TLS, and programs that cannot be run", () =>
    Effect.gen(function*() {
      const config = configOf(`[notify]
enabled = ["email", "custom"]
custom_enabled = ["tell"]
[notify.email]
smtp_host = "mail.example.org"
smtp_security = "none"
from = "a@example.org"
to = ["b@example.org"]
[notify.custom.tell]
script_path = "/nowhere/tell"
[notify.custom.spare]
[notify.webhook.chat]
`)
      const found = yield* logged(advise({ ...config, profiles: config.profiles.slice(0, 1) }, new Set(everyRole)))
      assert.deepStrictEqual(found, [
        ["notify_entry_unused", "profiles.default.notify.webhook.chat"],
        ["notify_entry_unused", "profiles.default.notify.custom.spare"],
        ["notify_email_plaintext", "profiles.default.notify.email.smtp_security"],
        ["script_not_executable", "profiles.default.notify.custom.tell.script_path"]
      ])
    }))

  it.live("names a digest that no receiver gets, and a digest that would come after its certificates have expired", () =>
    Effect.gen(function*() {
      const chat = "[notify]\nenabled = [\"webhook\"]\nwebhook_enabled = [\"chat\"]\n[notify.webhook.chat]\n"
        + "url = \"https://chat.example/\"\n"
      const said = (toml: string) => {
        const config = configOf(toml)
        return logged(advise({ ...config, profiles: config.profiles.slice(0, 1) }, new Set(everyRole)))
      }
      const expiry = "profiles.default.notify.expiry"
      const unused = [["notify_expiry_unused", `${expiry}.lead_days`]]
      assert.deepStrictEqual(yield* said("notify.expiry.lead_days = 14\n"), unused)
      assert.deepStrictEqual(
        yield* said(`${chat}events = ["account_created"]\n[notify.expiry]\nlead_days = 14\n`),
        unused
      )
      assert.deepStrictEqual(yield* said(`${chat}[notify.expiry]\nlead_days = 7\n`), [])
      assert.deepStrictEqual(yield* said(`${chat}[notify.expiry]\nlead_days = 6\n`), [
        ["notify_expiry_gap", `${expiry}.interval_days`]
      ])
    }))

  it.live("names template files that belong to no message", () =>
    Effect.gen(function*() {
      const { at, toml } = withTemplates({ "webhook/account_created.j2": "made", "webhook/acount_created.j2": "x" })
      const found = yield* logged(Effect.scoped(Layer.build(deliveries(toml))))
      assert.deepStrictEqual(found, [["notify_template_unused", join(at, "webhook/acount_created.j2")]])
    }))

  it.live("has a record about a notification that could not be queued", () =>
    Effect.gen(function*() {
      const failing = Notifier.of({
        isWanted: () => true,
        write: () => Effect.void,
        queue: () => new StorageFailed({ statement: "job_insert", detail: "disk full", transient: false })
      })
      const occurrence = { event: "profile_mounted", scope: "default", fields: {} } as const
      const found = yield* logged(
        Effect.provideService(whereWanted("profile_mounted", "default", notify(occurrence)), Notifier, failing)
      )
      assert.deepStrictEqual(found, [["notify_enqueue_failed", "job_insert: disk full"]])
    }))
})

describe("a folder of templates", () => {
  const refusal = (toml: string) => Effect.map(Effect.flip(Effect.scoped(Layer.build(deliveries(toml)))), String)

  it.live("prevents the startup if a file does not compile, and every such file is named with its line and the cause", () =>
    Effect.gen(function*() {
      const { at, toml } = withTemplates({
        "webhook/account_created.j2": "fine\n{% include 'x' %}",
        "email/account_created.subject.j2": "{{ a | reverse }}",
        "email/account_created.body.j2": "a\n\n{% if a %}"
      })
      const said = yield* refusal(toml)
      for (
        const fault of [
          `${at}/webhook/account_created.j2:2: the tag include is not known`,
          `${at}/email/account_created.subject.j2:1: the filter reverse is not known`,
          `${at}/email/account_created.body.j2:3: syntax error`
        ]
      ) assert.include(said, fault)
      assert.include(
        yield* refusal(toml.replace(at, "/nowhere")),
        "profiles.default.notify.template_dir: /nowhere is no folder"
      )
    }))

  it.live("replaces only the texts for which it has files", () =>
    Effect.gen(function*() {
      const at = folder({ "webhook/certificate_issued.j2": "{{ names }} is there\n" })
      const section = configOf(`[notify]\ntemplate_dir = "${at}"\n`).notify
      const { letter, message } = yield* compileMessages(section, "notify", "localhost")
      assert.strictEqual(yield* message(issued()), "a.example, b.example is there")
      const made = payload("account_deactivated", { account_id: "a1" })
      assert.strictEqual(yield* message(made), "[default] account a1 deactivated")
      assert.strictEqual((yield* letter(issued())).subject, "ACME Service localhost: a.example, b.example is there")
    }).pipe(Effect.scoped))
})
