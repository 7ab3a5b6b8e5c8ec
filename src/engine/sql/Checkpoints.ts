import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Worker } from "node:worker_threads"
import { SqlError } from "./SqlError.ts"
import type { Answer, Copied, Mode } from "./sqliteCheckpointer.ts"

/*
 * Keeps the write-ahead file of a SQLite database small, without making the event loop wait for the disk. A commit only
 * appends to that file, and a thread copies the file into the main file of the database from time to time. The engine
 * reuses the write-ahead file only when all of it has been copied. Under load there is always one more commit. So the
 * thread copies twice: first most of the file, while the service continues to write, and then the rest, while writers
 * wait.
 */

/** The number of frames (pages of 4 KiB) that the write-ahead file grows by before it is copied. */
const mostFrames = 4096

/** The program of the thread, which is beside this file, or beside the bundle. */
const program = new URL(
  import.meta.url.endsWith(".ts") ? "./sqliteCheckpointer.ts" : "./sqliteCheckpointer.js",
  import.meta.url
)

/** How long this process waits for the thread to end. The thread cannot be ended while its copy waits for the disk. */
const patienceMillis = 5000

/** Starts the thread, and returns the function that asks it to copy. If the thread ends by itself, this is a defect. */
const startThread = (
  path: string
): Effect.Effect<(mode: Mode) => Effect.Effect<Copied, SqlError>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const thread = yield* Effect.acquireRelease(
      Effect.sync(() => new Worker(program, { workerData: path })),
      (thread) => Effect.timeoutOption(Effect.interruptible(Effect.promise(() => thread.terminate())), patienceMillis)
    )
    let broken: Effect.Effect<never> | undefined
    let answer: ((result: Effect.Effect<Copied, SqlError>) => void) | undefined
    const fail = (error: unknown) => {
      broken ??= Effect.die(error)
      answer?.(broken)
    }
    thread.on("error", fail)
    thread.on("exit", (code) => fail(new Error(`the thread of the checkpoints ended with ${code}`)))
    thread.on("message", (said: Answer) => {
      answer?.(
        "frames" in said
          ? Effect.succeed(said)
          : Effect.fail(new SqlError({ cause: Object.assign(new Error(said.message), { code: said.code }) }))
      )
    })
    return (mode) =>
      Effect.callback((resume) => {
        if (broken !== undefined) return resume(broken)
        answer = resume
        thread.postMessage(mode)
        return Effect.sync(() => void (answer = undefined))
      })
  })

/** If more frames than this were not copied, a reader still needs an old state of the database. */
const fewFrames = 1024

/**
 * Makes the checkpoints of a file. `grown` waits for some more commits, and `alone` runs an effect while this process
 * writes nothing. A failed checkpoint is passed to `failed`, and tried again after more commits.
 */
export const checkpoints = (options: {
  readonly path: string
  readonly grown: Effect.Effect<void>
  readonly alone: <A, E>(use: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>
  readonly failed: (error: SqlError) => Effect.Effect<void>
}): Effect.Effect<never> =>
  Effect.scoped(Effect.gen(function*() {
    const copy = yield* startThread(options.path)
    let due = mostFrames
    const pass = Effect.gen(function*() {
      if ((yield* copy("NOOP")).frames < due) return
      const { copied, frames } = yield* copy("PASSIVE")
      // Writers do not wait while a reader prevents the reuse of the file anyway.
      const isReusable = frames - copied <= fewFrames && !(yield* options.alone(copy("RESTART"))).isBusy
      due = isReusable ? mostFrames : frames + mostFrames
    })
    for (;;) {
      yield* options.grown
      yield* Effect.catch(pass, options.failed)
    }
  }))
