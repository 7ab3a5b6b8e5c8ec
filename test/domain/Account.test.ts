import { it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { checkContacts, mailAddressesOf } from "../../src/domain/Account.ts"
import { problemOf } from "../../src/domain/Problem.ts"
import { prop } from "../support/Property.ts"

/** Returns `ok`, or the type of the problem. */
const verdict = (...contacts: ReadonlyArray<string>): string =>
  Result.match(checkContacts(contacts), {
    onFailure: (error) => problemOf(error).type?.split(":").at(-1) ?? "none",
    onSuccess: () => "ok"
  })

const atom = fc.stringMatching(/^[a-z0-9!#$&'*+/=^_`{|}~-]{1,20}$/)
const domain = fc.array(fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/), { minLength: 2, maxLength: 4 })
  .map((labels) => labels.join("."))
const mailbox = fc.tuple(fc.array(atom, { minLength: 1, maxLength: 3 }), domain)
  .filter(([[first = ""]]) => !first.startsWith("//"))
  .map(([atoms, host]) => `${atoms.join(".")}@${host}`)
const contact = mailbox.map((address) => `mailto:${address}`)

/**
 * Characters that do not belong in an address, or that would split one address into two, both as they are and
 * percent-encoded.
 */
const separators = [
  ",",
  "?",
  ";",
  "@",
  "<",
  ">",
  "(",
  ")",
  "[",
  "]",
  "\\",
  ":",
  "\"",
  " ",
  "\t",
  "\r\n",
  "\u0000",
  "\u0085",
  "\u202e",
  "\u200b",
  "\u2028",
  "\u{e0041}"
]
const separator = fc.constantFrom(...separators, ...separators.map(encodeURIComponent))

describe("contacts", () => {
  prop("are stored as they were sent and in the same order, if there are at most 32 and each is one plain address", [
    fc.array(contact, { maxLength: 32 })
  ], ([contacts]) => {
    assert.deepStrictEqual(checkContacts(contacts), Result.succeed(contacts))
  })

  prop("are refused if there are more than 32", [fc.array(contact, { minLength: 33, maxLength: 40 })], ([contacts]) => {
    assert.strictEqual(verdict(...contacts), "invalidContact")
  })

  prop("are refused if they contain anything but one address, encoded or not", [mailbox, separator, fc.nat()], (
    [address, between, at]
  ) => {
    const index = at % (address.length + 1)
    // Blanks around the address are removed.
    fc.pre(between !== " " || (index > 0 && index < address.length))
    assert.strictEqual(verdict(`mailto:${address.slice(0, index)}${between}${address.slice(index)}`), "invalidContact")
  })

  prop("are refused if one of them, anywhere in the list, has header fields or a second address", [
    fc.array(contact, { maxLength: 5 }),
    fc.array(contact, { maxLength: 5 }),
    mailbox,
    fc.constantFrom(
      "?subject=x",
      "?",
      "?cc=b@example.com",
      ",b@example.com",
      ", b@example.com",
      "%2Cb@example.com",
      "%0d%0ato:b"
    )
  ], ([before, after, address, more]) => {
    assert.strictEqual(verdict(...before, `mailto:${address}${more}`, ...after), "invalidContact")
  })

  prop("are refused as unsupported if they have any scheme other than mailto", [
    mailbox,
    fc.constantFrom(
      "",
      "tel:",
      "http://",
      "https://",
      "mailto",
      "xmailto:",
      "\nmailto:",
      "mailto :",
      "MAIL:",
      "sms:",
      "//"
    )
  ], ([address, scheme]) => {
    assert.strictEqual(verdict(`${scheme}${address}`), "unsupportedContact")
  })

  it("lose only the blanks around the scheme and the address", () => {
    const blank = (given: string) => Result.getOrElse(checkContacts([given]), () => [])
    const plain = "mailto:ops@example.org"
    for (
      const given of ["mailto: ops@example.org", "mailto:ops@example.org  ", `  ${plain}`, ` mailto:  ops@example.org `]
    ) {
      assert.deepStrictEqual(blank(given), [plain], given)
    }
    for (
      const given of [
        `${plain}\r\n`,
        "mailto:\tops@example.org",
        "mailto:\u00a0ops@example.org",
        "mailto:%20ops@example.org"
      ]
    ) {
      assert.strictEqual(verdict(given), "invalidContact", given)
    }
  })

  it("must have a local part and a domain, and may have the scheme in any case", () => {
    for (const text of ["mailto:", "mailto:a", "mailto:@b", "mailto:a@", "mailto:@", "mailto:%40", "mailto:a%@b"]) {
      assert.strictEqual(verdict(text), "invalidContact", text)
    }
    for (const text of ["MAILTO:a@b.example", "MailTo:a@b.example", "mailto:ä@exämple.com", "mailto:a+b@c.example"]) {
      assert.strictEqual(verdict(text), "ok", text)
    }
  })

  it("must have a dot in the domain, because a domain without a dot is local to the mail host", () => {
    const own = [
      "admin@localhost",
      "root@mail",
      "root@mail.",
      "a@x.localhost",
      "a@LOCALHOST.LocalDomain",
      "a@.b",
      "a@b..c"
    ]
    for (const address of own) {
      for (const text of [`mailto:${address}`, `mailto:${encodeURIComponent(address)}`]) {
        assert.strictEqual(verdict(text), "invalidContact", text)
        assert.deepStrictEqual(mailAddressesOf([text, "mailto:a@b.example"]), ["a@b.example"], "one of an old row")
      }
    }
    assert.strictEqual(verdict("mailto:a@localhost.example", "mailto:a@b.example."), "ok")
  })

  it("must be an address that mail can be sent to", () => {
    const said = (address: string) =>
      Result.match(checkContacts([`mailto:${address}`]), {
        onFailure: (error) => problemOf(error).detail,
        onSuccess: () => "ok"
      })
    const labels = (...lengths: ReadonlyArray<number>) => lengths.map((length) => "b".repeat(length)).join(".")
    const wrong = [
      "a@example.org#f",
      "//a@example.org",
      "a@example.org/x",
      "a@-b.org",
      "a@b-.org",
      "a@b.org-",
      "a@example..org",
      "a@.example.org",
      "a@example.org..",
      ".a@example.org",
      "a.@example.org",
      ".@example.org",
      `${"a".repeat(65)}@example.org`,
      `${"ä".repeat(33)}@example.org`,
      `a@${labels(64)}.org`
    ]
    for (const address of wrong) {
      assert.strictEqual(
        said(address),
        "The member contact[0] must be one mail address without header fields.",
        address
      )
      assert.deepStrictEqual(mailAddressesOf([`mailto:${address}`]), [], "one of an old row")
    }
    const longest = `aa@${labels(63, 63, 63, 59)}`
    assert.strictEqual(longest.length, 254)
    assert.strictEqual(said(`a${longest}`), "The member contact[0] must have an address of at most 254 octets.")
    const right = [
      longest,
      `${"a".repeat(64)}@${labels(63)}.org`,
      "a/b#c@x_y.example",
      "a..b@1.example",
      "a@xn--e1a.org"
    ]
    for (const address of right) {
      assert.strictEqual(said(address), "ok", address)
      assert.deepStrictEqual(mailAddressesOf([`mailto:${address}`]), [address])
    }
  })

  it("are refused if the local part contains <script>, whether it is plain, encoded or quoted", () => {
    for (const text of ["<script>", "%3Cscript%3E", "\"<script>\"", "%22%3Cscript%3E%22"]) {
      assert.strictEqual(verdict(`mailto:${text}@b.example`), "invalidContact", text)
    }
  })

  it("may be an empty list", () => assert.strictEqual(verdict(), "ok"))
})
