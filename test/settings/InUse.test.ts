import { describe, it } from "@effect/vitest"
import { assert } from "vitest"
import type { Role } from "../../src/domain/Role.ts"
import { everyRole } from "../../src/domain/Role.ts"
import { declaredKeys } from "../../src/engine/config/Key.ts"
import { table } from "../../src/settings/Table.ts"
import { accepted, fileWith, minimal, refused } from "./Samples.ts"

/*
 * A mistake in a section that is turned off, or that only other roles use, is reported and does not prevent a startup.
 */

const everything = {
  ACME_SVC_ADMIN__ENABLED: "true",
  ACME_SVC_ADMIN__TLS__ENABLED: "true",
  ACME_SVC_ADMIN__NOTIFY__ENABLED: "custom",
  ACME_SVC_ADMIN__NOTIFY__CUSTOM_ENABLED: "x",
  ACME_SVC_ADMIN__NOTIFY__CUSTOM__X__SCRIPT_PATH: "/bin/true",
  ACME_SVC_SERVER__TLS__ENABLED: "true",
  ACME_SVC_METRICS__ENABLED: "true",
  ACME_SVC_PUBLISH__ENABLED: "true",
  ACME_SVC_NOTIFY__ENABLED: "custom",
  ACME_SVC_NOTIFY__CUSTOM_ENABLED: "x",
  ACME_SVC_NOTIFY__CUSTOM__X__SCRIPT_PATH: "/bin/true"
}

/** Every key once, including the keys of named entries. */
const keys = declaredKeys(table).map(({ facts, path: [first, , ...rest], path }) => ({
  kind: facts.kind,
  key: first === "profiles"
    ? ["profiles", "default", ...rest.map((word) => word === "<name>" ? "x" : word)].join(".")
    : path.map((word) => word === "<name>" ? "x" : word).join(".")
}))

/** Returns a file that gives a key a value of the wrong type. */
const wrong = ({ key, kind }: typeof keys[number]) => fileWith(key, kind === "integer" ? "soon" : 5)

const ignoredOf = (fileText: string, roles: ReadonlyArray<Role> = everyRole) =>
  accepted({ fileText, roles: new Set(roles) }).ignored.map(({ key }) => key)

const refusedOf = (fileText: string, roles: ReadonlyArray<Role> = everyRole) =>
  refused({ fileText, roles: new Set(roles) }).map(({ key }) => key)

describe("a key with a mistake", () => {
  it("is refused while its section is on and the process has every role", () => {
    for (const one of keys) {
      const env = Object.fromEntries(
        Object.entries(everything).filter(([name]) =>
          name !== `ACME_SVC_${one.key.toUpperCase().replaceAll(".", "__")}`
        )
      )
      assert.include(refused({ fileText: wrong(one), env }).map(({ key }) => key), one.key, one.key)
    }
  })

  it("is only reported while its section is off, unless the key turns the section on", () => {
    const sections = /^(?:admin|admin\.tls|server\.tls|metrics|publish|notify|profiles\.default\.notify)\./
    const switches = ["admin", "server.tls", "metrics", "publish", "notify", "profiles.default.notify"]
    const toContacts = "notify.expiry.to_contacts" // This key needs a section that is turned off.
    for (const one of keys.filter(({ key }) => sections.test(key) && !key.endsWith(toContacts))) {
      const isSwitch = switches.some((section) => one.key === `${section}.enabled`)
      if (isSwitch) assert.deepStrictEqual(refusedOf(wrong(one)), [one.key])
      else assert.include(ignoredOf(wrong(one)), one.key)
    }
  })

  it("has its default value, and counts as not set", () => {
    const { config, sources } = accepted({ fileText: `admin.bind_address = "nowhere"\n${minimal}` })
    assert.strictEqual(config.admin.bind_address, "127.0.0.1:3001")
    assert.strictEqual(sources.get("admin.bind_address"), "default")
  })

  it("is refused if its section may have been meant to be on", () => {
    const fileText = `[admin]\nenabled = "yes"\nbind_address = "nowhere"\n${minimal}`
    assert.deepStrictEqual(refusedOf(fileText), ["admin.bind_address", "admin.enabled"])
    assert.deepStrictEqual(refusedOf(`[admin]\nenable = true\nbind_address = "nowhere"\n${minimal}`), ["admin.enable"])
  })
})

describe("a mistake in a feature that is off", () => {
  it("is only reported if it is an address of the panel that would need TLS", () => {
    const panel = `[admin]\nbind_address = "0.0.0.0:3001"\n${minimal}`
    assert.deepStrictEqual(ignoredOf(panel), ["admin.bind_address"])
    const on = panel.replace("[admin]", "[admin]\nenabled = true")
    assert.deepStrictEqual(refusedOf(on), ["admin.bind_address"])
    assert.deepStrictEqual(ignoredOf(on.replace("bind", "tls.enabled = true\nbind")), [])
  })

  it("is only reported in a parked profile, even if it is inherited and no other profile uses the key", () => {
    const relay = "backend = \"relay\"\n"
    assert.deepStrictEqual(ignoredOf(`${minimal}[profiles.old]\nenabled = false\n[profiles.old.signer]\n${relay}`), [
      "signer.relay.directory_url"
    ])
    const inherited = `[signer.relay.eab]\nkid = "x"\n[profiles.web.signer]\nbackend = "local_ca"\n`
    const old =
      `[profiles.old]\nenabled = false\n[profiles.old.signer]\n${relay}relay.directory_url = "https://ca.example/"\n`
    assert.deepStrictEqual(ignoredOf(`${inherited}${old}`), ["signer.relay.eab.hmac_key"])
    assert.deepStrictEqual(refusedOf(`${inherited}${old.replace("false", "true")}`), ["signer.relay.eab.hmac_key"])
  })
})

describe("a mistake in a section that only some roles use", () => {
  const cases: ReadonlyArray<readonly [fileText: string, users: ReadonlyArray<Role>]> = [
    [`[admin]\nenabled = true\nbind_address = "0.0.0.0:3001"\n`, ["admin"]],
    [`[admin]\nenabled = true\nfilter.rules = ["x"]\n`, ["admin"]],
    [
      `[admin]\nenabled = true\nnotify.enabled = ["email"]\n[admin.notify.email]\nsmtp_host = "m"\nfrom = "a@b"\n`
      + `smtp_username = "u"\n`,
      ["admin", "worker"]
    ],
    [`[signer]\nbackend = "relay"\nrelay.directory_url = "https://ca.example/"\nrelay.eab.kid = "x"\n`, ["worker"]],
    [`[signer]\nbackend = "custom"\n`, ["worker"]],
    [`[signer]\nbackend = "custom"\ncustom.supports_crl = true\n`, ["acme", "worker"]],
    [`[ipam]\nbackend = "netbox"\nnetbox.url = "https://n.example"\n`, ["acme"]],
    [`[filter]\nrules = ["x"]\n`, ["acme", "admin"]],
    [`[server.tls]\nenabled = true\nkey_path = "server.pem"\n`, ["acme"]],
    [`[notify]\nenabled = ["webhook"]\n`, ["acme", "admin", "worker"]],
    [`[notify]\nenabled = ["email"]\n[notify.email]\nsmtp_host = "m"\nfrom = "a@b"\n`, ["admin", "worker"]]
  ]

  it.each(cases)(
    "in the file %s is refused by the roles %s, and only reported by the other roles",
    (fileText, users) => {
      for (const role of everyRole) {
        const found = (users.includes(role) ? refusedOf : ignoredOf)(`${fileText}${minimal}`, [role])
        assert.strictEqual(found.length, 1, role)
      }
      assert.strictEqual(refusedOf(`${fileText}${minimal}`).length, 1)
    }
  )
})
