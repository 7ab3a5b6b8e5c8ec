import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { unplayed } from "./Coverage.ts"

describe("the plays", () => {
  it.effect("use every route of the API, every command, and every page and form of the panel", () =>
    Effect.map(unplayed, (ways) => assert.deepStrictEqual(ways, [])))
})
