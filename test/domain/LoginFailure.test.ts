import { assert, describe, it } from "vitest"
import { fromKnown, fromStrangers, isTold, waitAfter } from "../../src/domain/LoginFailure.ts"
import { knownKey, nameKey, operatorKey } from "../../src/domain/LoginKey.ts"

const upTo = (most: number) => Array.from({ length: most }, (_, at) => at)

describe("wrong passwords in a row", () => {
  it("cause no wait ten times, then waits from half a minute up to an hour, and finally a wait of a day", () => {
    for (const free of upTo(11)) assert.strictEqual(waitAfter(free, fromStrangers), 0)
    const waits = [11, 12, 13, 14, 15, 16, 17, 18, 19, 49, 50, 1000].map((failures) =>
      waitAfter(failures, fromStrangers)
    )
    assert.deepStrictEqual(waits, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 86_400, 86_400])
    assert.deepStrictEqual([9, 10, 11].map((failures) => waitAfter(failures, fromKnown)), [0, 86_400, 86_400])
  })

  it("are limited to a hundred, counted from unknown addresses and five known addresses together", () => {
    assert.strictEqual(fromStrangers.most + 5 * fromKnown.most, 100)
  })

  it("are reported at every tenth failure", () => {
    assert.deepStrictEqual(upTo(51).slice(1).filter(isTold), [10, 20, 30, 40, 50])
  })

  it("are counted by operator, by known address, and by a fixed number of keys for unknown names", () => {
    assert.strictEqual(operatorKey("id"), "operator:id")
    assert.strictEqual(knownKey("id", "2001:db8::1"), "operator:id@2001:db8:0:0::/64")
    assert.strictEqual(nameKey("Nobody "), nameKey("nobody"))
    const places = new Set(upTo(5000).map((at) => nameKey(`name ${at}`)))
    assert.isAbove(places.size, 4000)
    for (const place of places) assert.match(place, /^name:[0-9a-f]{4}$/)
  })
})
