import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { SqlError } from "./SqlError.ts"
import type { Answer, Mode } from "./sqliteCheckpointer.ts"

/*
 * Keeps the write-ahead file of a SQLite database small, without making the event loop wait for the disk. A commit only
 * appends to that file, and a thread copies the file into the main file of the database from time to time. The engine
 * reuses the write-ahead file only when all of it has been copied. Under load there is always one more commit. So the
 * thread copies twice: first most of the file, while the service continues to write, and then the rest, while writers
 * wait.
 */

/** The number of frames (pages of 4 KiB) that the write-ahead file grows by before it is copied. */
const mostFrames = 4096

const program = (): URL => {
  const here = import.meta.url
  const names = here.endsWith(".ts")
    ? ["./sqliteCheckpointer.ts"]
    : ["./sqliteCheckpointer.js", "../sqliteCheckpointer.js"]
  const files = names.map((name) => new URL(name, here))
  return files.find((file) => Fs.existsSync(fileURLToPath(file))) ?? new URL(names[0] ?? here, here)
}

/** Starts the thread, and returns the function that asks it to copy. If the thread ends by itself, this is a defect. */
const startThread = (
  path: string
): Effect.Effect<(mode: Mode) => Effect.Effect<number, SqlError>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Worker(program(), { workerData: path })),
      (thread) => Effect.promise(() => thread.terminate())
    ),
    (thread) => (mode) =>
      Effect.callback((resume) => {
        const stop = () => {
          thread.off("message", answered)
          thread.off("error", broken)
          thread.off("exit", ended)
        }
        const answered = (answer: Answer) => {
          stop()
          resume(
            "frames" in answer
              ? Effect.succeed(answer.frames)
              : Effect.fail(new SqlError({ cause: Object.assign(new Error(answer.message), { code: answer.code }) }))
          )
        }
        const broken = (error: unknown) => {
          stop()
          resume(Effect.die(error))
        }
        const ended = (code: number) => broken(new Error(`the thread of the checkpoints ended with ${code}`))
        thread.on("message", answered)
        thread.on("error", broken)
        thread.on("exit", ended)
        thread.postMessage(mode)
        return Effect.sync(stop)
      })
  )

/**
 * Makes the checkpoints of a file. `grown` waits for some more commits, and `alone` runs an effect while this process
 * writes nothing. A failed checkpoint is passed to `failed` and tried again after more commits. Nothing is lost: the
 * write-ahead file only grows.
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
      if ((yield* copy("NOOP")) < due) return
      yield* copy("PASSIVE")
      yield* options.alone(copy("RESTART"))
      yield* options.grown
      // If a reader prevented the reuse of the file, the file still has all frames.
      due = mostFrames + Math.max(0, (yield* copy("NOOP")) - mostFrames)
    })
    for (;;) {
      yield* options.grown
      yield* Effect.catch(pass, options.failed)
    }
  }))
