import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { fields } from "../../../src/domain/words/EventField.ts"
import { events } from "../../../src/domain/words/Log.ts"
import type { Declaration } from "../../../src/engine/telemetry/Declaration.ts"
import { engineEvents, engineFields } from "../../../src/engine/telemetry/EngineLog.ts"
import { own, shownByDefault, specified } from "./specified.ts"

describe("the vocabulary of the log", () => {
  const src = fileURLToPath(new URL("../../../src", import.meta.url))
  const declarations = Object.entries(events)
  const files = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))

  /** Every string in the code; comments do not count. */
  const textsOf = (file: string): ReadonlyArray<string> => {
    const found: Array<string> = []
    const visit = (node: ts.Node): void => {
      if (ts.isStringLiteral(node)) found.push(node.text)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, readFileSync(join(src, file), "utf8"), ts.ScriptTarget.Latest))
    return found
  }

  it("declares only events that the code emits", () => {
    const said = new Set(files.flatMap(textsOf))
    assert.deepStrictEqual(Object.keys(events).filter((event) => !said.has(event)), [])
  })

  it("declares the events and fields of the engine, and no others, in the engine", () => {
    const said = new Set(files.filter((file) => file.startsWith(join("engine", ""))).flatMap(textsOf))
    assert.deepStrictEqual(
      Object.keys(events).filter((event) => said.has(event)).sort(),
      Object.keys(engineEvents).sort()
    )
    const used = Object.values<Declaration>(engineEvents).flatMap((event) => event.fields)
    assert.deepStrictEqual([...new Set(used)].sort(), Object.keys(engineFields).sort())
  })

  it("declares only events that a test mentions", () => {
    const tests = fileURLToPath(new URL("../..", import.meta.url))
    const spoken = readdirSync(tests, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith("specified.ts"))
      .flatMap((name) => readFileSync(join(tests, name), "utf8").match(/\b[a-z0-9]+(?:_[a-z0-9]+)+\b/g) ?? [])
    const known = new Set(spoken)
    assert.deepStrictEqual(Object.keys(events).filter((event) => !known.has(event)), [])
  })

  it("contains the events that the specification lists, the events in the list `own`, and no others", () => {
    const declared = Object.keys(events)
    assert.sameMembers(declared.filter((event) => !specified.has(event)), [...own])
    assert.deepStrictEqual([...specified].filter((event) => !(event in events)), [])
  })

  it("is used only through emit, because no code logs or prints in any other way", () => {
    const offending = files.filter((file) => file !== "main.ts" && !file.startsWith(join("surfaces", "cli"))).flatMap((
      file
    ) =>
      (readFileSync(join(src, file), "utf8").match(/\bEffect\.log\w*\(|\bconsole\.\w+\(/g) ?? []).map((call) =>
        `${file}: ${call}`
      )
    )
    assert.deepStrictEqual(offending, [])
  })

  it("writes events and fields in lower-case words, and begins each event with a word from a fixed list", () => {
    const first = new Set(
      ("account admin audit authz campaign certificate challenge csr db eab filter http ipam job jws key leaf local metrics nonce notify order profile proxy publish renewal "
        + "request script server signer span tls trace upstream worker").split(" ")
    )
    for (const name of [...Object.keys(events), ...Object.keys(fields)]) assert.match(name, /^[a-z][a-z0-9_]*$/)
    assert.deepStrictEqual(Object.keys(events).filter((name) => !first.has(name.split("_")[0] ?? "")), [])
  })

  it("has levels that fit the outcomes", () => {
    for (const [event, { level, outcome }] of declarations) {
      if (level === "error") assert.strictEqual(outcome, "failure", event)
      if (outcome === "failure") assert.notStrictEqual(level, "info", event)
      if (outcome === "advisory") assert.strictEqual(level, "warn", event)
      assert.strictEqual(outcome === "progress", /_(?:started|requested)$/.test(event), event)
    }
  })

  it("gives frequent failures the level debug, and gives work that succeeded in the end the outcome advisory", () => {
    const of = (outcome: string, level: string) =>
      declarations.filter(([, one]) => one.outcome === outcome && one.level === level).map(([event]) => event)
    assert.sameMembers(of("failure", "debug"), [
      "audit_reverse_dns_failed",
      "audit_reverse_dns_timeout",
      "tls_handshake_failed",
      "tls_handshake_timeout"
    ])
    const advisories = ["filter_rule_warned", "profile_unmounted", "db_job_leases_reclaimed", "job_lease_lost"]
    assert.includeMembers(of("advisory", "warn"), advisories)
  })

  it("shows by default every event that the specification does not list as debug", () => {
    const hidden = declarations.filter(([event, { level }]) => level === "debug" && shownByDefault.has(event))
    assert.deepStrictEqual(hidden.map(([event]) => event), [])
  })

  it("has no field with the name of a member that is in every record", () => {
    const reserved = ["timestamp", "level", "target", "span", "event", "outcome", "message"]
    assert.deepStrictEqual(reserved.filter((name) => name in fields), [])
  })
})
