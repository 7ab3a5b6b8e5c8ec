import { describe, it } from "@effect/vitest"
import { assert } from "vitest"
import { isCovered, isScoped, lostScope, namePattern, noScope, uncovered } from "../../src/domain/CredentialScope.ts"
import { DnsName } from "../../src/domain/Identifier.ts"

const name = (text: string) => DnsName.make(text, { disableChecks: true })

describe("the pattern of a credential", () => {
  it.each([
    ["host.corp.example", "host.corp.example", true],
    ["host.corp.example", "other.corp.example", false],
    ["host.corp.example", "a.host.corp.example", false],
    ["*.corp.example", "a.corp.example", true],
    ["*.corp.example", "a.b.corp.example", false],
    ["*.corp.example", "corp.example", false],
    ["*.corp.example", "acorp.example", false],
    ["*.corp.example", "*.corp.example", true],
    ["*.corp.example", "*.a.corp.example", false],
    ["**.corp.example", "a.corp.example", true],
    ["**.corp.example", "a.b.corp.example", true],
    ["**.corp.example", "corp.example", false],
    ["**.corp.example", "evilcorp.example", false],
    ["**.corp.example", "*.corp.example", true],
    ["**.corp.example", "*.b.corp.example", true],
    ["corp.example", "*.corp.example", false]
  ])("%s covers %s: %s", (pattern, text, expected) => {
    assert.strictEqual(isCovered(name(text), [pattern]), expected)
  })

  it.each([
    ["Host.Corp.Example", "host.corp.example"],
    [" *.corp.example ", "*.corp.example"],
    ["**.xn--mnchen-3ya.example", "**.xn--mnchen-3ya.example"]
  ])("%j is read as %s", (text, pattern) => assert.strictEqual(namePattern(text), pattern))

  it.each([
    "",
    "*",
    "**",
    "*.",
    "a.*.example",
    "*.*.example",
    "***.example",
    "**.**.example",
    "a*.example",
    "corp.example.",
    "münchen.example",
    "\u212aiosk.example",
    "10.0.0.1",
    "a b.example",
    `${"a".repeat(64)}.example`
  ])("%j is refused", (text) => assert.isUndefined(namePattern(text)))
})

describe("the scope of a credential", () => {
  it("covers wildcards only if it permits them", () => {
    const scope = { ...noScope, names: ["**.corp.example"] }
    const names = [name("a.corp.example"), name("*.corp.example")]
    assert.deepStrictEqual(uncovered(scope, names), [name("*.corp.example")])
    assert.deepStrictEqual(uncovered({ ...scope, wildcards: true }, names), [])
  })

  it("covers every name if it has no names", () => {
    assert.deepStrictEqual(uncovered({ ...noScope, wildcards: false }, [name("*.a.example")]), [])
  })

  it("covers no name if it is lost", () => {
    assert.deepStrictEqual(uncovered(lostScope, [name("a.example")]), [name("a.example")])
    assert.isTrue(isScoped(lostScope))
  })

  it("is a scope as soon as one member restricts something", () => {
    assert.isFalse(isScoped(noScope))
    assert.isFalse(isScoped({ ...noScope, prevalidated: false, wildcards: false }))
    assert.isTrue(isScoped({ ...noScope, expiresAt: 0 }))
  })
})
