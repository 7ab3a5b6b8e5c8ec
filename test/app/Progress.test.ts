import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Host } from "../../src/app/Host.ts"
import { Progress } from "../../src/app/Progress.ts"
import { Globals, readGlobals } from "../../src/surfaces/cli/Globals.ts"
import type { Around } from "../support/RunCommand.ts"
import { hostOf } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

const { test } = useTests({})

/**
 * Returns what is written to standard error while work reports its progress every 20 ms of the test clock.
 */
const shown = (around: Around, words: ReadonlyArray<string>, steps: number, isKnown = true) => {
  const said = { out: "", err: "" }
  const chunks: Array<string> = []
  const host = hostOf("/", said, around)
  const write = (text: string) => void chunks.push(text)
  const layer = Progress.layer.pipe(
    Layer.provide(Layer.succeed(Host, { ...host, stderr: { ...host.stderr, write } })),
    Layer.provide(Layer.effect(Globals, Effect.orDie(Effect.fromResult(readGlobals(words)))))
  )
  const work = Progress.run({ title: "Copying", total: isKnown ? steps : undefined }, (report) =>
    Effect.forEach(
      Array.from({ length: steps }, (_, step) => step + 1),
      (done) => Effect.andThen(Effect.sleep(20), report(done)),
      { discard: true }
    ))
  return Effect.gen(function*() {
    const running = yield* Effect.forkChild(Effect.provide(work, layer))
    yield* TestClock.adjust(steps * 20)
    yield* Fiber.join(running)
    assert.strictEqual(said.out, "")
    return chunks
  })
}

describe("progress", () => {
  test("is a bar on a terminal, redrawn at most ten times a second, and removed at the end", () =>
    Effect.gen(function*() {
      const chunks = yield* shown({ columns: 80, env: { NO_COLOR: "1" } }, [], 100)
      assert.strictEqual(chunks.length, 21)
      assert.strictEqual(
        chunks[0],
        `\r\u001b[KCopying  ${"█".repeat(2)}${"░".repeat(28)}  5 of 100, 5 %, 50/s, 2 s left`
      )
      assert.strictEqual(chunks[19], `\r\u001b[KCopying  ${"█".repeat(30)}  100 of 100, 100 %, 50/s`)
      assert.strictEqual(chunks[20], "\r\u001b[K")
    }))

  test("never fills more than one line", () =>
    Effect.gen(function*() {
      for (const columns of [20, 45, 60]) {
        for (const chunk of yield* shown({ columns, env: { NO_COLOR: "1" } }, [], 50)) {
          assert.isBelow(chunk.replace("\r\u001b[K", "").length, columns)
        }
      }
    }))

  test("is printed as a line every few seconds if there is no terminal", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* shown({}, [], 100), [])
      assert.deepStrictEqual(yield* shown({}, [], 600), [
        "Copying: 250 of 600, 41 %, 50/s, 7 s left\n",
        "Copying: 500 of 600, 83 %, 50/s, 2 s left\n"
      ])
    }))

  test("shows the count if the total is unknown", () =>
    Effect.gen(function*() {
      const [first] = yield* shown({ columns: 80, env: { NO_COLOR: "1" } }, [], 10, false)
      assert.strictEqual(first, "\r\u001b[KCopying  5, 50/s")
    }))

  test("is silent with --json", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* shown({ columns: 80 }, ["--json"], 100), [])
    }))
})
