import { describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { readFileSync } from "node:fs"
import { assert } from "vitest"
import { declaredKeys } from "../../src/engine/config/Key.ts"
import { variableOf } from "../../src/engine/config/KeyPath.ts"
import { maskedDatabaseUrl } from "../../src/settings/DatabaseUrl.ts"
import { renderExample, renderInitialConfig } from "../../src/settings/Example.ts"
import { renderReference } from "../../src/settings/Reference.ts"
import { table } from "../../src/settings/Table.ts"
import { accepted, valueAt } from "./Samples.ts"

const committed = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")
const example = renderExample()
const [words, flowing] = [new Set(example.split(/\s+/)), example.replaceAll("\n# ", " ")]
const uncommented = example.replace(/^#(?=\[|[a-z_]+ = )/gm, "")
const shown = declaredKeys(table).filter(({ path }) => path[0] !== "profiles" || path.length === 3)
/** Returns whether a key belongs to a named table outside the profiles. The file need not have such a table. */
const isOfEntry = ({ path }: (typeof shown)[number]) => path[0] !== "profiles" && path.includes("<name>")

describe("config.toml.example", () => {
  it("is what the table of keys generates", () => {
    assert.strictEqual(committed("config.toml.example"), renderExample())
  })

  it("loads unchanged with the default values", () => {
    const resolved = accepted({ fileText: renderExample() })
    assert.strictEqual(resolved.keysFromFile, 1)
    assert.deepStrictEqual(resolved.config, accepted({}).config)
  })

  it("has every key with its variable, and loads with the default values once the comment signs are removed", () => {
    const resolved = accepted({ fileText: uncommented })
    const defaults = accepted({})
    for (const { facts, path } of shown.filter((one) => !isOfEntry(one))) {
      const key = path.join(".").replace("<name>", "default")
      assert.strictEqual(resolved.sources.get(key), "file", key)
      assert.deepStrictEqual(valueAt(resolved, key), valueAt(defaults, key))
      assert.isTrue(words.has(variableOf(key.split("."))), key)
      assert.include(flowing, facts.doc)
    }
  })
})

describe("the named tables in config.toml.example", () => {
  it("show every key with its variable and meaning, and remain comments", () => {
    const entries = shown.filter(isOfEntry)
    assert.isAbove(entries.length, 10)
    for (const { facts, path } of entries) {
      assert.isTrue(words.has(variableOf(path)), path.join("."))
      assert.include(flowing, facts.doc)
      assert.include(uncommented, `\n# ${path.at(-1)} = `)
    }
  })
})

describe("the first configuration", () => {
  it("serves this machine, with a validation port that needs no root privileges", () => {
    const text = renderInitialConfig()
    const { config } = accepted({ fileText: text })
    assert.deepStrictEqual(config.profiles.map(({ enabled, name }) => [name, enabled]), [["default", true]])
    assert.strictEqual(config.server.bind_address, "127.0.0.1:3000")
    assert.strictEqual(config.server.base_url, "http://localhost:3000")
    assert.strictEqual(config.profiles[0]?.challenge.http_01.port, 5002)
    assert.isTrue(config.profiles[0]?.challenge.allow_loopback)
    assert.isFalse(accepted({}).config.challenge.allow_loopback, "but not by default")
    assert.deepInclude(config.admin, {
      enabled: true,
      bind_address: "127.0.0.1:3001",
      base_url: "http://localhost:3001"
    })
    assert.isFalse(accepted({}).config.admin.enabled, "but not by default")
    assert.match(text.replaceAll("\n# ", " "), /standard port is 80, and production needs it/)
  })

  it("contains the values that the caller chooses", () => {
    const text = renderInitialConfig({
      profile: "web",
      bind_address: "[::]:443",
      base_url: "https://pki.example.org",
      http_01_port: 80
    })
    const { config } = accepted({ fileText: text })
    assert.strictEqual(config.profiles[0]?.name, "web")
    assert.strictEqual(config.server.base_url, "https://pki.example.org")
    assert.strictEqual(config.challenge.http_01.port, 80)
  })
})

describe("docs/reference/configuration.md", () => {
  const doc = committed("docs/reference/configuration.md")

  it("has the reference that the table of keys generates", () => {
    assert.include(doc, renderReference())
    for (const { path } of shown) assert.include(doc, `| ${path.join(".").replaceAll("<", "\\<")} |`)
  })

  it("names every section that a profile may have", () => {
    const { config } = accepted({ fileText: "[profiles.web]\n" })
    const [, named = ""] = /own values for the sections (.*?), as/s.exec(doc) ?? []
    assert.sameMembers(
      [...named.matchAll(/`(\w+)`/g)].map(([, section]) => section),
      Object.keys(config.profiles[0] ?? {}).filter((key) => key in config)
    )
  })

  it("shows files that load", () => {
    const files = [...doc.matchAll(/```toml\n([^`]+)```/g)].map(([, text]) => text)
    assert.isAbove(files.length, 1)
    for (const fileText of files) accepted({ fileText })
  })
})

describe("maskedDatabaseUrl", () => {
  const masked = (url: string) => maskedDatabaseUrl(Redacted.make(url))

  it("hides the password and nothing else", () => {
    assert.strictEqual(
      masked("postgres://acme:s%40d@db:5432/acme?sslmode=require"),
      "postgres://acme:***@db:5432/acme?sslmode=require"
    )
    assert.strictEqual(
      masked("postgres://acme:s%40d@a:5432,[::1]:5433,c/acme?target_session_attrs=primary"),
      "postgres://acme:***@a:5432,[::1]:5433,c/acme?target_session_attrs=primary"
    )
    assert.strictEqual(masked("postgresql://acme@db/acme"), "postgresql://acme@db/acme")
    assert.strictEqual(masked("sqlite:///var/lib/acme.db"), "sqlite:///var/lib/acme.db")
  })

  it("hides a URL that it cannot parse", () => {
    assert.strictEqual(masked("mysql://u:s@h/d"), "***")
    assert.strictEqual(masked("postgres://u:s@h:x/d"), "***")
    assert.strictEqual(masked("postgres://u:s@h,i:x/d"), "***")
    assert.strictEqual(masked("postgres://h/d?password=s&application_name=a#s"), "postgres://h/d?application_name=a")
  })
})
