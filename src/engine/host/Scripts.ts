import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import type { Readable } from "node:stream"
import { oneLine } from "../HiddenText.ts"
import { traced } from "../telemetry/Tracing.ts"
import { codeOf, exhausted, isExhaustion } from "./Exhausted.ts"

/** One run of a program. */
export interface ScriptRequest {
  /** A relative path starts at the working directory. PATH is not searched. */
  readonly path: string
  readonly args: ReadonlyArray<string>
  /** The whole environment, except for a minimal PATH. */
  readonly env: { readonly [name: string]: string }
  /**
   * Written to standard input; without it, standard input is empty. It is not an error if the program does not read it.
   */
  readonly stdin: string | Uint8Array | undefined
  /** Limit for the wait for a turn and the run together. */
  readonly timeoutMillis: number
  /** How many bytes of standard output are read, and how many of standard error. */
  readonly maxOutputBytes: number
  /** Output beyond that is read and thrown away. Otherwise the program waits at it, until its timeout. */
  readonly discardsRest?: boolean
  /** Bounds the scripts that run for one purpose; `undefined` if the caller is bounded already. */
  readonly turns: { readonly take: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> } | undefined
}

/** How a program ended that was not killed by its timeout. */
export interface ScriptOutcome {
  /** The exit code, or the name of the signal that ended it. */
  readonly exit: number | string
  readonly stdout: Buffer
  readonly stderr: Buffer
}

const longestLine = 500

const firstLine = (output: Buffer): string | undefined =>
  output.toString("utf8").split(/\r?\n/)
    .map(oneLine)
    .find((line) => line !== "")?.slice(0, longestLine)

/**
 * What a program says about its end: its first line that is not blank, cut, and without hidden characters, on which a
 * terminal or a log would act. Standard output comes first, then standard error.
 */
export const wordsOf = ({ stderr, stdout }: ScriptOutcome): string | undefined => firstLine(stdout) ?? firstLine(stderr)

const longestRest = 2000

/**
 * What a program printed beside its {@link wordsOf}, on one line with escapes, cut; `undefined` if there is nothing. Traces and
 * usage texts begin with a line that says little.
 */
export const restOf = (outcome: ScriptOutcome): string | undefined => {
  const [, ...rest] = [outcome.stdout, outcome.stderr].flatMap((output) =>
    output.toString("utf8").split(/\r?\n/).map(oneLine).filter((line) => line !== "")
  )
  return rest.length === 0 ? undefined : rest.join(" | ").slice(0, longestRest)
}

/**
 * The program could not be started, or did not end in time and was killed. `detail` holds nothing of its arguments,
 * environment or input.
 */
export class ScriptFailed extends Data.TaggedError("ScriptFailed")<{
  readonly reason: "not_started" | "timeout"
  readonly detail: string
  /** What a program that timed out had printed, up to the bound of its output. */
  readonly stdout?: Buffer
}> {}

/**
 * The most octets of a variable that a program is sure to get. Linux takes 128 KiB for one of them, and for all of them with
 * the arguments it may take no more than that, if the stack of a process is small.
 */
export const longestVariable = 65_536

const tooLong = "its arguments and variables are longer than this system takes (E2BIG)"

const minimalPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** After the program has ended, the rest of its output has this long to arrive from the pipes. */
const remainderMillis = 250

const located = (path: string): string => path.includes("/") ? path : `./${path}`

/** What a program has printed so far, and whether that is all that is read. */
interface Collected {
  readonly read: () => Buffer
  readonly isFull: () => boolean
}

/** Keeps up to `max` bytes. What follows is thrown away or, by default, left unread. */
const collect = (stream: Readable, max: number, discardsRest = false): Collected => {
  const chunks: Array<Buffer> = []
  let length = 0
  stream.on("error", () => {})
  stream.on("data", (chunk: Buffer) => {
    if (length < max) chunks.push(chunk)
    length += chunk.length
    if (length >= max && !discardsRest) stream.pause()
  })
  return { read: () => Buffer.concat(chunks).subarray(0, max), isFull: () => length >= max }
}

/**
 * What is wrong at a path. If the file exists but the system says that it does not, the interpreter named in its first
 * line is missing.
 */
const atPath = (path: string, code: string): string =>
  code !== "ENOENT" ? `${path} (${code})` : existsSync(located(path))
    ? `the program that its first line names is not there: ${path} (${code})`
    : `there is no ${path} (${code})`

const start = (
  request: ScriptRequest,
  /** Gets standard output and standard error. */
  onStarted: (stdout: Collected, stderr: Collected) => void
): Effect.Effect<ScriptOutcome, ScriptFailed> =>
  Effect.callback((resume) => {
    const notStarted = (cause: unknown) => {
      const code = codeOf(cause) ?? "unusable arguments"
      const why = isExhaustion(code) ? exhausted(code) : code === "E2BIG" ? tooLong : atPath(request.path, code)
      return new ScriptFailed({ reason: "not_started", detail: `could not be started: ${why}` })
    }
    const launch = () =>
      spawn(located(request.path), request.args, {
        shell: false,
        // A process group of its own, so that the processes it starts can be killed with it.
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
    // Without a process there are no pipes: this host may have no descriptors left.
    const { pid } = child
    if (pid === undefined) return
    const killGroup = () => {
      try {
        process.kill(-pid, "SIGKILL")
      } catch {
        // The group has no process left.
      }
    }
    const stdout = collect(child.stdout, request.maxOutputBytes, request.discardsRest)
    const stderr = collect(child.stderr, request.maxOutputBytes, request.discardsRest)
    onStarted(stdout, stderr)
    const letGo = () => {
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
    }
    let remainder: NodeJS.Timeout | undefined
    let ended: number | string | undefined
    const settle = () => {
      clearTimeout(remainder)
      if (ended === undefined) return
      resume(Effect.succeed({ exit: ended, stdout: stdout.read(), stderr: stderr.read() }))
      letGo()
    }
    child.once("exit", (code, signal) => {
      ended = code ?? signal ?? "unknown"
      // Processes that it left running may hold the pipes open. They are not waited for.
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
 * Runs programs of the operator: without a shell, with an environment built from nothing, and in a process group of
 * their own. The whole group is killed when the time is up or the caller is interrupted.
 */
export class Scripts extends Context.Service<Scripts, {
  readonly run: (request: ScriptRequest) => Effect.Effect<ScriptOutcome, ScriptFailed>
}>()("acme/engine/host/Scripts") {
  /** Runs real programs. */
  static readonly layer: Layer.Layer<Scripts> = Layer.succeed(this, {
    run: (request) =>
      Effect.suspend(() => {
        let printed: ReadonlyArray<Collected> = []
        const started = start(request, (...outputs) => {
          printed = outputs
        })
        const late = `did not end within ${request.timeoutMillis} ms`
        const flooded = `printed more than the ${request.maxOutputBytes} octets that are read, and ${late}`
        return traced(
          "script",
          () => ({ path: request.path }),
          (request.turns?.take(started) ?? started).pipe(Effect.timeoutOrElse({
            duration: request.timeoutMillis,
            orElse: () =>
              Effect.fail(
                new ScriptFailed({
                  reason: "timeout",
                  detail: printed.some(({ isFull }) => isFull()) ? flooded : late,
                  stdout: printed[0]?.read() ?? Buffer.alloc(0)
                })
              )
          })),
          ({ exit }) => ({ exit })
        )
      })
  })

  /** Runs nothing: a function answers every request. */
  static readonly layerScripted = (
    script: (request: ScriptRequest) => Effect.Effect<ScriptOutcome, ScriptFailed>
  ): Layer.Layer<Scripts> => Layer.succeed(this, { run: script })
}
