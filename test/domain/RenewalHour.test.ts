import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { emptiestHour, hourSeconds, usualWindow } from "../../src/domain/RenewalHour.ts"

const day = 86_400

describe("the hour of a renewal window", () => {
  it("lies within the usual window, and has no more windows than any other hour there", () => {
    fc.assert(fc.property(
      fc.integer({ min: 0, max: 4_000_000_000 }),
      fc.integer({ min: 60, max: 400 * day }),
      fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 40 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (notBefore, lifetime, load, place) => {
        const life = { notBefore, notAfter: notBefore + lifetime }
        const windowsIn = (hour: number) => load[hour % load.length] ?? 0
        const hour = emptiestHour(life, windowsIn, place)
        const { end, start } = usualWindow(life)
        const [first, last] = [Math.ceil(start / hourSeconds), Math.floor(end / hourSeconds) - 1]
        if (hour === undefined) return assert.isAtMost(last, first)
        assert.isAtLeast(hour, first)
        assert.isAtMost(hour, last)
        for (let other = first; other <= last; other++) assert.isAtMost(windowsIn(hour), windowsIn(other))
      }
    ))
  })

  it("is each of the emptiest hours for some certificate", () => {
    const life = { notBefore: 0, notAfter: 90 * day }
    const hours = new Set(Array.from({ length: 500 }, (_, at) => emptiestHour(life, () => 1, at / 500)))
    assert.strictEqual(hours.size, 180)
  })
})
