import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { gateOnly, unnamed } from "./GateOnly.ts"

describe("the files that only the gate runs", () => {
  it("exist, and are listed once in order", () => {
    for (const file of gateOnly) assert.isTrue(existsSync(join(import.meta.dirname, "..", file)), file)
    assert.deepStrictEqual([...new Set(gateOnly)].sort(), gateOnly)
  })

  it("also run if a word of the command line names them", () => {
    const named = (...words: ReadonlyArray<string>) => gateOnly.filter((file) => !unnamed(words).includes(file))
    assert.deepStrictEqual(named("run", "--config", "test/vitest.config.ts"), [])
    assert.deepStrictEqual(named("run", "e2e/", "docs"), [])
    assert.deepStrictEqual(named("e2e/reload"), ["e2e/reload.test.ts"])
    assert.deepStrictEqual(named("test/e2e/reload.test.ts"), ["e2e/reload.test.ts"])
    assert.deepStrictEqual(named("panelZ", "bench.test.ts"), ["docs/bench.test.ts", "e2e/panelZoom.test.ts"])
  })
})
