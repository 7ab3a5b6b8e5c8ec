import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { Level } from "../../../src/engine/telemetry/Declaration.ts"
import { levelWords, parseFilter } from "../../../src/engine/telemetry/LogFilter.ts"
import { prop } from "../../support/Property.ts"

const levels: ReadonlyArray<Level> = ["error", "warn", "info", "debug"]

/** Returns the levels at which records of a target pass a filter. */
const passing = (filter: string, target: string): ReadonlyArray<Level> => {
  const passes = parseFilter(filter)
  return levels.filter((level) => passes(target, level))
}

const word = fc.constantFrom(...levelWords)
const target = fc.constantFrom("acme_svc", "acme_svc.job", "acme_svc.jobs", "acme_svc.order", "other")
const directives = fc.array(fc.tuple(target, word), { minLength: 1, maxLength: 6 })
  .map((pairs) => [...new Map(pairs)])

describe("logging.filter", () => {
  it("passes records of the given level and of more severe levels, of every target", () => {
    for (
      const [filter, expected] of [
        ["off", []],
        ["error", ["error"]],
        ["warn", ["error", "warn"]],
        ["info", ["error", "warn", "info"]],
        ["debug", levels],
        ["trace", levels]
      ] as const
    ) {
      assert.deepStrictEqual(passing(filter, "acme_svc.job"), expected, filter)
      assert.deepStrictEqual(passing(filter, "library"), expected, filter)
      assert.deepStrictEqual(passing(`acme_svc.job=${filter}`, "acme_svc.job"), expected, filter)
    }
  })

  it("reads a level as a word in any case or as a number", () => {
    for (const [number, level] of levelWords.entries()) {
      for (const text of [level.toUpperCase(), `${level.slice(0, 1).toUpperCase()}${level.slice(1)}`, String(number)]) {
        assert.deepStrictEqual(passing(text, "acme_svc.job"), passing(level, "acme_svc.job"), text)
        assert.deepStrictEqual(passing(`acme_svc.job=${text}`, "acme_svc.job"), passing(level, "acme_svc.job"), text)
      }
    }
  })

  it("separates the words of a target by a dot or by two colons", () => {
    assert.deepStrictEqual(passing("acme_svc::job=debug,warn", "acme_svc.job"), levels)
    assert.deepStrictEqual(passing("acme_svc::job=debug,warn", "acme_svc.order"), ["error", "warn"])
  })

  it("passes all records of a target without a level, and no other records", () => {
    assert.deepStrictEqual(passing("acme_svc.job", "acme_svc.job"), levels)
    assert.deepStrictEqual(passing("acme_svc.job", "acme_svc.order"), [])
    assert.deepStrictEqual(passing("acme_svc", "acme_svc.order"), levels)
    assert.deepStrictEqual(passing("acme_svc=info", "library"), [])
  })

  it("applies a target to those below it, but not to targets that begin with the same letters", () => {
    assert.deepStrictEqual(passing("acme_svc.job=debug", "acme_svc.job.runner"), levels)
    assert.deepStrictEqual(passing("acme_svc.job=debug", "acme_svc.jobs"), [])
    assert.deepStrictEqual(passing("acme=debug", "acme_svc.job"), [])
    assert.deepStrictEqual(passing("acme_svc.job=debug", "acme_svc"), [])
  })

  it("applies the longest target that matches, wherever it stands", () => {
    for (
      const filter of [
        "warn, acme_svc=info ,acme_svc.challenge=debug,acme_svc.nonce=off",
        "acme_svc.nonce=off,acme_svc.challenge=debug,acme_svc=info,warn"
      ]
    ) {
      assert.deepStrictEqual(passing(filter, "acme_svc.challenge"), levels)
      assert.deepStrictEqual(passing(filter, "acme_svc.nonce"), [])
      assert.deepStrictEqual(passing(filter, "acme_svc.order"), ["error", "warn", "info"])
      assert.deepStrictEqual(passing(filter, "library"), ["error", "warn"])
    }
  })

  prop("gives the same result whatever the order of its directives is", [directives, target], ([pairs, asked]) => {
    const texts = pairs.map(([name, level]) => `${name}=${level}`)
    assert.deepStrictEqual(passing(texts.join(","), asked), passing(texts.toReversed().join(", "), asked))
  })

  prop(
    "passes a record at every more severe level than one at which it passes",
    [directives, target],
    ([pairs, asked]) => {
      const passed = passing(pairs.map(([name, level]) => `${name}=${level}`).join(","), asked)
      assert.deepStrictEqual(passed, levels.slice(0, passed.length))
    }
  )
})
