import { assert, describe, it } from "vitest"
import { parseSerial } from "../../../src/crypto/x509/Serial.ts"

describe("a serial number in the notations that people use", () => {
  it("may have colons, blanks, hyphens or nothing between its octets", () => {
    for (const text of ["0a1b2c", "0A:1B:2C", "0a 1b 2c", "0a-1b-2c", " 0A-1B-2C\n", "a1b2c", "00-0a-1b-2c"]) {
      assert.strictEqual(parseSerial(text), "0a1b2c", text)
    }
  })

  it("is distinguished from the id of an order and from other text", () => {
    for (const text of ["0190a5d1-ac96-774b-bcce-b302099a8057", "0a-1b2c", "-0a-1b", "0a--1b", "0x0a", "", "serial"]) {
      assert.isUndefined(parseSerial(text), text)
    }
  })
})
