import { Effect } from "effect"
import { appendFileSync, existsSync, writeFileSync } from "node:fs"
import { assert, beforeAll, describe, it } from "vitest"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf } from "../support/Documents.ts"
import { mailServer } from "../support/MailServer.ts"
import { hasRunLinesOf, Place } from "../support/Place.ts"

/* The documents about sections of the configuration. */

describe("docs/configure/policy.md", () => {
  const files = bodiesOf("docs/configure/policy.md", "toml")
  const [example = "", ...others] = files
  let place: Place
  beforeAll(async () => {
    await builtServer()
    place = await Place.make()
    writeFileSync(place.at("names-for"), "#!/bin/sh\necho web1.example.org\n", { mode: 0o755 })
    writeFileSync(place.at("config.toml"), example.replace("/etc/acme-svc/names-for", place.at("names-for")))
  })

  it("shows the policy of its example", async () => {
    const shown = await place.succeed("filterShow")
    for (const words of ["printer-credential", "(printer-credential and printer-names)", "relying-parties"]) {
      assert.include(shown, words)
    }
    assert.notInclude(shown, "Warning")
  })

  it("leaves only the revocation list open to everybody", async () => {
    assert.include(await place.succeed("filterCrl"), "Profile default: allowed.")
    const { code, stderr, stdout } = await place.paste("filterOutside")
    assert.strictEqual(code, 3, stderr)
    assert.include(stdout, "connection: refused by filter.default")
    assert.include(stdout, "nothing was looked up")
  })

  it("has commands that ask the inventory for names and report the answer", async () => {
    const said: unknown = JSON.parse(await place.succeed("filterInside"))
    assert.deepNestedInclude(said, { outcome: "allowed", "stages[1].rule": "own-names" })
    assert.deepNestedInclude(said, {
      ran: [
        { check: "printer-credential", type: "eab", at: "newOrder" },
        { check: "owned", type: "ipam", at: "newOrder" },
        { check: "printer-credential", type: "eab", at: "CSR" },
        { check: "owned", type: "ipam", at: "CSR" }
      ]
    })
    const { code, stdout } = await place.run(
      "acme-svc filter explain --client-ip 10.1.2.3 --identifier web2.example.org"
    )
    assert.strictEqual(code, 3, stdout)
    writeFileSync(place.at("names-for"), "#!/bin/sh\nexit 1\n")
    const lost = await place.run("acme-svc filter explain --client-ip 10.1.2.3 --identifier web1.example.org")
    assert.strictEqual(lost.code, 1, lost.stdout)
    assert.include(lost.stdout, "Profile default: undecided.")
  })

  it.each(others)("shows a file that the service accepts: %#", async (file) => {
    const another = await Place.make()
    writeFileSync(another.at("config.toml"), file)
    assert.include(await another.succeed("filterShow"), "own-names")
  })
})

describe("docs/configure/notifications.md", () => {
  it("has commands that send samples and report the answers", async () => {
    const place = await Place.make()
    await place.succeed("init")
    const taken = "script_path = \"/bin/true\"\nevents = [\"certificate_issued\"]\n"
    appendFileSync(
      place.at("config.toml"),
      `\n[notify]\nenabled = ["custom"]\ncustom_enabled = ["chat"]\n[notify.custom.chat]\n${taken}`
    )
    for (const line of ["notifyTest", "notifyTestChat"] as const) {
      assert.match(await place.succeed(line), /custom chat +certificate_issued +ok +exit 0/)
    }
  })

  it("has a command that sends a sample of the mail for contacts to the recipients of the section", () =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const mail = yield* mailServer()
      const place = yield* Effect.promise(() => Place.make())
      yield* Effect.promise(() => place.succeed("init"))
      const from = "smtp_host = \"127.0.0.1\"\nsmtp_security = \"none\"\nfrom = \"a@example.org\"\n"
      appendFileSync(
        place.at("config.toml"),
        `\n[notify]\nenabled = ["email"]\n[notify.email]\n${from}smtp_port = ${mail.port}\nto = ["pki@example.org"]\n`
          + "[notify.expiry]\nlead_days = 14\nto_contacts = true\n"
      )
      assert.match(yield* Effect.promise(() => place.succeed("notifyTestReminder")), /email +expiry_reminder +ok/)
      assert.deepStrictEqual(mail.taken.flatMap(({ recipients }) => recipients), ["pki@example.org"])
    }))))
})

describe("docs/configure/profiles.md", () => {
  it("has an example that the service accepts", async () => {
    await builtServer()
    const place = await Place.make()
    const [example = ""] = bodiesOf("docs/configure/profiles.md", "toml")
    writeFileSync(place.at("config.toml"), example)
    const shown = await place.succeed("profiles")
    assert.match(shown, /^lab .* bypassed/m)
    assert.match(shown, /^web .*\/profile\/web\/directory .* http-01/m)
    const { items } = JSON.parse(await place.succeed("profilesJson")) as { readonly items: ReadonlyArray<unknown> }
    assert.lengthOf(items, 2)
    await place.succeed("init")
    for (const file of ["ca.pem", "ca.key", "lab-ca.pem", "lab-ca.key"]) assert.isTrue(existsSync(place.at(file)), file)
  })
})

hasRunLinesOf("settings")
