import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { createToken } from "../../../src/surfaces/operator/acts/TokenActs.ts"
import type { Field } from "../../../src/surfaces/operator/Field.ts"
import { secret } from "../../../src/surfaces/operator/Field.ts"
import { judged, membersOfBody, membersOfTexts } from "../../../src/surfaces/operator/MemberInput.ts"
import { mail, username } from "../../../src/surfaces/operator/TextFields.ts"

/* The members about operators and tokens, and how each spelling judges them. */

const message = (field: Field<unknown>, written: Parameters<Field<unknown>["read"]>[0]): string =>
  Result.match(judged(field, "it", written), {
    onFailure: (error) => "detail" in error ? String(error.detail) : error._tag,
    onSuccess: () => "taken"
  })

const addressOf = (length: number): string => {
  const labels = `${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(60)}`
  return `${"a".repeat(length - labels.length - 5)}@${labels}.org`
}

describe("a member", () => {
  it("has at most 254 characters if it is a mail address", () => {
    const field = mail("An address.")
    assert.strictEqual(field.read(" olga@example.org "), "olga@example.org")
    assert.strictEqual(field.read(addressOf(254)), addressOf(254))
    for (const odd of ["", "olga", "a@b, c@d", "<olga@example.org>", "a\u202e@example.org", addressOf(255)]) {
      assert.isUndefined(field.read(odd), odd)
    }
  })

  it("is accepted in every notation if it names an operator", () => {
    const field = username("A name.")
    assert.strictEqual(field.read(" OLGA "), "olga")
    assert.strictEqual(field.read("no name"), "no name", "which is found nowhere")
    for (const odd of ["", " ", "a\nb", "x".repeat(1001)]) assert.isUndefined(field.read(odd), odd)
  })

  it("is kept within limits if it belongs to a token", () => {
    const { allowedAddresses, expiresInDays, name } = createToken.input
    assert.strictEqual(name.read(" backup "), "backup")
    assert.strictEqual(name.read("\u{1f511}".repeat(64)), "\u{1f511}".repeat(64))
    for (const odd of ["", " ", "a\nb", "a\u202eb", "a".repeat(65)]) assert.isUndefined(name.read(odd), odd)
    assert.deepStrictEqual([0, 1, 366, 367].map((days) => expiresInDays.read(days)), [undefined, 1, 366, undefined])
    assert.deepStrictEqual(allowedAddresses.read([" 192.0.2.0/24 ", "::1"]), ["192.0.2.0/24", "::1"])
    assert.strictEqual(
      message(allowedAddresses, ["::1", "192.0.2.0/33"]),
      "it takes addresses and ranges of addresses; the one at 2 is none."
    )
    const many = Array.from({ length: 33 }, () => "::1")
    assert.strictEqual(message(allowedAddresses, many), "it takes at most 32 addresses and ranges of addresses.")
  })

  it("is taken exactly as it is if it is a secret", () => {
    const fields = { contact: mail("An address."), password: secret("A password.") }
    assert.strictEqual(fields.password.read("  two blanks  "), "  two blanks  ")
    const form = new URLSearchParams([["password", "  "], ["contact", "  "]])
    assert.deepStrictEqual(Result.getOrThrow(membersOfTexts(fields, form, "field")), {}, "a form sends every field")
    const body = { password: "  ", contact: " " }
    const optional = { ...fields, contact: { ...fields.contact, isNeeded: false } }
    assert.deepStrictEqual(Result.getOrThrow(membersOfBody(optional, body)), { password: "  " })
  })
})
