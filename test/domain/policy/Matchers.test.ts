import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Compiled } from "../../../src/domain/policy/Glob.ts"
import { labelGlob, pathGlob, textGlob } from "../../../src/domain/policy/Glob.ts"
import { wholeRegex } from "../../../src/domain/policy/Regex.ts"
import { fuzz } from "../../support/Fuzz.ts"

const matches = (compiled: Compiled, text: string): boolean =>
  compiled.fault === undefined ? compiled.matches(text) : assert.fail(compiled.fault)

type Row = readonly [pattern: string, matching: ReadonlyArray<string>, other: ReadonlyArray<string>]

const rows: ReadonlyArray<readonly [string, (pattern: string) => Compiled, ReadonlyArray<Row>]> = [
  ["a label glob", labelGlob, [
    ["*.example.com", ["a.example.com", "A.Example.COM", "*.example.com"], [
      "example.com",
      "a.b.example.com",
      ".example.com",
      "a.example.com.",
      "aexample.com"
    ]],
    ["www.example.com", ["www.example.com", "WWW.example.com"], ["wwwxexample.com", "www.example.com.evil"]],
    ["*.*.example", ["a.b.example"], ["a.example", "a.b.c.example"]],
    ["web.*.example", ["web.a.example"], ["web.example", "web.a.b.example", "xweb.a.example"]],
    ["*", ["localhost", "*"], ["a.b", ""]],
    ["a+.example", ["a+.example"], ["aa.example"]]
  ]],
  ["a path glob", pathGlob, [
    ["/crl", ["/crl"], ["/crl/", "/CRL", "/crlx", "/x/crl"]],
    ["/acct/*", ["/acct/1", "/acct/a*b"], ["/acct/", "/acct", "/acct/1/orders"]],
    ["/*/x*z", ["/a/xyz", "/a/xzz"], ["/a/xz", "//xyz", "/a/x/z"]],
    ["/a*b*c", ["/a1b2c", "/abbbcc"], ["/abc", "/a1bc", "/a1b2c3"]]
  ]],
  ["a text glob", textGlob, [
    ["team-*", ["team-a", "TEAM-", "team-a b"], ["a team-x", "team"]],
    ["*web*", ["web", "my WEB server"], ["wb"]],
    ["a*a", ["aa", "aba"], ["a"]],
    ["printers", ["Printers"], ["printers "]]
  ]],
  ["a regular expression", wholeRegex, [
    ["host[0-9]+\\.example", ["host1.example", "HOST22.Example"], [
      "xhost1.example",
      "host1.example.evil",
      "host.example"
    ]],
    ["a|ab", ["a", "ab"], ["abc", "xa"]],
    ["a)|(?:b", [], []],
    ["^a$", ["a", "A"], ["a\n", "ba"]]
  ]]
]

describe("matching", () => {
  for (const [what, compile, cases] of rows) {
    it.each(cases.filter(([, matching, other]) => matching.length + other.length > 0))(
      `tells which texts match ${what} like %s`,
      (pattern, matching, other) => {
        assert.deepStrictEqual(matching.filter((text) => !matches(compile(pattern), text)), [])
        assert.deepStrictEqual(other.filter((text) => matches(compile(pattern), text)), [])
      }
    )
  }

  it.each(["", "a..b", ".a", "a.", "w*.example", "**.example", " a.example", "a.example\t"])(
    "refuses %j as a label glob",
    (pattern) => assert.isString(labelGlob(pattern).fault)
  )

  it.each(["", "crl", "*", "/a b", "/a\n"])(
    "refuses %j as a path glob",
    (pattern) => assert.isString(pathGlob(pattern).fault)
  )

  it("refuses the empty text as a text glob", () => assert.isString(textGlob("").fault))

  it.each([
    "(?=a)b",
    "(?!a)b",
    "(?<=a)b",
    "(?<!a)b",
    "(a)\\1",
    "(?P=n)",
    "[",
    "a{2,1}",
    "a)|(?:b",
    "((a{1000}){1000}){1000}"
  ])(
    "refuses the regular expression %s, which this engine does not support",
    (pattern) => assert.include(wholeRegex(pattern).fault ?? "", "look-around")
  )
})

/** A match by its definition, which tries every text that a star could stand for. */
const slow = (pattern: string, text: string, star: RegExp): boolean =>
  new RegExp(
    `^${
      [...pattern].map((one) => one === "*" ? star.source : one.replaceAll(/[.*+?^${}()|[\]\\/-]/g, "\\$&")).join("")
    }$`,
    "is"
  ).test(text)

describe("globs", () => {
  const piece = fc.constantFrom("a", "b", "ab", "*", "/")
  const texts = (...extra: ReadonlyArray<string>) =>
    fc.array(fc.constantFrom("a", "b", "ab", ...extra), { maxLength: 8 }).map((parts) => parts.join(""))

  it("match exactly the texts that an exhaustive search finds", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 7 }), texts("/"), (pieces, text) => {
        const pattern = `/${pieces.join("")}`
        assert.strictEqual(matches(pathGlob(pattern), `/${text}`), slow(pattern, `/${text}`, /[^/]+/))
        if (pieces.length === 0) return
        const anywhere = pieces.join("")
        assert.strictEqual(matches(textGlob(anywhere), text), slow(anywhere, text, /.*/))
      }),
      fuzz(2000)
    )
  })

  it("are decided for texts on which a backtracking engine would not end, and so are regular expressions", () => {
    const long = `${"a".repeat(50_000)}!`
    assert.isFalse(matches(wholeRegex("(a*)*b"), long))
    assert.isFalse(matches(textGlob(`${"*a".repeat(50)}*b`), long))
    assert.isFalse(matches(pathGlob(`/${"*a".repeat(50)}*b`), `/${long}`))
  })
})
