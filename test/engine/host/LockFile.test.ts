import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { withLockFile } from "../../../src/engine/host/LockFile.ts"
import { freshDirectory } from "../../support/Databases.ts"

/** Moves the clock on, so that the lock is checked again and again, until the effect has ended. */
const looking = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self, { startImmediately: true })
    while (fiber.pollUnsafe() === undefined) {
      yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
      yield* TestClock.adjust("100 millis")
    }
    return yield* Fiber.join(fiber)
  })

describe("a lock whose owner no longer exists", () => {
  it.effect("is taken over when it has not changed for some time", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "ca.crl.lock")
      writeFileSync(path, "")
      assert.strictEqual(yield* looking(withLockFile(path, Effect.succeed("done"))), "done")
      assert.isFalse(existsSync(path))
    }))

  it.effect("is named with the reason if the lock is a folder and so cannot be removed", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "ca.crl.lock")
      mkdirSync(path)
      const refused = yield* looking(Effect.flip(withLockFile(path, Effect.void)))
      assert.match(refused._tag, /LockUnavailable/)
      assert.match(String(refused), /ca\.crl\.lock is in the way and cannot be removed \((?:EISDIR|EPERM)\); remove it/)
      assert.isTrue(existsSync(path))
    }))
})
