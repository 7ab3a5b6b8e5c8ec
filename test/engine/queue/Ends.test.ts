import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { assert, describe } from "vitest"
import { makeEnds } from "../../../src/engine/queue/Ends.ts"

const subject = { kind: "signer_issue", dedupKey: "one" } as const
const other = { kind: "signer_issue", dedupKey: "two" } as const
const isWaiting = <A>(fiber: Fiber.Fiber<A>) => fiber.pollUnsafe() === undefined

describe("the ends of jobs that a process is told", () => {
  it.effect("include an end that comes after a read and before the wait that follows", () =>
    Effect.gen(function*() {
      const ends = makeEnds()
      const before = ends.moment()
      ends.tell(subject)
      yield* ends.after(before, subject)
    }))

  it.effect("exclude an end before the given moment, and the end of another subject", () =>
    Effect.gen(function*() {
      const ends = makeEnds()
      ends.tell(subject)
      const waiting = yield* Effect.forkChild(ends.after(ends.moment(), subject))
      yield* Effect.yieldNow
      ends.tell(other)
      yield* Effect.yieldNow
      assert.isTrue(isWaiting(waiting))
      ends.tell(subject)
      yield* Fiber.join(waiting)
    }))

  it.effect("are told to all callers that wait", () =>
    Effect.gen(function*() {
      const ends = makeEnds()
      const [first, second, third] = yield* Effect.all(
        [1, 2, 3].map(() => Effect.forkChild(ends.after(0, subject)))
      )
      yield* Effect.yieldNow
      if (first === undefined || second === undefined || third === undefined) return assert.fail()
      yield* Fiber.interrupt(first)
      ends.tell(subject)
      yield* Fiber.join(second)
      yield* Fiber.join(third)
    }))

  it.effect("show a job as running in this process until the job or its attempt ends", () =>
    Effect.sync(() => {
      const ends = makeEnds()
      const [job, others] = [{ ...subject, share: "p/one" }, { ...subject, share: "p/two" }]
      const shown = () => [ends.isRunning(job), ends.isRunning(others)]
      assert.deepStrictEqual(shown(), [false, false])
      ends.begun(job)
      assert.deepStrictEqual(shown(), [true, false])
      // A caller that began to wait after this end would wait for ever.
      ends.tell(job)
      assert.deepStrictEqual(shown(), [false, false])
      ends.left(job)
      ends.begun(job)
      ends.begun(job)
      ends.left(job)
      assert.deepStrictEqual(shown(), [true, false])
      ends.left(job)
      assert.deepStrictEqual(shown(), [false, false])
    }))
})
