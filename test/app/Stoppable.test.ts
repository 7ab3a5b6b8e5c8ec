import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Host } from "../../src/app/Host.ts"
import { untilStopped } from "../../src/app/Stoppable.ts"
import { useTests } from "../support/UseTests.ts"

const { test } = useTests()

const nothing = { isTerminal: false, write: () => {} }
const hostWith = (stopSignal: Host["Service"]["process"]["stopSignal"]): Host["Service"] => ({
  cwd: "/",
  env: {},
  stdin: {
    isTerminal: false,
    readLine: Effect.succeed(""),
    nextLine: Effect.undefined,
    readAll: () => Effect.succeed(new Uint8Array()),
    readHidden: () => Effect.succeed("")
  },
  stdout: { ...nothing, send: () => Effect.succeed(true), flushed: Effect.succeed(undefined) },
  stderr: nothing,
  process: {
    version: "1",
    migrations: "",
    panel: { folder: "", htmx: "" },
    site: "",
    pid: 1,
    program: "acme-svc",
    stopSignal,
    reloadSignal: Effect.never,
    uncaught: Effect.never
  }
})

describe("untilStopped", () => {
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    test(`interrupts a program after ${signal}, and fails with a message that says what is left`, () =>
      Effect.gen(function*() {
        const done: Array<string> = []
        const program = Effect.onInterrupt(Effect.never, () => Effect.sync(() => done.push("recorded")))
        const left = Effect.sync(() => `Stopped; ${done.length} row is left.`)
        const failure = yield* Effect.flip(untilStopped(program, left)).pipe(
          Effect.provideService(Host, hostWith(Effect.succeed(signal)))
        )
        assert.deepInclude(failure, { _tag: "CommandFailed", code, message: "Stopped; 1 row is left." })
      }))
  }

  test("keeps the result or the failure of a program that ends by itself", () =>
    Effect.gen(function*() {
      const left = Effect.succeed("")
      const ended = untilStopped(Effect.succeed(7), left)
      assert.strictEqual(yield* Effect.provideService(ended, Host, hostWith(Effect.never)), 7)
      const failed = Effect.flip(untilStopped(Effect.fail("mine"), left))
      assert.strictEqual(yield* Effect.provideService(failed, Host, hostWith(Effect.never)), "mine")
    }))
})
