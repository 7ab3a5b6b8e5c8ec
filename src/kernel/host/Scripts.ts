import { Context, Data, Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import type { Readable } from "node:stream"
import { traced } from "../telemetry/Tracing.ts"
import { codeOf, exhausted, isExhaustion } from "./Exhausted.ts"

/** One run of a program. */
export interface ScriptRequest {
  /** Relative paths start at the working directory; nothing is looked up in PATH. */
  readonly path: string
  readonly args: ReadonlyArray<string>
  /** The whole environment but for a minimal PATH. */
  readonly env: { readonly [name: string]: string }
  /** Written to standard input, which else is empty. A program that does not read it is no error. */
  readonly stdin: string | Uint8Array | undefined
  /** For the wait for a turn and the run together. */
  readonly timeoutMillis: number
  /** Bytes of standard output and, apart from that, of standard error that are read. */
  readonly maxOutputBytes: number
  /** Bounds the scripts that are run for one purpose; `undefined` where who asks is bounded already. */
  readonly turns: { readonly take: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> } | undefined
}

/** How a program ended by itself. */
export interface ScriptOutcome {
  /** The exit code, or the name of the signal that ended it. */
  readonly exit: number | string
  readonly stdout: Buffer
  readonly stderr: Buffer
}

const longestLine = 500

const firstLine = (output: Buffer): string | undefined =>
  output.toString("utf8").split(/\r?\n/)
    .map((line) => line.replaceAll(/\p{Cc}/gu, " ").trim())
    .find((line) => line !== "")?.slice(0, longestLine)

/**
 * What a program says of its end: its first line with anything on it, cut and without what a terminal or a log would act
 * on; of standard output, else of standard error.
 */
export const wordsOf = ({ stderr, stdout }: ScriptOutcome): string | undefined => firstLine(stdout) ?? firstLine(stderr)

/** The program could not be started, or did not end in time and was killed. `detail` holds nothing it was given. */
export class ScriptFailed extends Data.TaggedError("ScriptFailed")<{
  readonly reason: "not_started" | "timeout"
  readonly detail: string
}> {}

const minimalPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** What is left in the pipes once the program has ended has this long to arrive. */
const remainderMillis = 250

const located = (path: string): string => path.includes("/") ? path : `./${path}`

/** Reads up to `max` bytes; then it stops reading, so that a program which goes on writing waits for its timeout. */
const collect = (stream: Readable, max: number): () => Buffer => {
  const chunks: Array<Buffer> = []
  let length = 0
  stream.on("error", () => {})
  stream.on("data", (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length >= max) stream.pause()
  })
  return () => Buffer.concat(chunks).subarray(0, max)
}

const start = (request: ScriptRequest): Effect.Effect<ScriptOutcome, ScriptFailed> =>
  Effect.async((resume) => {
    const notStarted = (cause: unknown) => {
      const code = codeOf(cause) ?? "unusable arguments"
      const why = isExhaustion(code) ? exhausted(code) : code
      return new ScriptFailed({ reason: "not_started", detail: `could not be started: ${why}` })
    }
    const launch = () =>
      spawn(located(request.path), request.args, {
        shell: false,
        // A group of its own, so that what it starts can be ended with it.
        detached: true,
        env: { PATH: minimalPath, ...request.env },
        stdio: ["pipe", "pipe", "pipe"]
      })
    let child: ReturnType<typeof launch>
    try {
      child = launch()
    } catch (cause) {
      return resume(notStarted(cause))
    }
    child.once("error", (cause) => {
      if (child.pid === undefined) resume(notStarted(cause))
    })
    // Where this host has no descriptors left there are no pipes either.
    const { pid } = child
    if (pid === undefined) return
    const killGroup = () => {
      try {
        process.kill(-pid, "SIGKILL")
      } catch {
        // Nobody is left in it.
      }
    }
    const stdout = collect(child.stdout, request.maxOutputBytes)
    const stderr = collect(child.stderr, request.maxOutputBytes)
    const letGo = () => {
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
    }
    let remainder: NodeJS.Timeout | undefined
    let ended: number | string | undefined
    const settle = () => {
      clearTimeout(remainder)
      if (ended === undefined) return
      resume(Effect.succeed({ exit: ended, stdout: stdout(), stderr: stderr() }))
      letGo()
    }
    child.once("exit", (code, signal) => {
      ended = code ?? signal ?? "unknown"
      // What it left running may hold the pipes open, and is not waited for.
      killGroup()
      remainder = setTimeout(settle, remainderMillis)
    })
    child.once("close", settle)
    child.stdin.on("error", () => {})
    child.stdin.end(request.stdin ?? "")
    return Effect.sync(() => {
      clearTimeout(remainder)
      killGroup()
      letGo()
    })
  })

/**
 * Programs of the operator: no shell, an environment built from nothing, a process group of their own that is killed as
 * a whole when the time is up or nobody waits any more.
 */
export class Scripts extends Context.Tag("acme/kernel/host/Scripts")<Scripts, {
  readonly run: (request: ScriptRequest) => Effect.Effect<ScriptOutcome, ScriptFailed>
}>() {
  /** Runs them. */
  static readonly layer: Layer.Layer<Scripts> = Layer.succeed(this, {
    run: (request) =>
      traced(
        "script",
        () => ({ path: request.path }),
        (request.turns?.take(start(request)) ?? start(request)).pipe(Effect.timeoutFail({
          duration: request.timeoutMillis,
          onTimeout: () =>
            new ScriptFailed({ reason: "timeout", detail: `did not end within ${request.timeoutMillis} ms` })
        })),
        ({ exit }) => ({ exit })
      )
  })

  /** Answers from a function, which sees every request. */
  static readonly layerScripted = (
    script: (request: ScriptRequest) => Effect.Effect<ScriptOutcome, ScriptFailed>
  ): Layer.Layer<Scripts> => Layer.succeed(this, { run: script })
}
