import { describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import * as fc from "fast-check"
import { assert } from "vitest"
import { ConfigRefused } from "../../../src/engine/config/ConfigRefused.ts"
import { declaredKeys } from "../../../src/engine/config/Key.ts"
import { variableOf } from "../../../src/engine/config/KeyPath.ts"
import { resolveConfig } from "../../../src/settings/Resolve.ts"
import { table } from "../../../src/settings/Table.ts"
import { accepted, envWith, fileWith, minimal, refused, refusedFor } from "../../settings/Samples.ts"
import { fuzz } from "../../support/Fuzz.ts"

/** Process-wide keys, which do not belong to profiles or named tables. */
const processWide = declaredKeys(table).map(({ path }) => path).filter((path) => !path.includes("<name>"))

describe("the layers of the configuration", () => {
  it("replace one another in the order default, file, environment", () => {
    const fileText = `[order]\nmax_identifiers = 7\nretention_days = 8\n${minimal}`
    const resolved = accepted({
      fileText,
      env: { ACME_SVC_ORDER__MAX_IDENTIFIERS: "9", ACME_SVC_NONCE__TTL_SECONDS: "5" }
    })
    const { max_identifiers, retention_days, validity_seconds } = resolved.config.order
    assert.deepStrictEqual([max_identifiers, retention_days, validity_seconds], [9, 8, 604800])
    assert.deepStrictEqual([resolved.keysFromFile, resolved.keysFromEnv], [1, 2])
    assert.strictEqual(resolved.sources.get("order.max_identifiers"), "env")
    assert.strictEqual(resolved.sources.get("order.retention_days"), "file")
    assert.strictEqual(resolved.sources.get("order.validity_seconds"), "default")
  })

  it("do not check a value that the environment replaces", () => {
    const resolved = accepted({
      fileText: fileWith("order.max_identifiers", "many"),
      env: { ACME_SVC_ORDER__MAX_IDENTIFIERS: "9" }
    })
    assert.strictEqual(resolved.config.order.max_identifiers, 9)
  })

  it("replace whole lists", () => {
    const fileText = fileWith("meta.caa_identities", ["a.example", "b.example"])
    const list = (text: string) =>
      accepted({ fileText, env: { ACME_SVC_META__CAA_IDENTITIES: text } }).config.meta.caa_identities
    assert.deepStrictEqual(list("c.example"), ["c.example"])
    assert.deepStrictEqual(list(" c.example ,\td.example"), ["c.example", "d.example"])
    assert.deepStrictEqual(list(""), [])
  })

  it("may not contain a list with an empty item", () => {
    for (const text of [",", "a,,b", "a,", " "]) {
      const fault = refusedFor({ env: { ACME_SVC_META__CAA_IDENTITIES: text } })
      assert.deepStrictEqual(fault, {
        key: "meta.caa_identities",
        message: "must have no empty item between commas (ACME_SVC_META__CAA_IDENTITIES)"
      })
    }
  })

  it("take strings verbatim, and booleans in any case", () => {
    const of = (name: string, value: string) => accepted({ env: { [name]: value } }).config
    assert.strictEqual(of("ACME_SVC_SIGNER__LOCAL_CA__SUBJECT__STATE", "  x ").signer.local_ca.subject.state, "  x ")
    assert.strictEqual(of("ACME_SVC_SERVER__TLS__ENABLED", "TrUe").server.tls.enabled, true)
    assert.strictEqual(of("ACME_SVC_LOGGING__ANSI", "FALSE").logging.ansi, false)
    assert.strictEqual(of("ACME_SVC_JOBS__RETENTION_DAYS", "-0").jobs.retention_days, 0)
    assert.strictEqual(of("ACME_SVC_JOBS__RETENTION_DAYS", "007").jobs.retention_days, 7)
  })

  it("ignore variables that are not of this service", () => {
    const env = { ACME_SVC_CONFIG: "elsewhere", ACME_SVC: "x", acme_svc_foo: "x", PATH: "x", ACME_SVC_NOPE: undefined }
    assert.strictEqual(accepted({ env }).keysFromEnv, 0)
  })
})

describe("an unknown key", () => {
  it("is refused with the nearest key as a suggestion if it is in the file", () => {
    fc.assert(
      fc.property(fc.constantFrom(...processWide), fc.nat(), (path, at) => {
        const key = path.join(".")
        const last = path.at(-1) ?? ""
        const index = at % last.length
        const typo = [...path.slice(0, -1), `${last.slice(0, index)}0${last.slice(index)}`].join(".")
        const fault = refusedFor({ fileText: fileWith(typo, 1) })
        assert.deepStrictEqual(fault, { key: typo, message: `is not a known key; the nearest is ${key}` })
      }),
      fuzz(100)
    )
  })

  it("is refused with the nearest key as a suggestion if it is in the environment", () => {
    fc.assert(
      fc.property(fc.constantFrom(...processWide), (path) => {
        const variable = variableOf(path)
        const fault = refusedFor({ env: { [`${variable}0`]: "1" } })
        assert.strictEqual(fault.key, `${variable}0`)
        assert.strictEqual(fault.message, `is not a known key; the nearest is ${path.join(".")} (${variable})`)
      }),
      fuzz(100)
    )
  })

  it("is refused with the nearest key of profiles as a suggestion if it is in a profile", () => {
    const file = refusedFor({ fileText: "[profiles.web.order]\nmax_identifier = 1\n" })
    assert.deepStrictEqual(file, {
      key: "profiles.web.order.max_identifier",
      message: "is not a known key; the nearest is profiles.web.order.max_identifiers"
    })
    const env = refusedFor({ env: { ACME_SVC_PROFILES__MY_WEB__ENABLE: "true" } })
    assert.strictEqual(
      env.message,
      "is not a known key; the nearest is profiles.my-web.enabled (ACME_SVC_PROFILES__MY_WEB__ENABLED)"
    )
  })

  it("is refused with a message about its right place if it is a process-wide key in a profile", () => {
    const file = refusedFor({ fileText: "[profiles.web.server]\nbase_url = \"x\"\n" })
    assert.strictEqual(file.key, "profiles.web.server.base_url")
    assert.include(file.message, "is not a known key: server.base_url is process-wide")
    const env = refusedFor({ env: { ACME_SVC_PROFILES__WEB__DATABASE__URL: "x" } })
    assert.include(env.message, "is not a known key: database.url (ACME_SVC_DATABASE__URL) is process-wide")
  })

  it("is refused by name for each value of an unknown table and for an empty table", () => {
    const keys = refused({ fileText: `[metrics]\na = 1\nb.c = 2\n[proxies]\n${minimal}` }).map(({ key }) => key)
    assert.deepStrictEqual(keys, ["metrics.a", "metrics.b.c", "proxies"])
  })

  it("is reported for a key with the name of a section, and for a section with the name of a key", () => {
    const of = (text: string) => refused({ fileText: `${text}\n${minimal}` })
    assert.deepStrictEqual(of("order = 5"), [{
      key: "order",
      message: "is a section and holds keys; it begins with [order]"
    }])
    assert.strictEqual(of("[[order]]\nmax_identifiers = 1")[0]?.key, "order")
    assert.strictEqual(of("[order.max_identifiers]\nx = 1")[0]?.key, "order.max_identifiers")
    assert.strictEqual(of("\"order.max_identifiers\" = 1")[0]?.key, "\"order.max_identifiers\"")
    assert.strictEqual(refused({ fileText: "profiles.web = true" })[0]?.key, "profiles.web")
    assert.strictEqual(refused({ env: { ACME_SVC_ORDER: "1" } })[0]?.key, "ACME_SVC_ORDER")
    assert.strictEqual(
      refused({ env: { ACME_SVC_order__max_identifiers: "1" } })[0]?.key,
      "ACME_SVC_order__max_identifiers"
    )
  })

  it("is escaped in the message if a terminal would interpret its characters", () => {
    const fault = refusedFor({ fileText: `"\\u001b[2J\\u009b" = 1\n${minimal}` })
    assert.strictEqual(fault.key, "\"\\u001b[2J\\u009b\"")
  })

  it("is also reported if it has the name of a member of JavaScript objects", () => {
    for (const name of ["__proto__", "constructor", "toString"]) {
      assert.deepStrictEqual(refused({ fileText: `${name} = 1\n${minimal}` }).map(({ key }) => key), [name])
    }
    const resolved = accepted({ fileText: "[profiles.constructor.order]\nmax_identifiers = 3" })
    assert.deepStrictEqual(resolved.config.profiles.map(({ name, order }) => [name, order.max_identifiers]), [[
      "constructor",
      3
    ]])
  })
})

describe("a file that is not TOML", () => {
  it("is reported by its name with line and column", () => {
    const fault = refusedFor({ fileText: "[server]\nbase_url = \"x\ny\"\n", fileName: "/etc/acme.toml" })
    assert.strictEqual(fault.key, "/etc/acme.toml")
    assert.match(fault.message, /^is not well-formed TOML at line 2, column \d+: /)
  })

  it("does not hide mistakes in the environment, and is reported only once", () => {
    const keys = refused({ fileText: "[", env: { ACME_SVC_NONCE__TTL_SECONDS: "0", ACME_SVC_X: "" } }).map(({ key }) =>
      key
    )
    assert.deepStrictEqual(keys, ["ACME_SVC_X", "config.toml", "nonce.ttl_seconds"])
  })

  it("is never quoted in the message", () => {
    const broken = fc.constantFrom(
      "url = \"SWORDFISH",
      "url = SWORDFISH",
      "url = \"SWORDFISH\" SWORDFISH",
      "url = \"SWORDFISH\"\nurl = \"SWORDFISH\"",
      "url = 1SWORDFISH",
      "url = [\"SWORDFISH\"",
      "url = \"SWORDFISH\\q\"",
      "SWORDFISH",
      "url = 2020-13-13SWORDFISH",
      "[SWORDFISH"
    )
    fc.assert(fc.property(broken, (line) => {
      const faults = refused({ fileText: `[database]\n${line}\n` })
      assert.notInclude(ConfigRefused.of(faults).message, "SWORDFISH")
    }))
  })
})

describe("mistakes in a configuration", () => {
  it("are all reported in a sorted order, however many there are", () => {
    // Mistakes in features that are turned off cause no refusal.
    const off = /^(?:admin|server\.tls|metrics|publish|notify)\.(?!enabled$)/
    const keys = processWide.map((path) => path.join(".")).filter((key) => !off.test(key))
    fc.assert(fc.property(fc.uniqueArray(fc.constantFrom(...keys)), fc.nat(3), (chosen, unknown) => {
      const typos = Array.from({ length: unknown }, (_, index) => `nothing_${index}`)
      const lines = [...chosen, ...typos].map((key) => `${key} = [[0]]`)
      const faults = chosen.length + unknown === 0 ? [] : refused({ fileText: `${lines.join("\n")}\n${minimal}` })
      assert.deepStrictEqual(faults.map(({ key }) => key), [...chosen, ...typos].sort())
    }))
  })

  it("are reported together, whichever layer contains them", () => {
    const faults = refused({
      fileText:
        "nonce.ttl_seconds = 0\n[challenge]\ntimeout_ms = 60000\n[profiles.none]\n[profiles.a]\nenabled = false\n",
      env: { ACME_SVC_X: "1", ACME_SVC_SERVER__TLS__ENABLED: "on" }
    })
    assert.deepStrictEqual(faults.map(({ key }) => key), [
      "ACME_SVC_X",
      "challenge.timeout_ms",
      "nonce.ttl_seconds",
      "profiles.none",
      "server.tls.enabled"
    ])
  })

  it("are reported in one readable line each", () => {
    const faults = refused({ fileText: fileWith("nonce.ttl_seconds", 0), env: { ACME_SVC_X: "1" } })
    const lines = ConfigRefused.of(faults).message.split("\n")
    assert.strictEqual(lines[0], "The configuration is refused, 2 faults:")
    assert.strictEqual(lines[2], "  nonce.ttl_seconds: must be at least 1")
    assert.strictEqual(lines.length, 3)
  })
})

describe("secrets", () => {
  const word = "SWORDFISH"
  const urls = [
    `mysql://u:${word}@h/d`,
    `postgres://u:${word}@h:x/d`,
    `postgres://u:12?${word}@h/d`,
    `postgres://u:12#${word}@h/d`,
    `postgres://u:p@h/d?${word}=1`,
    `sqlite://a?key=${word}`,
    `sqlite:${word}`,
    `${word}\u0000`
  ]

  it("appear in no message, wherever a URL contains them", () => {
    const keys = processWide.map((path) => path.join("."))
    fc.assert(fc.property(fc.constantFrom(...urls), fc.constantFrom(...keys), (url, key) => {
      const both = [{ fileText: fileWith(key, url) }, { fileText: fileWith(key, [url]) }, { env: envWith(key, url) }]
      for (const sources of both) {
        const resolved = resolveConfig({ fileText: minimal, env: {}, ...sources })
        if (Result.isFailure(resolved)) {
          assert.notInclude(resolved.failure.message + JSON.stringify(resolved.failure), word)
        }
      }
    }))
  })

  it("do not appear in a printed configuration", () => {
    const { config } = accepted({ env: { ACME_SVC_DATABASE__URL: `postgres://u:${word}@h/d` } })
    assert.notInclude(JSON.stringify(config), word)
    assert.notInclude(String(config.database.url), word)
    assert.include(Redacted.value(config.database.url), word)
  })
})
