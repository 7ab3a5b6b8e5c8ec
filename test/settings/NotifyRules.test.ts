import { describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { assert } from "vitest"
import { accepted, found, minimal, refused } from "./Samples.ts"

/*
 * Mistakes in [notify] and [admin.notify] are refused, or only reported while the section is off. Each message names
 * the key and quotes no value.
 */

const faultsOf = (toml: string) =>
  found({ fileText: `${toml}\n${minimal}` }).map(({ key, message }) => `${key}: ${message}`)

const mail = `smtp_host = "mail.example.org"\nfrom = "a@example.org"\nto = ["b@example.org"]`

describe("notifications about expiring certificates", () => {
  it("cannot be set in [admin.notify]", () => {
    const [fault, ...more] = refused({ fileText: `[admin.notify.expiry]\nlead_days = 14\n${minimal}` })
    assert.strictEqual(fault?.key, "admin.notify.expiry.lead_days")
    assert.include(fault?.message, "is not a known key")
    assert.deepStrictEqual(more, [])
  })

  it("are set for each profile separately", () => {
    const { config } = accepted({
      fileText:
        "[notify.expiry]\nlead_days = 14\n[profiles.default]\n[profiles.other.notify.expiry]\nlead_days = 0\nmax_entries = 5\n"
    })
    assert.deepStrictEqual(config.profiles.map(({ name, notify }) => [name, notify.expiry]), [
      ["default", { lead_days: 14, interval_days: 7, max_entries: 50, to_contacts: false }],
      ["other", { lead_days: 0, interval_days: 7, max_entries: 5, to_contacts: false }]
    ])
  })
})

describe("a section of notifications", () => {
  it.each<readonly [string, ReadonlyArray<string>]>([
    ["notify.enabled = [\"webhook\"]", [
      "notify.webhook_enabled: must not be empty while notify.enabled has \"webhook\""
    ]],
    ["notify.enabled = [\"custom\"]", ["notify.custom_enabled: must not be empty while notify.enabled has \"custom\""]],
    ["notify.webhook_enabled = [\"chat\"]", [
      "notify.webhook_enabled: names chat, but there is no [notify.webhook.chat]"
    ]],
    ["notify.custom_enabled = [\"a\"]\n[notify.custom.b]", [
      "notify.custom_enabled: names a, but there is no [notify.custom.a]"
    ]],
    ["notify.webhook_enabled = [\"chat\"]\n[notify.webhook.chat]", [
      "notify.webhook.chat.url: must be set while notify.webhook_enabled names chat"
    ]],
    ["notify.custom_enabled = [\"a\", \"a\"]\n[notify.custom.a]\nscript_path = \"x\"", [
      "notify.custom_enabled: must not name the same entry twice"
    ]],
    ["notify.custom_enabled = [\"a\"]\n[notify.custom.a]", [
      "notify.custom.a.script_path: must be set while notify.custom_enabled names a"
    ]],
    ["notify.enabled = [\"email\"]", [
      "notify.email.from: must not be empty while notify.enabled has \"email\"",
      "notify.email.smtp_host: must not be empty while notify.enabled has \"email\"",
      "notify.email.to: must not be empty while notify.enabled has \"email\""
    ]],
    ["admin.notify.enabled = [\"email\"]\n[admin.notify.email]\nfrom = \"a@b\"", [
      "admin.notify.email.smtp_host: must not be empty while admin.notify.enabled has \"email\""
    ]],
    [`[notify.email]\n${mail}\nsmtp_username = "u"`, [
      "notify.email.smtp_password: must be set as well while notify.email.smtp_username is"
    ]],
    [`[notify.email]\n${mail}\nsmtp_password = "hunter2"`, [
      "notify.email.smtp_username: must be set as well while notify.email.smtp_password is"
    ]],
    [`[notify.email]\n${mail}\nsmtp_username = "u"\nsmtp_password = "hunter2"\nsmtp_security = "none"`, [
      "notify.email.smtp_security: must not be none with a password, unless the mail server is on this host"
    ]],
    ["[notify.webhook.Chat_Room]\nurl = \"https://x.example/\"", [
      "notify.webhook.Chat_Room: cannot name an entry: a name has lower-case letters, digits and hyphens"
    ]],
    ["[notify.webhook.a]\nurl = \"ftp://x/secret\"", [
      "notify.webhook.a.url: must be an absolute http or https URL without user part; credentials go into headers"
    ]],
    ["[notify.webhook.a]\nurl = \"https://user:secret@x/\"", [
      "notify.webhook.a.url: must be an absolute http or https URL without user part; credentials go into headers"
    ]],
    ["[notify.webhook.a]\nmethod = \"GET\"", ["notify.webhook.a.method: must be POST, PUT or PATCH"]],
    ["[notify.webhook.a.headers]\nContent-Length = \"1\"", [
      "notify.webhook.a.headers.Content-Length: is a header that belongs to the connection and cannot be set"
    ]],
    ["[notify.webhook.a.headers]\n\"a b\" = \"1\"", [
      "notify.webhook.a.headers.\"a b\": is not the name of a header"
    ]],
    ["[notify.webhook.a.headers]\nx = \"a\\r\\nb: c\"", [
      "notify.webhook.a.headers.x: must be characters of ISO 8859-1 without control characters"
    ]],
    ["[notify.webhook.a]\nsigning_key = \"whsec_c2hvcnQ=\"", [
      "notify.webhook.a.signing_key: must be base64 of 24 to 64 octets, with or without whsec_ before it"
    ]],
    ["[notify.webhook.a]\nbody = \"x\\n{{ secret | reverse }}\"", [
      "notify.webhook.a.body: does not compile: line 2: the filter reverse is not known"
    ]],
    ["[notify.webhook.a]\nbody = \" \\n\"", [
      "notify.webhook.a.body: must not be blank: a receiver would be told nothing"
    ]],
    ["notify.expiry.to_contacts = true\nnotify.expiry.lead_days = 7", [
      "notify.expiry.to_contacts: must not be true unless notify.enabled has \"email\""
    ]],
    [`[notify]\nenabled = ["email"]\nexpiry.to_contacts = true\n[notify.email]\n${mail}`, [
      "notify.expiry.lead_days: must be at least 1 while notify.expiry.to_contacts is true"
    ]],
    ["profiles.other.notify.expiry.to_contacts = true\nprofiles.other.notify.expiry.lead_days = 7", [
      "profiles.other.notify.expiry.to_contacts: must not be true unless notify.enabled has \"email\""
    ]],
    ["notify.expiry.lead_days = -1", ["notify.expiry.lead_days: must be 0 to 3650"]],
    ["notify.expiry.interval_days = 0", ["notify.expiry.interval_days: must be 1 to 365"]],
    ["notify.expiry.max_entries = 1001", ["notify.expiry.max_entries: must be 1 to 1000"]],
    ["[notify.webhook.a]\nevents = [\"issued\"]", [
      "notify.webhook.a.events: entry 1 must be one of \"profile_mounted\", \"account_created\", \"account_deactivated\", \"account_blocked\", "
      + "\"account_unblocked\", \"certificate_issued\", \"certificate_revoked\", \"challenge_failed\", \"certificates_expiring\", "
      + "\"authority_expiring\", \"admin_sign_in\", \"admin_credential_changed\", \"campaign_finished\", and not \"issued\""
    ]]
  ])("is refused if it is %s", (toml, expected) => {
    assert.deepStrictEqual(faultsOf(toml), expected)
  })

  it("is refused with the key of the profile if the profile sets this key", () => {
    const toml = `[notify.webhook.chat]\nurl = "https://x.example/"\n[profiles.web.notify]\nwebhook_enabled = ["other"]`
    assert.deepStrictEqual(faultsOf(toml), [
      "profiles.web.notify.webhook_enabled: names other, but there is no [profiles.web.notify.webhook.other]"
    ])
  })

  it("may have a password without TLS if the mail server is on this host", () => {
    for (const host of ["localhost", "127.0.0.1", "::1"]) {
      accepted({
        fileText:
          `[notify.email]\nsmtp_host = "${host}"\nsmtp_security = "none"\nsmtp_username = "u"\nsmtp_password = "p"\n`
          + `[admin.notify]\nenabled = ["email"]\n[admin.notify.email]\nsmtp_host = "m"\nfrom = "a@b"\n${minimal}`
      })
    }
  })

  it("is inherited by a profile entry by entry and key by key, including the headers", () => {
    const { config } = accepted({
      fileText: `notify.webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/secret"
[notify.webhook.chat.headers]
Authorization = "Bearer one"
X-Two = "two"
[profiles.web.notify.webhook.chat]
method = "put"
[profiles.web.notify.webhook.chat.headers]
X-Two = "three"
[profiles.default]`,
      env: { ACME_SVC_NOTIFY__WEBHOOK__CHAT__HEADERS__X_THREE: "3" }
    })
    const web = config.profiles.find(({ name }) => name === "web")?.notify
    const chat = web?.webhook["chat"]
    assert.deepStrictEqual(web?.webhook_enabled, ["chat"])
    assert.strictEqual(chat?.method, "put")
    assert.strictEqual(chat === undefined ? "" : Redacted.value(chat.url), "https://chat.example/secret")
    const headers = Object.entries(chat?.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])
    assert.deepStrictEqual(headers.toSorted(), [["Authorization", "Bearer one"], ["X-Two", "three"], ["x_three", "3"]])
    assert.deepStrictEqual(config.admin.notify.webhook, {})
  })
})
