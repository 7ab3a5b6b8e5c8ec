import { describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert } from "vitest"
import { accepted, refused, refusedFor } from "./Samples.ts"

const limits = (fileText: string, env: Record<string, string> = {}) =>
  Object.fromEntries(
    accepted({ fileText, env }).config.profiles.map(({ name, order }) => [name, order.max_identifiers])
  )

describe("inheritance", () => {
  it("gives each key the value of the profile, or else the value of the process, or else the default", () => {
    const { config, sources } = accepted({
      fileText:
        "order.max_identifiers = 50\n[profiles.web]\n[profiles.lab.order]\nmax_identifiers = 5\nretention_days = 1\n"
    })
    const [lab, web] = config.profiles
    const defaults = { validity_seconds: 604800, retention_days: 30, finalize_wait_ms: 0 }
    assert.deepStrictEqual(lab?.order, { ...defaults, max_identifiers: 5, retention_days: 1 })
    assert.deepStrictEqual(web?.order, { ...defaults, max_identifiers: 50 })
    assert.deepStrictEqual(config.order.retention_days, 30)
    assert.strictEqual(sources.get("profiles.web.order.max_identifiers"), "file")
    assert.strictEqual(sources.get("profiles.web.order.retention_days"), "default")
  })

  it("happens after the file and the environment are merged", () => {
    const fileText = "order.max_identifiers = 50\n[profiles.web]\n[profiles.lab.order]\nmax_identifiers = 5\n"
    assert.deepStrictEqual(limits(fileText, { ACME_SVC_ORDER__MAX_IDENTIFIERS: "80" }), { lab: 5, web: 80 })
    assert.deepStrictEqual(limits(fileText, { ACME_SVC_PROFILES__LAB__ORDER__MAX_IDENTIFIERS: "6" }), {
      lab: 6,
      web: 50
    })
  })

  it("prefers the profile to the process, and then the environment to the file", () => {
    const place = fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined })
    fc.assert(fc.property(place, place, place, place, (wide, wideEnv, own, ownEnv) => {
      const fileText = [
        wide === undefined ? "" : `order.max_identifiers = ${wide}`,
        "[profiles.web.order]",
        own === undefined ? "" : `max_identifiers = ${own}`
      ].join("\n")
      const env = {
        ...wideEnv === undefined ? {} : { ACME_SVC_ORDER__MAX_IDENTIFIERS: `${wideEnv}` },
        ...ownEnv === undefined ? {} : { ACME_SVC_PROFILES__WEB__ORDER__MAX_IDENTIFIERS: `${ownEnv}` }
      }
      assert.deepStrictEqual(limits(fileText, env), { web: ownEnv ?? own ?? wideEnv ?? wide ?? 100 })
    }))
  })

  it("includes nested keys, and replaces whole lists", () => {
    const { config } = accepted({
      fileText: `[meta]
caa_identities = ["a.example", "b.example"]
[signer.local_ca.subject]
organization = "All"
locality = "Here"
[profiles.web]
meta.caa_identities = []
[profiles.web.signer.local_ca]
cert_path = "web.pem"
key_path = "web.key"
crl_path = "web.crl"
subject.organization = "Web"
[profiles.lab]
`
    })
    const [lab, web] = config.profiles
    assert.deepStrictEqual([lab?.meta.caa_identities.length, web?.meta.caa_identities.length], [2, 0])
    assert.deepStrictEqual([lab?.signer.local_ca.subject.organization, web?.signer.local_ca.subject.organization], [
      "All",
      "Web"
    ])
    assert.strictEqual(web?.signer.local_ca.subject.locality, "Here")
  })

  it("reports a wrong inherited value once, at the key where it is set", () => {
    const fault = refusedFor({ fileText: "order.max_identifiers = 0\n[profiles.a]\n[profiles.b]\n" })
    assert.deepStrictEqual(fault, { key: "order.max_identifiers", message: "must be at least 1" })
    const own = refusedFor({ fileText: "[profiles.a.order]\nmax_identifiers = 0\n" })
    assert.strictEqual(own.key, "profiles.a.order.max_identifiers")
  })
})

describe("the names of profiles", () => {
  it("are read from the environment in lower case with hyphens", () => {
    const names = (...variables: ReadonlyArray<string>) =>
      accepted({ fileText: undefined, env: Object.fromEntries(variables.map((name) => [name, "true"])) })
        .config.profiles.map(({ name }) => name)
    assert.deepStrictEqual(names("ACME_SVC_PROFILES__WEB_SERVERS__ENABLED"), ["web-servers"])
    assert.deepStrictEqual(names("ACME_SVC_PROFILES__web__ENABLED", "ACME_SVC_PROFILES__A1__ENABLED"), ["a1", "web"])
  })

  it("are merged with those of the file", () => {
    const fileText = "[profiles.my-web]\norder.max_identifiers = 5\n"
    const env = { ACME_SVC_PROFILES__MY_WEB__ORDER__RETENTION_DAYS: "1" }
    const { profiles } = accepted({ fileText, env }).config
    assert.deepStrictEqual(profiles.map(({ name, order }) => [name, order.max_identifiers, order.retention_days]), [[
      "my-web",
      5,
      1
    ]])
  })

  it("are refused if one key is spelled in two ways", () => {
    const env = {
      ACME_SVC_PROFILES__A_B__ENABLED: "true",
      "ACME_SVC_PROFILES__A-B__ENABLED": "true",
      ACME_SVC_PROFILES__a_b__ORDER__RETENTION_DAYS: "1"
    }
    const fault = refusedFor({ env })
    assert.strictEqual(fault.key, "profiles.a-b.enabled")
    assert.include(fault.message, "ACME_SVC_PROFILES__A-B__ENABLED")
    assert.include(fault.message, "ACME_SVC_PROFILES__A_B__ENABLED")
  })

  it("have 1 to 63 lower-case letters, digits and hyphens", () => {
    const good = fc.stringMatching(/^[a-z0-9-]{1,63}$/).filter((name) => name !== "none")
    fc.assert(fc.property(good, (name) => {
      const { profiles } = accepted({ fileText: `[profiles."${name}"]` }).config
      assert.deepStrictEqual(profiles.map((profile) => profile.name), [name])
    }))
    for (const name of ["", "Web", "my_web", "a.b", "a b", "é", "x".repeat(64), "__proto__"]) {
      const fault = refused({ fileText: `[profiles.${JSON.stringify(name)}]\n[profiles.ok]` })
      assert.deepStrictEqual(fault.map(({ message }) => message), [
        "cannot name a profile: a name has 1 to 63 lower-case letters, digits and hyphens"
      ])
    }
  })

  it("that are refused do not also cause the message that no profile is enabled", () => {
    const [fault, ...others] = refused({ fileText: "[profiles.Web]\nenabled = true" })
    assert.include(fault?.message, "cannot name a profile")
    assert.deepStrictEqual(others, [])
  })

  it("must not be the reserved name none", () => {
    const expected = { key: "profiles.none", message: "is reserved and cannot name a profile" }
    assert.deepStrictEqual(refusedFor({ fileText: "[profiles.none]\n[profiles.a]" }), expected)
    assert.deepStrictEqual(refusedFor({ env: { ACME_SVC_PROFILES__NONE__ENABLED: "true" } }), expected)
  })

  it("are sorted as text, even if they are numbers", () => {
    const { profiles } = accepted({ fileText: "[profiles.b]\n[profiles.9]\n[profiles.10]\n[profiles.a]" }).config
    assert.deepStrictEqual(profiles.map(({ name }) => name), ["10", "9", "a", "b"])
  })
})

describe("at least one enabled profile", () => {
  it("exists if there is an empty table or a variable for it", () => {
    assert.isTrue(accepted({ fileText: "[profiles.a]" }).config.profiles[0]?.enabled)
    assert.isTrue(
      accepted({ fileText: undefined, env: { ACME_SVC_PROFILES__A__ENABLED: "true" } }).config.profiles[0]?.enabled
    )
  })

  it("is required, and the message shows a file that works", () => {
    for (const fileText of [undefined, "", "[profiles]", "[profiles.a]\nenabled = false"]) {
      const fault = refusedFor({ fileText })
      assert.strictEqual(fault.key, "profiles")
      const [, suggestion = ""] = fault.message.split("\n\n")
      assert.isTrue(accepted({ fileText: suggestion }).config.profiles[0]?.enabled)
    }
  })

  it("may be accompanied by a parked profile, whose mistakes are only reported", () => {
    const { profiles } = accepted({ fileText: "[profiles.a]\n[profiles.b]\nenabled = false" }).config
    assert.deepStrictEqual(profiles.map(({ enabled, name }) => [name, enabled]), [["a", true], ["b", false]])
    const late = accepted({ fileText: "[profiles.a]\n[profiles.b]\nenabled = false\nchallenge.timeout_ms = 60000" })
    assert.deepStrictEqual(late.ignored.map(({ key }) => key), ["profiles.b.challenge.timeout_ms"])
  })
})
