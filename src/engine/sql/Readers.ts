import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ChildProcess } from "node:child_process"
import { fork } from "node:child_process"
import { setPriority } from "node:os"
import { fileURLToPath } from "node:url"
import type { Connections, Driver, Row } from "./Driver.ts"
import { makeReaderSemaphore } from "./ReaderSemaphore.ts"
import { Late, SqlError } from "./SqlError.ts"
import type { Answer, Question } from "./sqliteReader.ts"

/*
 * Reads SQLite in separate processes. The engine works inside the process that calls it, and cannot be interrupted
 * there, so a long read would delay every request and job. Therefore separate processes run the reads for lists, counts
 * and samples. A process is started when it is first needed, and killed if its read takes too long or if the read is no
 * longer needed.
 */

/** The reader program, which is beside this file, or beside the bundle. */
const program = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "./sqliteReader.ts" : "./sqliteReader.js", import.meta.url)
)

const failure = (message: string, code?: string) =>
  new SqlError({ cause: Object.assign(new Error(message), code === undefined ? {} : { code }), message })

const late = (millis: number): SqlError => {
  const message = `not done within ${millis} ms`
  return new SqlError({ cause: new Late(message), message })
}

type Result = Effect.Effect<ReadonlyArray<Row>, SqlError>

/** One reader process, and its current query. */
interface Reader {
  readonly child: ChildProcess
  answer: ((result: Result) => void) | undefined
  isGone: boolean
  /** The timer that stops the process if it has no query for a while. */
  idle: NodeJS.Timeout | undefined
}

// Operators can wait longer than clients that want a certificate. So these processes get less time on a busy machine.
const niceness = 10

const start = (file: string): Reader => {
  const child = fork(program, [file], {
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  // The priority is set here and not by the program itself, so that starting the program has low priority too. If reads
  // are cancelled again and again, programs start often.
  if (child.pid !== undefined) setPriority(child.pid, niceness)
  const reader: Reader = { child, answer: undefined, isGone: false, idle: undefined }
  const end = (message: string) => {
    reader.isGone = true
    reader.answer?.(failure(message))
  }
  child.on("message", (said: Answer) => {
    reader.answer?.("rows" in said ? Effect.succeed(said.rows) : failure(said.message, said.code))
  })
  child.on("error", (error) => end(`the process that reads for listings failed: ${error.message}`))
  child.on("exit", (code, signal) => end(`the process that reads for listings ended with ${signal ?? code}`))
  return reader
}

const stop = (reader: Reader): void => {
  clearTimeout(reader.idle)
  reader.isGone = true
  reader.child.kill("SIGKILL") // the process holds only locks, which the system releases
}

/**
 * How many milliseconds a read may still take when it is no longer needed. After that its process is killed. Starting
 * another process takes about as long.
 */
const unwantedMillis = 100

/** Sends a query to a reader. An interruption cancels the read: its process is killed, unless the answer comes soon. */
const ask = (reader: Reader, question: Question, endsAt: number, wholeMillis: number): Result =>
  Effect.callback((resume) => {
    if (reader.isGone) return resume(late(wholeMillis))
    const end = () => {
      stop(reader)
      reader.answer?.(late(wholeMillis))
    }
    const timer = setTimeout(end, Math.max(0, endsAt - performance.now()))
    reader.answer = (result) => {
      clearTimeout(timer)
      reader.answer = undefined
      resume(result)
    }
    reader.child.send(question, (error) => {
      if (error !== null) {
        reader.answer?.(failure(`the process that reads for listings cannot be asked: ${error.message}`))
      }
    })
    return Effect.callback<void>((done) => {
      clearTimeout(timer)
      const over = () => {
        clearTimeout(unwanted)
        reader.answer = undefined
        done(Effect.void)
      }
      const unwanted = setTimeout(() => {
        stop(reader)
        over()
      }, unwantedMillis)
      reader.answer = over
    })
  })

const idleMillis = 60_000

/** Makes a pool of at most `readers` reader processes for an existing file. */
export const makeReaders = (
  options: { readonly path: string; readonly readers: number; readonly acquire_timeout_ms: number }
): Effect.Effect<
  { readonly aside: NonNullable<Driver["aside"]>; readonly connections: () => Connections },
  never,
  Scope.Scope
> => {
  const turns = makeReaderSemaphore(options.readers, options.acquire_timeout_ms)
  const free: Array<Reader> = []
  const all = new Set<Reader>()
  const forget = (reader: Reader) => {
    all.delete(reader)
    const at = free.indexOf(reader)
    if (at >= 0) free.splice(at, 1)
  }
  const take = Effect.sync((): Reader => {
    const kept = free.pop()
    clearTimeout(kept?.idle)
    if (kept !== undefined && !kept.isGone) return kept
    const reader = start(options.path)
    all.add(reader)
    reader.child.on("exit", () => forget(reader))
    return reader
  })
  const giveBack = (reader: Reader) =>
    Effect.sync(() => {
      if (reader.isGone) return forget(reader)
      reader.idle = setTimeout(() => {
        stop(reader)
        forget(reader)
      }, idleMillis)
      reader.idle.unref()
      free.push(reader)
    })
  return Effect.as(
    Effect.addFinalizer(() => Effect.sync(() => all.forEach(stop))),
    {
      aside: (patienceMillis, body) =>
        turns.take(Effect.acquireUseRelease(take, (reader) => {
          const endsAt = performance.now() + patienceMillis
          return body({ execute: (text, params) => ask(reader, { text, params }, endsAt, patienceMillis) })
        }, giveBack)),
      connections: () => ({ idle: free.length, busy: all.size - free.length })
    }
  )
}
