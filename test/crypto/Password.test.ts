import { it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { encodeBase32 } from "../../src/crypto/Base32.ts"
import {
  derive,
  isHashOf,
  parsePasswordHash,
  printPasswordHash,
  unmatchable,
  unmatchableSize
} from "../../src/crypto/PasswordHash.ts"
import { isTotpCode, totp, totpCode, totpSecretSize, totpStep, totpUri } from "../../src/crypto/Totp.ts"
import { prop } from "../support/Property.ts"

const octets = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })

describe("a stored password", () => {
  it.effect("is derived by PBKDF2-HMAC-SHA256, as the vectors of RFC 7914 section 11 show", () =>
    Effect.gen(function*() {
      const one = yield* derive("passwd", Buffer.from("salt"), 1)
      const many = yield* derive("Password", Buffer.from("NaCl"), 80_000)
      assert.strictEqual(
        Buffer.from(one).toString("hex"),
        "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
      )
      assert.strictEqual(
        Buffer.from(many).toString("hex"),
        "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"
      )
    }))

  it.effect("is the same however its Unicode characters are composed", () =>
    Effect.gen(function*() {
      const salt = Buffer.alloc(16)
      assert.deepStrictEqual(yield* derive("é", salt, 1), yield* derive("e\u0301", salt, 1))
    }))

  prop(
    "is read back as it was written",
    [fc.integer({ min: 1, max: 10_000_000 }), octets(16), octets(32)],
    ([iterations, salt, hash]) => {
      const text = printPasswordHash({ iterations, salt, hash })
      assert.match(text, /^\$pbkdf2-sha256\$i=\d+\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
      const read = parsePasswordHash(text)
      assert.strictEqual(read?.iterations, iterations)
      assert.deepStrictEqual([Buffer.from(read?.salt ?? []), Buffer.from(read?.hash ?? [])], [
        Buffer.from(salt),
        Buffer.from(hash)
      ])
    }
  )

  it("is not read in any other form", () => {
    const good = printPasswordHash({ iterations: 600_000, salt: new Uint8Array(16), hash: new Uint8Array(32) })
    assert.isDefined(parsePasswordHash(good))
    const odd = [
      "",
      "plain",
      "$2b$12$abcdefghijklmnopqrstuv",
      good.replace("sha256", "sha512"),
      good.replace("600000", "0"),
      good.replace("600000", "0600000"),
      good.replace("600000", "99999999"),
      good.replace("600000", "1e6"),
      `${good}=`,
      good.slice(0, -1),
      ` ${good}`,
      `${good}\n`
    ]
    for (const text of odd) assert.isUndefined(parsePasswordHash(text), text)
  })

  it("does not match a value of another length or with a different octet", () => {
    const stored = unmatchable(new Uint8Array(unmatchableSize).fill(7), 1)
    assert.isTrue(isHashOf(new Uint8Array(32).fill(7), stored))
    assert.isFalse(isHashOf(new Uint8Array(32).fill(7).with(31, 8), stored))
    assert.isFalse(isHashOf(new Uint8Array(31).fill(7), stored))
  })
})

describe("base32", () => {
  it("encodes as RFC 4648 section 10 does, without padding", () => {
    const vectors = [["", ""], ["f", "MY"], ["fo", "MZXQ"], ["foo", "MZXW6"], ["foob", "MZXW6YQ"], [
      "fooba",
      "MZXW6YTB"
    ], [
      "foobar",
      "MZXW6YTBOI"
    ]] as const
    for (const [text, encoded] of vectors) assert.strictEqual(encodeBase32(Buffer.from(text)), encoded)
  })
})

describe("a code of an authenticator", () => {
  const secret = Buffer.from("12345678901234567890")

  // RFC 6238 appendix B lists eight digits for these times. The service uses only the last six digits.
  it("is computed as in RFC 6238", () => {
    const vectors = [
      [59, "287082"],
      [1_111_111_109, "081804"],
      [1_111_111_111, "050471"],
      [1_234_567_890, "005924"],
      [2_000_000_000, "279037"],
      [20_000_000_000, "353130"]
    ] as const
    for (const [epoch, code] of vectors) {
      assert.strictEqual(totpCode(secret, epoch), code)
      assert.strictEqual(totpStep(secret, code, epoch), Math.floor(epoch / 30))
    }
  })

  prop(
    "is found only in its own time step, the step before and the step after",
    [fc.integer({ min: 3, max: 100_000_000 }), fc.integer({ min: 0, max: 29 }), octets(totpSecretSize)],
    ([step, second, drawn]) => {
      const code = totpCode(drawn, step * 30)
      // With a chance of about one in a hundred thousand, another checked step has the same code.
      fc.pre([-3, -2, -1, 1, 2, 3].every((off) => totpCode(drawn, (step + off) * 30) !== code))
      const seen = [-2, -1, 0, 1, 2].map((off) => totpStep(drawn, code, (step + off) * 30 + second) === step)
      assert.deepStrictEqual(seen, [false, true, true, true, false])
    }
  )

  it("has exactly six digits", () => {
    for (const text of ["", "12345", "1234567", "12 456", "１２３４５６", "abcdef", "-12345", "287082\n"]) {
      assert.isFalse(isTotpCode(text), text)
      assert.isUndefined(totpStep(secret, text, 59), text)
    }
  })

  it("has its parameters in the URI that an authenticator reads", () => {
    assert.deepStrictEqual(totp, { algorithm: "SHA1", digits: 6, period: 30 })
    assert.strictEqual(
      totpUri("ACME Service", "o.l-ga_1", secret),
      "otpauth://totp/ACME%20Service:o.l-ga_1?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=ACME%20Service&algorithm=SHA1&digits=6&period=30"
    )
  })
})
