import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { inBatches, pages } from "../../../src/engine/sql/Pages.ts"

const rows = (many: number) => Array.from({ length: many }, (_, index) => index + 1)

describe("the pages of a list", () => {
  const pagesOf = (many: number, asked: Array<number> = []) =>
    pages({
      from: 0,
      size: 3,
      read: (after, size) =>
        Effect.sync(() => {
          asked.push(after)
          return rows(many).filter((row) => row > after).slice(0, size)
        }),
      keyOf: (row) => row
    })

  it.each([0, 1, 2, 3, 4, 6, 7])("contain each of %i rows once and in order", (many) =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* Stream.runCollect(pagesOf(many))).flat(), rows(many))
    }).pipe(Effect.runPromise))

  it.effect("are read only as far as their caller needs them", () =>
    Effect.gen(function*() {
      const asked: Array<number> = []
      yield* Stream.runHead(pagesOf(7, asked))
      assert.deepStrictEqual(asked, [0])
    }))

  it.live("let other work run between each two of them", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      setImmediate(() => seen.push("other work"))
      yield* Stream.runForEach(pagesOf(4), () => Effect.sync(() => seen.push("page")))
      assert.deepStrictEqual(seen, ["page", "other work", "page"])
    }))
})

describe("inBatches", () => {
  it.live("continues until a pass finds fewer rows than the limit, and returns the sum of all passes", () =>
    Effect.gen(function*() {
      const found = [5, 5, 2, 9]
      const asked: Array<number> = []
      const total = yield* inBatches(5, (limit) =>
        Effect.sync(() => {
          asked.push(limit)
          return found.shift() ?? 0
        }))
      assert.deepStrictEqual({ total, asked, left: found }, { total: 12, asked: [5, 5, 5], left: [9] })
    }))
})
