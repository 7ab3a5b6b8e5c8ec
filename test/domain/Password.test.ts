import { it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { checkPassword } from "../../src/domain/PasswordRules.ts"
import {
  readRecoveryCode,
  recoveryCodeFrom,
  recoveryCodeSize,
  showRecoveryCode
} from "../../src/domain/RecoveryCode.ts"
import { prop } from "../support/Property.ts"

describe("a new password", () => {
  const guessable = { username: "olga.petrova", texts: ["acme-svc", "ca.example.org", "Ünternehmen Root CA", "web"] }
  const why = (password: string) =>
    Result.match(checkPassword(password, guessable), { onFailure: (weak) => weak.why, onSuccess: () => undefined })

  it("must have at least twelve characters and at most 1024 octets", () => {
    assert.strictEqual(why("elevenchars"), "has fewer than 12 characters")
    assert.strictEqual(why("🐢🐢🐟🐟🐢🐢🐟🐟🐢🐢🐟"), "has fewer than 12 characters")
    assert.isUndefined(why("🐢🐢🐟🐟🐢🐢🐟🐟🐢🐢🐟🐟"))
    assert.isUndefined(why("            x"))
    assert.isUndefined(why("mnyghvxukzrl"))
    const long = "kz".repeat(512)
    assert.isUndefined(why(long))
    assert.strictEqual(why(`${long}x`), "has more than 1024 octets")
    assert.strictEqual(why("\uD800 is half a pair"), "is not valid Unicode text")
  })

  it("is normalised to NFC", () => {
    assert.deepStrictEqual(checkPassword("e\u0301 kzlm vrtn 4", guessable), Result.succeed("é kzlm vrtn 4"))
  })

  it("is refused if it contains a word that is easy to guess, in upper or lower case", () => {
    assert.match(why("PETROVA and 4 bears") ?? "", /petrova/)
    assert.match(why("my acme is the best") ?? "", /acme/)
    assert.match(why("for Example this one") ?? "", /example/)
    assert.match(why("das u\u0308NTERNEHMEN hier") ?? "", /ünternehmen/)
    assert.isUndefined(why("the web and the org"), "words of three letters are everywhere")
  })

  it("is refused if it consists of sequences of the keyboard or the alphabet, or of one repeated character", () => {
    const runs = [
      "abcdefghijkl",
      "zyxwvutsrqpo",
      "qwertyuiopas",
      "poiuytrewqlkj",
      "123456789012",
      "098765432109",
      "qwertyqwerty",
      "asdfasdfasdf",
      "QWERTZuiop123",
      "1qaz2wsx3edc",
      "abcabcabcabc",
      "aaaabbbbcccc",
      "!@#$%^&*()_+",
      "123123123123"
    ]
    for (const run of runs) assert.strictEqual(why(run), "is a run of the keyboard or the alphabet", run)
    assert.strictEqual(why("AaAaAaAaAaAa"), "is one character, repeated")
    assert.isUndefined(why("abcdefghijkl and more"))
  })

  it("is refused if many people use it", () => {
    for (
      const common of ["correcthorsebatterystaple", "Password1234", "administrator", "UNBELIEVABLE", "changeme1234"]
    ) {
      assert.strictEqual(why(common), "is one that many people use", common)
    }
  })

  prop("is never quoted when it is refused", [fc.string({ maxLength: 40 })], ([password]) => {
    const said = why(password)
    // The refusal may quote a single word of the password if that word is easy to guess.
    if (said !== undefined && password.length > 12) assert.notInclude(said, password)
  })

  it("is checked even if it is very long", () => {
    assert.strictEqual(why("abc".repeat(341)), "is a run of the keyboard or the alphabet")
    assert.strictEqual(why("abc".repeat(100_000)), "has more than 1024 octets")
  })
})

describe("a recovery code", () => {
  prop(
    "is accepted in upper or lower case, and with or without its hyphen",
    [fc.uint8Array({ minLength: recoveryCodeSize, maxLength: recoveryCodeSize })],
    ([octets]) => {
      const code = recoveryCodeFrom(octets)
      const shown = showRecoveryCode(code)
      assert.match(shown, /^[A-Z2-7]{5}-[A-Z2-7]{5}$/)
      for (const typed of [code, shown, shown.toLowerCase(), ` ${shown.replace("-", " - ")} `]) {
        assert.strictEqual(readRecoveryCode(typed), code)
      }
    }
  )

  it("is not recognised in any other form", () => {
    for (const text of ["", "123456", "AAAAA-AAAA", "AAAAA-AAAAAA", "AAAAA-AAAA1"]) {
      assert.isUndefined(readRecoveryCode(text))
    }
  })
})
