import { Result } from "effect"
import { assert, describe, it } from "vitest"
import type { Verdict } from "../../../src/domain/policy/Condition.ts"
import { parseCondition } from "../../../src/domain/policy/Condition.ts"
import type { Rule } from "../../../src/domain/policy/Stage.ts"
import { judge } from "../../../src/domain/policy/Stage.ts"

/** Reads `allow x` or `deny x`, with or without `warn` before it. */
const rule = (text: string, index: number): Rule => {
  const [, warn, then, when = ""] = /^(warn )?(allow|deny) (.+)$/.exec(text) ?? []
  return {
    name: `r${index + 1}`,
    when: Result.getOrThrow(parseCondition(when)),
    then: then === "allow" ? "allow" : "deny",
    mode: warn === undefined ? "enforce" : "warn",
    message: ""
  }
}

const judged = (texts: ReadonlyArray<string>, otherwise: "allow" | "deny") => {
  const verdicts: { readonly [name: string]: Verdict } = { yes: "pass", no: "fail", maybe: "undecided" }
  const found = judge(texts.map(rule), otherwise, (name) => verdicts[name])
  return "needs" in found ? found : { answer: found.answer, rule: found.rule?.name, warned: found.warned }
}

const answer = (given: "allow" | "deny" | "undecided", by?: string, warned: ReadonlyArray<string> = []) => ({
  answer: given,
  rule: by,
  warned
})

describe("a stage", () => {
  it.each(
    [
      [["allow yes"], "deny", answer("allow", "r1")],
      [["deny yes"], "allow", answer("deny", "r1")],
      [["deny no", "allow yes", "deny yes"], "deny", answer("allow", "r2")],
      [["allow no"], "deny", answer("deny")],
      [["deny no"], "allow", answer("allow")],
      // With mode warn.
      [["warn deny yes"], "allow", answer("allow", undefined, ["r1"])],
      [["warn allow yes", "warn deny no"], "deny", answer("deny", undefined, ["r1"])],
      [["warn deny yes", "allow yes", "warn deny yes"], "deny", answer("allow", "r2", ["r1"])],
      [["warn deny maybe", "allow yes"], "deny", answer("allow", "r2")],
      // With undecided checks.
      [["deny maybe", "deny yes"], "allow", answer("deny", "r2")],
      [["deny maybe", "allow yes"], "allow", answer("undecided", "r1")],
      [["allow maybe"], "deny", answer("undecided", "r1")],
      [["allow maybe"], "allow", answer("allow")],
      [["allow yes", "deny maybe"], "deny", answer("allow", "r1")],
      [["allow maybe", "deny maybe"], "allow", answer("undecided", "r2")],
      [["warn allow yes", "deny maybe"], "allow", answer("undecided", "r2", ["r1"])]
    ] as const
  )("evaluates the rules %j with the default %s to %j", (texts, otherwise, expected) => {
    assert.deepStrictEqual(judged(texts, otherwise), expected)
  })

  it("stops at the first check whose result is unknown, and asks for no check after the rule that decides", () => {
    assert.deepStrictEqual(
      judged(["allow no and other", "allow yes or other", "deny other"], "deny"),
      answer("allow", "r2")
    )
    assert.deepStrictEqual(judged(["deny no", "allow other"], "deny"), { needs: "other" })
  })
})
