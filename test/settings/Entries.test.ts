import { describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { assert } from "vitest"
import { assemble, merge } from "../../src/engine/config/Assemble.ts"
import type { Names } from "../../src/engine/config/Key.ts"
import { declaredKeys, entries, flag, nodeOf, text } from "../../src/engine/config/Key.ts"
import { readEnvironment, readFile } from "../../src/engine/config/Source.ts"
import { anyText } from "../../src/engine/config/ValueForm.ts"

const names = (inherits: boolean): Names => ({
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: () => undefined,
  ...(inherits ? { inheritsAs: "profile" } : {})
})

/** A section of a form that future sections may have: named rules that profiles may override. */
const filter = Schema.Struct({
  rule: entries(names(false), Schema.Struct({ says: text("deny", anyText, ""), warn: flag(false, "") }))
})
const Root = Schema.Struct({ filter, profiles: entries(names(true), Schema.Struct({ filter })) })
const root = nodeOf(Root.ast)

const fileText = `
[filter.rule.office]
says = "allow"
[filter.rule.at-home]
[profiles.web.filter.rule.office]
warn = true
[profiles.web.filter.rule.own]
[profiles.lab]
`

describe("tables of named entries inside a section", () => {
  const file = Result.getOrThrow(readFile(root, fileText))
  const environment = readEnvironment(root, { ACME_SVC_FILTER__RULE__AT_HOME__WARN: "TRUE" })

  it("are declared with <name> in place of the name", () => {
    assert.deepStrictEqual(declaredKeys(root).map(({ path }) => path.join(".")), [
      "filter.rule.<name>.says",
      "filter.rule.<name>.warn",
      "profiles.<name>.filter.rule.<name>.says",
      "profiles.<name>.filter.rule.<name>.warn"
    ])
  })

  it("are read from the file and the environment", () => {
    assert.deepStrictEqual(file.faults, [])
    assert.deepStrictEqual(environment.written.map(({ key, raw }) => [key, raw]), [
      ["filter.rule.at-home.warn", Result.succeed(true)]
    ])
  })

  it("are merged by entry and then by key, a layer over the previous layer and a profile over the process", () => {
    const { tree } = assemble(root, merge([file, environment]), new Set())
    const [home, office] = [{ says: "deny", warn: true }, { says: "allow", warn: false }]
    assert.deepStrictEqual(Schema.decodeUnknownSync(Root)(tree), {
      filter: { rule: { "at-home": home, office } },
      profiles: {
        lab: { filter: { rule: { "at-home": home, office } } },
        web: {
          filter: {
            rule: { "at-home": home, office: { says: "allow", warn: true }, own: { says: "deny", warn: false } }
          }
        }
      }
    })
  })
})
