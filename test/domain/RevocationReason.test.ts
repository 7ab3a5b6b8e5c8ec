import { assert, describe, it } from "vitest"
import { isAcceptedReason, parseReason, reasonShown, revocationReasons } from "../../src/domain/RevocationReason.ts"

describe("reasons for a revocation", () => {
  it("are those of RFC 5280 section 5.3.1, in which 7 is unused", () => {
    const accepted = Array.from({ length: 20 }, (_, index) => index - 5).filter(isAcceptedReason)
    assert.deepStrictEqual(accepted, [0, 1, 2, 3, 4, 5, 6, 8, 9, 10])
  })

  it("are read by decimal number, and by name in upper or lower case", () => {
    for (const { code, name } of revocationReasons) {
      for (
        const given of [code, String(code), `0${code}`, ` +${code}`, name, name.toLowerCase(), `${name.toUpperCase()} `]
      ) {
        assert.strictEqual(parseReason(given), code, String(given))
      }
    }
    for (const given of ["", "7", "11", "-1", "1.0", "0x1", "1e0", "key", "key compromise", 7, -1, 1.5]) {
      assert.isUndefined(parseReason(given), String(given))
    }
  })

  it("are shown with number and name, and an unknown code in old data is shown as it is", () => {
    assert.deepStrictEqual([reasonShown(1), reasonShown(7)], ["keyCompromise (1)", "7"])
  })
})
