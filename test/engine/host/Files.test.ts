import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { readText } from "../../../src/engine/host/Files.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { sleptThrough } from "../../support/Watched.ts"

const freshPipe = (): string => {
  const path = join(freshDirectory(), "pipe")
  execFileSync("mkfifo", [path])
  return path
}

describe("a file", () => {
  it.effect("is read as text, whatever its length", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "text")
      const text = "ä".repeat(100_000)
      writeFileSync(path, text)
      assert.strictEqual(yield* readText(path), text)
      writeFileSync(path, "")
      assert.strictEqual(yield* readText(path), "")
    }))

  it.live("is read to its end if it is a pipe that somebody writes", () =>
    Effect.gen(function*() {
      const path = freshPipe()
      const script = `exec >"$0"; printf '%s' one; printf '%0100000d' 0; printf '%s' two`
      const writer = spawn("sh", ["-c", script, path], { stdio: "ignore" })
      assert.match(yield* readText(path), /^one0{100000}two$/)
      writer.kill()
    }))

  it.effect("is refused after some seconds if it is a pipe that nobody writes", () =>
    Effect.gen(function*() {
      const path = freshPipe()
      const { message } = yield* sleptThrough(Effect.flip(readText(path)))
      assert.strictEqual(message, `${path} is a pipe that was not written within 10 s`)
    }))

  it.effect("is empty if it is the empty device, and refused if it is a device without an end", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* readText("/dev/null"), "")
      const { message } = yield* Effect.flip(readText("/dev/zero"))
      assert.strictEqual(message, "/dev/zero has more than 16777216 octets")
    }))
})
