import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, assert, describe, it } from "vitest"
import { freshDirectory } from "../support/Databases.ts"
import { lacks, lacksCompiled } from "./Toolchains.ts"

const path = process.env["PATH"]

afterEach(() => {
  process.env["PATH"] = path
})

/** Sets PATH to a folder with only a compiler that reports this version. */
const only = (command: string, said: string): void => {
  const folder = freshDirectory()
  writeFileSync(join(folder, command), `#!/bin/sh\necho '${said}'\n`)
  chmodSync(join(folder, command), 0o755)
  process.env["PATH"] = folder
}

describe("a toolchain", () => {
  it.each(
    [
      ["go", "go1.25.8", "1.25.8"],
      ["go", "go1.26", "1.25.8"],
      ["cargo", "cargo 1.100.0 (f2d3ce0bd 2026-03-21)", "1.89"]
    ] as const
  )("is new enough if it is a %s that reports %s and %s is needed", async (command, said, wanted) => {
    only(command, said)
    assert.isUndefined(await lacks(command, wanted))
  })

  it.each(
    [
      ["go", "go1.25", "1.25.8", "and 1.25 is here"],
      ["cargo", "cargo 1.65.0", "1.89", "and 1.65.0 is here"]
    ] as const
  )("is reported as too old if it is a %s that reports %s and %s is needed", async (command, said, wanted, told) => {
    only(command, said)
    assert.include(await lacks(command, wanted) ?? "", told)
  })

  it("is required if no compiled program is kept, but the gate never compiles one", async () => {
    only("cargo", "cargo 1.65.0")
    const gate = process.env["CI"]
    try {
      for (const ci of ["", "true"]) {
        process.env["CI"] = ci
        assert.isUndefined(await lacksCompiled(true, "cargo", "1.89"))
        assert.include(await lacksCompiled(false, "cargo", "1.89") ?? "", ci === "" ? "and 1.65.0 is here" : "minutes")
      }
    } finally {
      if (gate === undefined) delete process.env["CI"]
      else process.env["CI"] = gate
    }
  })

  it("is reported as absent if it is not installed", async () => {
    process.env["PATH"] = freshDirectory()
    assert.include(await lacks("cargo", "1.89") ?? "", "which is not here")
  })
})
