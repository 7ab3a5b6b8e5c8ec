import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { assert, describe } from "vitest"
import type { Sync } from "../../../src/engine/sql/CommitSync.ts"
import { makeCommitSync } from "../../../src/engine/sql/CommitSync.ts"

/** Two syncs that begin when they are asked for, and end when the test ends them. */
const heldSyncs = () => {
  const running: Array<(failure: Error | null) => void> = []
  let version = 0
  let begun = 0
  const sync: Sync = (ended) => {
    begun++
    running.push(ended)
  }
  const commits = makeCommitSync({
    syncs: [sync, sync],
    othersCommits: () => version,
    slow: () => Effect.void
  })
  return {
    commits: {
      ...commits,
      written: Effect.suspend(() => {
        commits.committed()
        return commits.now
      })
    },
    begun: () => begun,
    /** Ends the sync that began first of those that run. */
    end: (failure: Error | null = null) => Effect.sync(() => running.shift()?.(failure)),
    /** Ends the sync that began last of those that run. */
    endLast: () => Effect.sync(() => running.pop()?.(null)),
    commitElsewhere: () => void version++
  }
}

/** Starts an effect, and returns whether it has ended by now. */
const started = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.forkChild(effect, { startImmediately: true }), (fiber) => ({
    fiber,
    isOver: () => fiber.pollUnsafe() !== undefined
  }))

const turns = Effect.forEach(Array.from({ length: 10 }), () => Effect.yieldNow, { discard: true })

describe("the shared syncs of commits", () => {
  it.effect("answer a commit after a sync that began after it, not after one that was already running", () =>
    Effect.gen(function*() {
      const { begun, commits, end } = heldSyncs()
      const first = yield* started(commits.written)
      const second = yield* started(commits.written)
      assert.strictEqual(begun(), 2)
      yield* end()
      yield* turns
      assert.deepStrictEqual([first.isOver(), second.isOver(), begun()], [true, false, 2])
      yield* end()
      yield* Fiber.join(second.fiber)
    }))

  it.effect("answer all commits before a sync, also if a sync that began earlier still runs", () =>
    Effect.gen(function*() {
      const { begun, commits, end, endLast } = heldSyncs()
      const first = yield* started(commits.written)
      const second = yield* started(commits.written)
      yield* endLast()
      yield* Effect.forEach([first, second], ({ fiber }) => Fiber.join(fiber))
      yield* end()
      yield* commits.now
      assert.strictEqual(begun(), 2)
    }))

  it.effect("cover all commits that were made while two syncs were running", () =>
    Effect.gen(function*() {
      const { begun, commits, end } = heldSyncs()
      const both = [yield* started(commits.written), yield* started(commits.written)]
      const others = yield* Effect.forEach([1, 2, 3], () => started(commits.written))
      assert.strictEqual(begun(), 2)
      yield* end()
      yield* end()
      yield* end()
      yield* Effect.forEach([...both, ...others], ({ fiber }) => Fiber.join(fiber))
      assert.strictEqual(begun(), 3)
    }))

  it.effect("run two at a time at most, even if those who were answered commit again at once", () =>
    Effect.gen(function*() {
      const { begun, commits, end } = heldSyncs()
      const twice = Effect.andThen(commits.written, commits.written)
      const all = yield* Effect.forEach([1, 2, 3], () => started(twice))
      for (const expected of [3, 4, 5]) {
        yield* end()
        yield* turns
        assert.strictEqual(begun(), expected)
      }
      yield* end()
      yield* end()
      yield* Effect.forEach(all, ({ fiber }) => Fiber.join(fiber))
      assert.strictEqual(begun(), 5)
    }))

  it.effect("let a read pass if everything that it may show is on the disk", () =>
    Effect.gen(function*() {
      const { begun, commits, end } = heldSyncs()
      const atStart = yield* started(commits.now)
      yield* end() // This sync is for the rows of a process that was killed before its last sync.
      yield* Fiber.join(atStart.fiber)
      yield* commits.now
      assert.strictEqual(begun(), 1)
    }))

  it.effect("make a read wait for a commit of this process or of another one", () =>
    Effect.gen(function*() {
      const { commitElsewhere, commits, end } = heldSyncs()
      const written = yield* started(commits.written)
      const read = yield* started(commits.now)
      assert.isFalse(read.isOver())
      yield* end()
      yield* Effect.forEach([written, read], ({ fiber }) => Fiber.join(fiber))
      commitElsewhere()
      const foreign = yield* started(commits.now)
      assert.isFalse(foreign.isOver())
      yield* end()
      yield* Fiber.join(foreign.fiber)
    }))

  it.effect("give a failure to everybody who waits, and to everybody who comes later", () =>
    Effect.gen(function*() {
      const { begun, commits, end } = heldSyncs()
      const told = yield* Deferred.make<string>()
      yield* Effect.forkChild(
        Effect.flatMap(commits.failed, ({ message }) => Deferred.succeed(told, message)),
        { startImmediately: true }
      )
      const waiting = yield* Effect.forEach([1, 2, 3], () => started(commits.written))
      yield* end(new Error("EIO: i/o error, fdatasync"))
      const exits = yield* Effect.forEach(waiting, ({ fiber }) => Fiber.await(fiber))
      assert.deepStrictEqual(exits.map(Exit.isFailure), [true, true, true])
      yield* end() // The second sync was running when the first one failed, and succeeds without what was dropped.
      assert.isTrue(Exit.isFailure(yield* Effect.exit(commits.written)))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(commits.upTo(1))))
      assert.strictEqual(begun(), 2, "no later sync, which would succeed without what was dropped")
      assert.strictEqual(yield* Deferred.await(told), "EIO: i/o error, fdatasync")
    }))

  it.effect("do not wait for a caller that was interrupted", () =>
    Effect.gen(function*() {
      const { begun, commits, end } = heldSyncs()
      yield* started(commits.written)
      yield* started(commits.written)
      const given = yield* started(commits.written)
      yield* Fiber.interrupt(given.fiber)
      yield* end()
      yield* end()
      assert.strictEqual(begun(), 2)
    }))
})
