import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { copyFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { freshDirectory } from "../../support/Databases.ts"
import { openDriver } from "../../support/Graph.ts"

describe("a SQLite file in use", () => {
  const cases = [
    ["removed", (path: string) => rmSync(path)],
    ["replaced", (path: string) => {
      copyFileSync(path, `${path}.copy`)
      renameSync(`${path}.copy`, path)
    }]
  ] as const
  it.effect.each(cases)(
    "is reported within seconds as lost when it was %s",
    ([word, change]) =>
      Effect.gen(function*() {
        const path = join(freshDirectory(), "acme.db")
        const driver = yield* openDriver(`sqlite://${path}`)
        const lost = yield* Effect.forkChild(driver.lost ?? assert.fail("nobody looks"))
        yield* TestClock.adjust("10 seconds")
        assert.isUndefined(lost.pollUnsafe())
        change(path)
        yield* TestClock.adjust("2 seconds")
        assert.include(yield* Fiber.join(lost), `The database file ${path} was ${word} while it was in use`)
      })
  )
})
