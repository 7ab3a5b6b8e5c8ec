import { assert, describe, it } from "vitest"
import { caStateOf } from "../../../src/operations/operator/CaState.ts"

const day = 86_400

describe("the state of a CA", () => {
  it("follows the certificate in its chain that expires first, whose last ninety days count as expiring", () => {
    const stateAt = (now: number) => caStateOf({ firstToEnd: { notAfter: 100 * day, subject: "CN=Upper" } }, now)
    assert.strictEqual(stateAt(10 * day), "ok")
    assert.strictEqual(stateAt(10 * day + 1), "expiring")
    assert.strictEqual(stateAt(100 * day), "expiring", "both ends of a certificate are inclusive")
    assert.strictEqual(stateAt(100 * day + 1), "ended")
  })
})
