import { assert, describe, it } from "vitest"
import { isAcceptedReason, parseReason, reasonShown, revocationReasons } from "../../src/domain/RevocationReason.ts"

describe("reasons for a revocation", () => {
  it("are those of RFC 5280 section 5.3.1, where 7 is unused", () => {
    const accepted = Array.from({ length: 20 }, (_, index) => index - 5).filter(isAcceptedReason)
    assert.deepStrictEqual(accepted, [0, 1, 2, 3, 4, 5, 6, 8, 9, 10])
  })

  it("are read by number and by name, however the name is capitalised", () => {
    for (const { code, name } of revocationReasons) {
      for (const text of [String(code), name, name.toLowerCase(), name.toUpperCase()]) {
        assert.strictEqual(parseReason(text), code, text)
      }
    }
    for (const text of ["", "7", "11", "-1", "01", "1.0", "key", "key compromise", "1 "]) {
      assert.isUndefined(parseReason(text), text)
    }
  })

  it("are shown with both, and a code of old data as it is", () => {
    assert.deepStrictEqual([reasonShown(1), reasonShown(7)], ["keyCompromise (1)", "7"])
  })
})
