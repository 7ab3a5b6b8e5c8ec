import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer, ChildProcess, startChild } from "../../src/app/ChildProcess.ts"
import { makeChildren } from "../../src/app/Children.ts"
import type { Task } from "../../src/app/ProcessMessage.ts"
import type { Ended } from "../../src/engine/processes/Fork.ts"
import { lifeMillis } from "../../src/engine/Time.ts"
import type { ConfigFile } from "../../src/settings/Load.ts"
import { useTests } from "../support/UseTests.ts"

/* Tests how a parent keeps its children. The children are not processes, so that they can do what processes rarely do. */

const { records, test } = useTests()

const taskOf = (process: number): Task => ({
  process,
  roles: process === 0 ? ["admin", "worker"] : ["acme"],
  speaksFor: [],
  requests: 1
})

type Question = Parameters<ChildProcess["ask"]>[0]

/** A child as the tests see it. */
interface Puppet {
  readonly process: number
  /** The text of the file with which it was started. */
  readonly text: string | undefined
  /** What the parent has asked and told it, in this order, except whether it is alive. */
  readonly heard: Array<string>
  /** What keeps the service from being ready, as the parent has told last. */
  readonly failing: () => ReadonlyArray<string>
  readonly serve: () => void
  readonly end: (how: Ended) => void
}

/** How a child behaves. By default it serves at once, answers everything, and ends if it is asked to stop. */
interface Behaviour {
  readonly serves?: boolean
  /** How it ends at its start, if it does. */
  readonly ends?: Ended
  /** Whether it answers a question. If not, it never does. */
  readonly answers?: (question: string) => boolean
  readonly stops?: boolean
}

const failed: Ended = { code: 1, signal: null }
const killed: Ended = { code: null, signal: "SIGKILL" }

/** Makes the children of numbers 0 to 2. `behaves` gets the number of a child, and how many the number had before it. */
const made = (behaves: (process: number, earlier: number) => Behaviour) =>
  Effect.gen(function*() {
    const puppets: Array<Puppet> = []
    let file: ConfigFile = { path: "config.toml", text: "old" }
    const start: typeof startChild = ({ process }, { text }) =>
      Effect.sync(() => {
        const earlier = puppets.filter((one) => one.process === process).length
        const { answers = () => true, ends, serves = ends === undefined, stops = true } = behaves(process, earlier)
        const ready = Deferred.makeUnsafe<void>()
        const ended = Deferred.makeUnsafe<Ended>()
        const heard: Array<string> = []
        const serve = () => Deferred.doneUnsafe(ready, Exit.void)
        const end = (how: Ended) => Deferred.doneUnsafe(ended, Exit.succeed(how))
        let failing: ReadonlyArray<string> = []
        puppets.push({ process, text, heard, serve, end, failing: () => failing })
        if (serves) serve()
        if (ends !== undefined) end(ends)
        const answerTo = (question: Question): Answer => {
          if (typeof question === "object") return { type: "built", id: 1, rebound: 0 }
          if (question === "ping") return { type: "pong", id: 1 }
          return { type: "published", id: 1 }
        }
        return {
          pid: ends?.error === undefined ? puppets.length : undefined,
          isReady: () => Deferred.isDoneUnsafe(ready),
          ready: Deferred.await(ready),
          failing: () => [],
          ask: (question) =>
            Effect.suspend(() => {
              const word = typeof question === "string" ? question : "build"
              if (word !== "ping") heard.push(word)
              const given = answers(word) ? Effect.succeed(answerTo(question)) : Effect.never
              return Effect.raceFirst(given, Effect.as(Deferred.await(ended), undefined))
            }),
          tell: (message) => {
            if (message.type === "service") failing = message.failing
            else heard.push(message.type)
          },
          stop: Effect.sync(() => {
            heard.push("stop")
            if (stops) end({ code: 0, signal: null })
          }),
          kill: Effect.sync(() => end(killed)),
          ended: Deferred.await(ended)
        }
      })
    const children = yield* makeChildren([0, 1, 2].map(taskOf), () => file, start)
    const { text: _, ...place } = file
    return {
      children,
      puppets,
      /** The child of a number that was started last. */
      last: (process: number): Puppet => {
        const found = puppets.findLast((one) => one.process === process)
        assert(found !== undefined)
        return found
      },
      reload: Effect.suspend(() => {
        const next = { ...place, text: "new" }
        return children.reload(next, Effect.sync(() => void (file = next)))
      })
    }
  })

/** Waits until something is so, while other fibers run. Fails if they have come to rest long ago. */
const until = (isSo: () => boolean, turns = 10_000): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (isSo()) return Effect.void
    assert.isAbove(turns, 0, `not so: ${isSo}`)
    return Effect.andThen(Effect.yieldNow, until(isSo, turns - 1))
  })

/** What the log says of the children. */
const logged = (event: string) =>
  records.filter((record) => record.event === event).map(({ fields }) => fields["process"])

describe("a child", () => {
  test("that never serves keeps nobody from reloading, and all others know of it", () =>
    Effect.gen(function*() {
      const { children, last, reload } = yield* made((process) => process === 2 ? { ends: failed } : {})
      const begun = yield* Effect.forkChild(children.begin)
      yield* TestClock.adjust("1 minute")
      assert.isDefined(begun.pollUnsafe())
      assert.deepStrictEqual(children.failing(60_000), ["process_2"])
      for (const process of [0, 1]) assert.deepStrictEqual(last(process).failing(), ["process_2"])
      yield* reload
      for (const process of [0, 1]) assert.deepStrictEqual(last(process).heard, ["build", "publish"])
    }))

  test("that keeps ending is not ready again before it serves", () =>
    Effect.gen(function*() {
      const { children, last, puppets } = yield* made((process, earlier) => ({
        serves: process !== 2 || earlier === 0
      }))
      yield* children.begin
      const failing = () => Effect.map(lifeMillis, children.failing)
      for (const count of [3, 4]) {
        yield* until(() => puppets.length === count)
        last(2).end(killed)
        yield* TestClock.adjust("1 second")
      }
      yield* until(() => puppets.length === 5)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* failing(), ["process_2"])
      last(2).serve()
      yield* until(() => logged("server_process_ready").length === 4)
      assert.deepStrictEqual(yield* failing(), ["process_2"])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* failing(), [])
    }))

  test("that waits for its next start is started at once by a reload, which names it", () =>
    Effect.gen(function*() {
      const { children, last, puppets, reload } = yield* made((process, earlier) =>
        process === 2 && earlier < 4 ? { ends: failed } : {}
      )
      yield* children.begin
      yield* TestClock.adjust("4 seconds") // after this, the wait is 7 seconds
      yield* until(() => logged("server_process_ended").length === 4)
      assert.deepStrictEqual(logged("server_process_unasked"), [])
      yield* reload
      yield* until(() => puppets.length === 7)
      assert.deepInclude(last(2), { process: 2, text: "new" })
      assert.deepStrictEqual(logged("server_process_unasked"), [2])
      yield* reload
      assert.deepStrictEqual(logged("server_process_unasked"), [2])
    }))

  test("that ends during a reload refuses it, with what to do", () =>
    Effect.gen(function*() {
      const { children, last, puppets, reload } = yield* made(() => ({ answers: (question) => question !== "build" }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      const refused = yield* Effect.forkChild(Effect.flip(reload))
      yield* until(() => last(0).heard.includes("build"))
      for (const { end } of puppets) end(killed)
      const { message } = yield* Fiber.join(refused)
      assert.strictEqual(message, "Process 0 ended during the reload. Reload once more.")
    }))

  test("that the system cannot start is logged with the reason, and not as started", () =>
    Effect.gen(function*() {
      const { children, last, puppets } = yield* made((process, earlier) =>
        process === 2 && earlier === 1 ? { ends: { code: null, signal: null, error: "EAGAIN" } } : {}
      )
      yield* children.begin
      yield* until(() => puppets.length === 3)
      last(2).end(killed)
      yield* until(() => puppets.length === 4)
      yield* TestClock.adjust("1 second")
      yield* until(() => logged("server_process_ready").length === 4)
      assert.deepStrictEqual(logged("server_process_started"), [0, 1, 2, 2])
      const ends = records.filter(({ event }) => event === "server_process_ended").map(({ fields }) => fields["error"])
      assert.deepStrictEqual(ends, [undefined, "EAGAIN"])
    }))

  test("that the system cannot start at first ends the service with the reason", () =>
    Effect.gen(function*() {
      const ends = { code: null, signal: null, error: "EMFILE" }
      const { children } = yield* made(() => ({ ends }))
      const { message } = yield* Effect.flip(children.begin)
      assert.strictEqual(message, "The system could not start process 0 (EMFILE).")
    }))

  test("is not started after the stop if its start had to wait for a reload", () =>
    Effect.gen(function*() {
      const { children, last, puppets, reload } = yield* made((process) => ({
        answers: (question) => process !== 1 || question !== "build",
        stops: process !== 1
      }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      const reloading = yield* Effect.forkChild(reload)
      yield* until(() => last(1).heard.includes("build"))
      last(2).end(killed)
      yield* until(() => logged("server_process_ended").length === 1)
      const stopped = yield* Effect.forkChild(children.stop(70_000))
      yield* until(() => last(1).heard.includes("stop"))
      yield* Fiber.interrupt(reloading)
      last(1).end({ code: 0, signal: null })
      yield* Fiber.join(stopped)
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(puppets, 3)
    }))
})

describe("a child that does not answer", () => {
  test("is replaced, and its reload refused", () =>
    Effect.gen(function*() {
      const frozen = (process: number, earlier: number) => process === 2 && earlier === 0
      const { children, last, puppets, reload } = yield* made((process, earlier) => ({
        answers: () => !frozen(process, earlier)
      }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      const refused = yield* Effect.forkChild(Effect.flip(reload))
      yield* TestClock.adjust("1 minute")
      assert.include((yield* Fiber.join(refused)).message, "Process 2 does not answer")
      yield* until(() => puppets.length === 4)
      assert.deepInclude(last(2), { process: 2, text: "old" })
      assert.deepStrictEqual(logged("server_process_silent"), [2])
      yield* reload
      assert.deepStrictEqual(last(1).heard, ["build", "publish"])
    }))

  test("is replaced without a reload if it is silent for a minute", () =>
    Effect.gen(function*() {
      let isStuck = false
      const { children, last, puppets } = yield* made((process, earlier) => ({
        answers: () => !isStuck || process !== 2 || earlier > 0
      }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      yield* TestClock.adjust("1 hour")
      assert.lengthOf(puppets, 3)
      isStuck = true
      yield* TestClock.adjust("1 minute")
      isStuck = false
      yield* TestClock.adjust("1 hour")
      assert.lengthOf(puppets, 3)
      isStuck = true
      yield* TestClock.adjust("2 minutes")
      yield* until(() => puppets.length === 4)
      assert.strictEqual(last(2).process, 2)
      assert.deepStrictEqual(logged("server_process_silent"), [2])
    }))

  test("is replaced with the new configuration if it does not serve what it has prepared", () =>
    Effect.gen(function*() {
      const { children, last, puppets, reload } = yield* made((process, earlier) => ({
        answers: (question) => process !== 2 || earlier > 0 || question !== "publish"
      }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      const reloaded = yield* Effect.forkChild(reload)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(reloaded)
      yield* until(() => puppets.length === 4)
      assert.deepInclude(last(2), { process: 2, text: "new" })
    }))

  test("stays if it only prepares for too long, and all others drop the configuration", () =>
    Effect.gen(function*() {
      const { children, puppets, reload } = yield* made((process) => ({
        answers: (question) => process !== 0 || question !== "build"
      }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      const refused = yield* Effect.forkChild(Effect.flip(reload))
      yield* TestClock.adjust("1 hour")
      assert.include((yield* Fiber.join(refused)).message, "Process 0 does not answer")
      for (const { heard } of puppets) assert.deepStrictEqual(heard, ["build", "abandon"])
    }))

  test("is started again during a reload if it has not finished its start", () =>
    Effect.gen(function*() {
      const { children, last, puppets, reload } = yield* made((process, earlier) => ({
        serves: process !== 2 || earlier !== 1
      }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      last(2).end(killed)
      yield* until(() => puppets.length === 4)
      const reloaded = yield* Effect.forkChild(reload)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(reloaded)
      yield* until(() => puppets.length === 5)
      assert.deepInclude(last(2), { process: 2, text: "new" })
    }))

  test("is ended if it does not stop in time", () =>
    Effect.gen(function*() {
      const { children, puppets } = yield* made((process) => ({ stops: process !== 1 }))
      yield* children.begin
      yield* until(() => puppets.length === 3)
      const stopped = yield* Effect.forkChild(children.stop(70_000))
      yield* TestClock.adjust("69 seconds")
      assert.deepStrictEqual(logged("server_process_silent"), [])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopped)
      assert.deepStrictEqual(logged("server_process_silent"), [1])
    }))
})
