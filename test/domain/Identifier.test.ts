import { describe, it } from "@effect/vitest"
import type { Result } from "effect"
import { Schema } from "effect"
import * as fc from "fast-check"
import { assert } from "vitest"
import { baseName, DnsName, isWildcard, normalizeIdentifier, reverseName } from "../../src/domain/Identifier.ts"
import { prop } from "../support/Property.ts"

const label = (length: number) => "a".repeat(length)
const nameOf = (octets: number) => `${`${label(49)}.`.repeat(Math.floor((octets - 1) / 50))}`.padEnd(octets, "b")

const verdict = (value: string, dns01Enabled = false) => {
  const result = normalizeIdentifier(value, { dns01Enabled })
  return result._tag === "Success" ? result.success : result.failure.kind
}
const accepted = (value: string, expected = value) => assert.strictEqual(verdict(value, true), expected)

const normalized = (value: string): DnsName => {
  const result = normalizeIdentifier(value, { dns01Enabled: true })
  return result._tag === "Success" ? result.success : assert.fail(`refused ${value}: ${result.failure.detail}`)
}

describe("the normalisation of upper case and of one trailing dot", () => {
  for (const spelling of ["a.example", "A.Example", "a.example.", "A.EXAMPLE."]) {
    it(spelling, () => accepted(spelling, "a.example"))
  }
  it("ignores the trailing dot when it counts the 253 octets", () => {
    assert.strictEqual(verdict(`${nameOf(253)}.`), nameOf(253))
  })
  it("refuses the Kelvin sign, which is not a k", () => assert.strictEqual(verdict("\u212a.example"), "malformed"))
})

describe("a name that is refused as malformed", () => {
  const rows: Record<string, ReadonlyArray<string>> = {
    "leading dot": [".example", "*..example", ".*.example"],
    "..": ["a..example", "a.example..", ".."],
    "empty": ["", "."],
    "64-octet label": [`${label(64)}.example`],
    "254 octets": [nameOf(254), `*.${nameOf(252)}`],
    "hyphen at an end": ["-a.example", "a-.example", "a.-", "-"],
    "ab--cd": ["ab--cd.example", "ab--.example", "x.ab--cd"],
    "bad xn--": [
      "xn--.example",
      "xn--a.example",
      "xn---.example",
      "xn--abc-.example",
      "xn--99999999.example",
      "xn--ls8h.example", // an emoji, which UTS 46 allows and IDNA2008 does not
      "xn--1ch.example", // the sign U+2260
      "xn--zca-.example",
      "xn--bcher-kva_.example"
    ],
    "non-ASCII": ["bücher.example", "a.例え", "a\u0301.example", "\ufeffa.example", "a\u00a0.example"],
    "full-width": ["\uff41.example", "a\u3002example"],
    "U+0000": ["a\0.example", "a.example\0"],
    "space": [" a.example", "a.example ", "a b.example", "a.example\n", "a\t.example"],
    "%00": ["a%00.example"],
    ":80": ["a.example:80"],
    "@": ["u@a.example"],
    "/": ["a.example/", "http://a.example"],
    "#": ["a.example#b"],
    "[::1]": ["[::1]", "::1"],
    "*": ["*"],
    "*.": ["*."],
    "a*.x": ["a*.x", "*a.x", "a.*.x", "a.*"],
    "*.*.x": ["*.*.x"]
  }
  for (const [row, values] of Object.entries(rows)) {
    it(row, () => {
      for (const value of values) assert.strictEqual(verdict(value), "malformed", JSON.stringify(value))
    })
  }
  it("is too long for its TXT record while dns-01 is enabled", () => {
    assert.strictEqual(verdict(nameOf(238), true), "malformed")
    assert.strictEqual(verdict(nameOf(238), false), nameOf(238))
    assert.strictEqual(verdict(nameOf(237), true), nameOf(237))
    assert.strictEqual(verdict(`*.${nameOf(237)}`, true), `*.${nameOf(237)}`)
    assert.strictEqual(verdict(`*.${nameOf(238)}`, true), "malformed")
  })
  it("violates a context rule of RFC 5892", () => {
    for (
      const [unicode, ascii] of [
        ["a middle dot not between two l", "xn--ab-0ea"],
        ["a geresh without a Hebrew letter before it", "xn--a-0jc"],
        ["a katakana middle dot alone", "xn--vek"],
        ["a zero width joiner without a virama", "xn--ab-m1t"]
      ] as const
    ) assert.strictEqual(verdict(`${ascii}.example`), "malformed", unicode)
    accepted("xn--ll-0ea.example") // l, middle dot, l
  })
  it("contains a letter that RFC 5892 disallows individually", () => {
    for (const ascii of ["xn--ypd", "xn--ngba5e", "xn--a-s6t", "xn--37j", "xn--a-zrn", "xn--lsb9g"]) {
      assert.strictEqual(verdict(`${ascii}.example`), "malformed", ascii)
    }
  })
  it("has a right-to-left label that begins with a digit", () => {
    assert.strictEqual(verdict("xn--1-0hc.example"), "malformed")
  })
})

describe("a name that is refused as rejectedIdentifier", () => {
  for (
    const value of [
      "10.0.0.5",
      "2130706433",
      "0x7f.1",
      "127.1",
      "127.1.",
      "0x7f000001",
      "0X7F000001",
      "0x",
      "a.0x7f",
      "a.b.123",
      "*.1",
      "*.10.0.0.5",
      "1.2.3.4.5"
    ]
  ) it(value, () => assert.strictEqual(verdict(value), "rejectedIdentifier"))
})

describe("a name that is accepted, because only the filter applies a policy", () => {
  for (
    const value of [
      "localhost",
      "a",
      "host.corp",
      "nas.home.arpa",
      "*.co.uk",
      "*.x",
      "*.corp",
      "_dmarc.a.example",
      "a_b.example",
      "_.example",
      "1.2.3.in-addr.arpa",
      "123.example",
      "0x7f.example",
      "a.0xg",
      "a--b.example",
      "a-b.example",
      `${label(63)}.example`,
      "xn--bcher-kva.example",
      "xn--zca.example",
      "xn--r8jz45g.xn--zckzah",
      "xn--mgbh0fb.xn--kgbechtv",
      "xn--4dbrk0ce.example"
    ]
  ) it(value, () => accepted(value))
  it("has 253 octets", () => assert.strictEqual(verdict(nameOf(253)), nameOf(253)))
})

it("a refusal says what is wrong, and quotes at most one character and never a control character", () => {
  const said = (value: string) => {
    const result = normalizeIdentifier(value, { dns01Enabled: true })
    return result._tag === "Failure" ? result.failure.detail : "accepted"
  }
  const holds = (what: string) => `The name holds ${what}, which no DNS name has.`
  assert.strictEqual(said("<script>"), holds("the character <"))
  assert.strictEqual(said("https://a.example/"), holds("the character :"))
  assert.strictEqual(said("a b.example"), holds("a space"))
  assert.strictEqual(said("\u001b[31m"), holds("the character U+001B"))
  assert.strictEqual(
    said("b\u00fccher.example"),
    "The name holds the character U+00FC, which is not ASCII; write it with xn-- labels."
  )
  assert.strictEqual(said("a.*.example"), "The name has an asterisk that is not its whole first label.")
  assert.strictEqual(said("*a.example"), said("a.*.example"))
  assert.strictEqual(said("a-.example"), "A label of the name begins or ends with a hyphen.")
})

it("a wildcard is recognised, and its base name is the name without the asterisk label", () => {
  const [plain, wildcard] = [normalized("A.example."), normalized("*.A.Example")]
  assert.deepStrictEqual([isWildcard(plain), baseName(plain)], [false, plain])
  assert.deepStrictEqual([isWildcard(wildcard), baseName(wildcard)], [true, plain])
})

it("a reversed name is the name read backwards", () => {
  assert.strictEqual(reverseName(normalized("*.ab.example")), "elpmaxe.ba.*")
})

// Most of these texts are valid names, and many differ only a little from a valid name.
const names = fc.array(
  fc.oneof(
    fc.stringMatching(/^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,8}$/),
    fc.constantFrom("*", "", "xn--zca", "XN--Bcher-Kva", "xn--ls8h", "0x1f", "12", "ü", "ab--c"),
    fc.string({ maxLength: 3 })
  ),
  { maxLength: 6 }
).map((labels) => labels.join("."))
const same = (one: Result.Result<DnsName, unknown>, other: Result.Result<DnsName, unknown>) =>
  one._tag === other._tag && (one._tag === "Failure" || other._tag === "Failure" || one.success === other.success)

prop(
  "a normalised name does not change when it is normalised again, and the schema accepts it",
  [names, fc.boolean()],
  ([value, on]) => {
    const once = normalizeIdentifier(value, { dns01Enabled: on })
    return once._tag === "Failure" ||
      (same(once, normalizeIdentifier(once.success, { dns01Enabled: on })) && Schema.is(DnsName)(once.success))
  }
)

prop("different spellings of one name are normalised to the same name", [names], ([value]) => {
  const once = normalizeIdentifier(value, { dns01Enabled: true })
  const spell = (spelling: string) => same(once, normalizeIdentifier(spelling, { dns01Enabled: true }))
  const ascii = /^[\0-\u007f]*$/.test(value)
  return !ascii || (spell(value.toUpperCase()) && spell(value.toLowerCase()) &&
    (value === "" || value.endsWith(".") || spell(`${value}.`)))
})

prop("reversing twice gives the name", [names], ([value]) => {
  const once = normalizeIdentifier(value, { dns01Enabled: true })
  return once._tag === "Failure" || Array.from(reverseName(once.success)).toReversed().join("") === once.success
})
