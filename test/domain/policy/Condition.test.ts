import { Result } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Condition, Verdict } from "../../../src/domain/policy/Condition.ts"
import { checksOf, evaluate, parseCondition, renderCondition } from "../../../src/domain/policy/Condition.ts"
import { fuzz } from "../../support/Fuzz.ts"

const parsed = (text: string): Condition =>
  Result.getOrThrowWith(parseCondition(text), ({ column, detail }) => new Error(`${text}: ${column} ${detail}`))

const verdicts: ReadonlyArray<Verdict> = ["pass", "fail", "undecided"]

describe("the syntax of conditions", () => {
  it.each([
    ["office", "office"],
    ["a and b", "(a and b)"],
    ["a or b and c", "(a or (b and c))"],
    ["a and b or c", "((a and b) or c)"],
    ["not a and b", "((not a) and b)"],
    ["not (a and b)", "(not (a and b))"],
    ["not not a", "(not (not a))"],
    ["a and b and c or d or e", "((((a and b) and c) or d) or e)"],
    ["a AND Not b oR c", "((a and (not b)) or c)"],
    ["(((a)))", "a"],
    [" a\tand\n( b or not-a ) ", "(a and (b or not-a))"],
    ["0-9 and -- or nota", "((0-9 and --) or nota)"]
  ])("reads %s as %s", (text, rendered) => {
    assert.strictEqual(renderCondition(parsed(text)), rendered)
  })

  it.each([
    ["", 1, "name of a check"],
    ["   ", 4, "name of a check"],
    ["and", 1, "name of a check"],
    ["a and", 6, "name of a check"],
    ["a or or b", 6, "name of a check"],
    ["not", 4, "name of a check"],
    ["a b", 3, "operator"],
    ["a (b)", 3, "operator"],
    ["a )", 3, "nothing to close"],
    ["(a or b", 8, "closing parenthesis"],
    ["()", 2, "name of a check"],
    ["a and Office", 7, "lower-case letters"],
    ["a and b_c", 7, "lower-case letters"],
    ["ö and a", 1, "lower-case letters"],
    ["a\u00a0and b", 1, "lower-case letters"],
    ["a && b", 3, "operator"],
    ["\u{1f600} a", 1, "lower-case letters"],
    ["a and \u{1f600}x b", 7, "lower-case letters"],
    [`${"(".repeat(200)}a${")".repeat(200)}`, 102, "nested"],
    [`${"not ".repeat(200)}a`, 405, "nested"]
  ])("refuses %j at column %i (%s)", (text, column, words) => {
    const fault = Result.getOrThrowWith(Result.flip(parseCondition(text)), () => new Error("was read"))
    assert.strictEqual(fault.column, column)
    assert.include(fault.detail, words)
  })

  it("accepts chains of operators of any length", () => {
    const long = parsed(Array.from({ length: 50_000 }, () => "a").join(" and "))
    assert.strictEqual(evaluate(long, () => "pass"), "pass")
    assert.deepStrictEqual(checksOf(long), ["a"])
  })

  it("lists each check once, in order", () => {
    assert.deepStrictEqual(checksOf(parsed("b and (a or not b) or c and a")), ["b", "a", "c"])
  })
})

const table: ReadonlyArray<readonly [string, Array<Verdict>]> = [
  // Each row has nine results. The first three are those with pass on the left and with pass, fail and undecided on the
  // right. The next three have fail on the left, and the last three have undecided on the left.
  ["and", ["pass", "fail", "undecided", "fail", "fail", "fail", "undecided", "fail", "undecided"]],
  ["or", ["pass", "pass", "pass", "pass", "fail", "undecided", "pass", "undecided", "undecided"]]
]

describe("Kleene's logic", () => {
  for (const [operator, results] of table) {
    it(`defines the operator ${operator}`, () => {
      const found = verdicts.flatMap((a) =>
        verdicts.map((b) => evaluate(parsed(`a ${operator} b`), (name) => name === "a" ? a : b))
      )
      assert.deepStrictEqual(found, results)
    })
  }

  it("defines the operator not", () => {
    assert.deepStrictEqual(
      verdicts.map((verdict) => evaluate(parsed("not a"), () => verdict)),
      ["fail", "pass", "undecided"]
    )
  })
})

/** Asks for the checks that a condition needs, one after another, until its verdict is known. */
const drive = (condition: Condition, verdictOf: (name: string) => Verdict) => {
  const known = new Map<string, Verdict>()
  for (;;) {
    const verdict = evaluate(condition, (name) => known.get(name))
    if (typeof verdict === "string") return { verdict, asked: [...known.keys()] }
    assert.isFalse(known.has(verdict.needs), "asked twice")
    known.set(verdict.needs, verdictOf(verdict.needs))
  }
}

describe("the order of evaluation", () => {
  it.each(
    [
      ["a and b", { a: "fail" }, "fail", ["a"]],
      ["a or b", { a: "pass" }, "pass", ["a"]],
      ["a and b", { a: "undecided", b: "fail" }, "fail", ["a", "b"]],
      ["a or b", { a: "undecided", b: "fail" }, "undecided", ["a", "b"]],
      ["(a and b) or c", { a: "fail", c: "pass" }, "pass", ["a", "c"]],
      ["not (a or b) and c", { a: "pass" }, "fail", ["a"]],
      ["a and a", { a: "pass" }, "pass", ["a"]]
    ] as const
  )(
    "evaluates %s with %j to %s and asks for %j",
    (text, known: { readonly [name: string]: Verdict }, verdict, asked) => {
      assert.deepStrictEqual(drive(parsed(text), (name) => known[name] ?? assert.fail(`asked for ${name}`)), {
        verdict,
        asked: [...asked]
      })
    }
  )
})

const names = fc.constantFrom("a", "b", "c", "d-1", "e")
const conditions: fc.Arbitrary<Condition> = fc.letrec<{ tree: Condition }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, depthSize: "small" },
    names.map((name): Condition => ({ _tag: "Check", name })),
    tie("tree").map((of): Condition => ({ _tag: "Not", of })),
    fc.record({
      _tag: fc.constantFrom("And" as const, "Or" as const),
      of: fc.array(tie("tree"), { minLength: 2, maxLength: 4 })
    })
  )
})).tree

/** The verdict of a condition by its definition, which looks at every check. */
const reference = (condition: Condition, verdictOf: (name: string) => Verdict): Verdict => {
  if (condition._tag === "Check") return verdictOf(condition.name)
  const inner = (condition._tag === "Not" ? [condition.of] : condition.of).map((one) => reference(one, verdictOf))
  if (condition._tag === "Not") return inner[0] === "pass" ? "fail" : inner[0] === "fail" ? "pass" : "undecided"
  const [settling, other] = condition._tag === "And" ? ["fail", "pass"] as const : ["pass", "fail"] as const
  if (inner.includes(settling)) return settling
  return inner.includes("undecided") ? "undecided" : other
}

/** The checks for which an evaluation by the definition asks. */
const asks = (condition: Condition, verdictOf: (name: string) => Verdict): ReadonlyArray<string> => {
  if (condition._tag === "Check") return [condition.name]
  if (condition._tag === "Not") return asks(condition.of, verdictOf)
  const settling = condition._tag === "And" ? "fail" : "pass"
  const settled = condition.of.findIndex((operand) => reference(operand, verdictOf) === settling)
  const reached = settled < 0 ? condition.of : condition.of.slice(0, settled + 1)
  return reached.flatMap((operand) => asks(operand, verdictOf))
}

describe("any condition", () => {
  const valuations = fc.record(
    Object.fromEntries(["a", "b", "c", "d-1", "e"].map((name) => [name, fc.constantFrom(...verdicts)]))
  )

  it("can be written as a text that has the same meaning", () => {
    fc.assert(
      fc.property(conditions, (condition) => {
        const text = renderCondition(condition)
        assert.strictEqual(renderCondition(parsed(text)), text)
      }),
      fuzz(500)
    )
  })

  it("has the verdict that its definition gives", () => {
    fc.assert(
      fc.property(conditions, valuations, (condition, valuation) => {
        const verdictOf = (name: string): Verdict => valuation[name] ?? "fail"
        assert.strictEqual(drive(condition, verdictOf).verdict, reference(condition, verdictOf))
      }),
      fuzz(500)
    )
  })

  it("asks for the checks of an operator from left to right, until the result of the operator is known", () => {
    fc.assert(
      fc.property(conditions, valuations, (condition, valuation) => {
        const verdictOf = (name: string): Verdict => valuation[name] ?? "fail"
        assert.deepStrictEqual(drive(condition, verdictOf).asked, [...new Set(asks(condition, verdictOf))])
      }),
      fuzz(500)
    )
  })

  it("can be read from any text, or the error names a column of the text", () => {
    const words = fc.array(fc.constantFrom("a", "not", "and", "OR", "(", ")", " ", "\t", "x_y", "\u{1f600}", "é", "-"))
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), words.map((parts) => parts.join(" "))), (text) => {
        const read = parseCondition(text)
        if (Result.isSuccess(read)) return
        assert.isAtLeast(read.failure.column, 1)
        assert.isAtMost(read.failure.column, [...text].length + 1)
      }),
      fuzz(1000)
    )
  })
})
