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

/** What gives programs their turns. Runs `otherwise` if there is no turn within `millis`. */
interface Turns {
  readonly takeWithin: <A, E, R, B, E2, R2>(
    millis: number,
    self: Effect.Effect<A, E, R>,
    otherwise: Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
}

/** One run of a program. */
export interface ScriptRequest {
  /** The path of the program. A relative path begins in the working directory. PATH is not searched. */
  readonly path: string
  readonly args: ReadonlyArray<string>
  /** The whole environment of the program. Only a minimal PATH is added. */
  readonly env: { readonly [name: string]: string }
  /** The content of standard input. If it is undefined, standard input is empty. A program need not read its input. */
  readonly stdin: string | Uint8Array | undefined
  /** The time limit, in milliseconds. The wait for a turn is not part of it, and has the same limit. */
  readonly timeoutMillis: number
  /** The highest number of bytes on standard output, and also on standard error. */
  readonly maxOutputBytes: number
  /**
   * Whether output beyond the limit is read and discarded. If not, a program that writes more waits until its timeout.
   */
  readonly discardsRest?: boolean
  /** Limits how many scripts run at the same time for one purpose. `undefined` if the caller is already limited. */
  readonly turns: Turns | undefined
}

/** The outcome of a program that was not killed by its timeout. */
export interface ScriptOutcome {
  /** The exit code, or the name of the signal that ended the program. */
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
 * Returns how a program explains its end: its first non-blank line, shortened, and without hidden characters that could
 * control a terminal or a log. Standard output is searched first, then standard error.
 */
export const wordsOf = ({ stderr, stdout }: ScriptOutcome): string | undefined => firstLine(stdout) ?? firstLine(stderr)

const longestRest = 2000

/**
 * Returns what a program printed besides its {@link wordsOf}, on one line with escapes, shortened. Returns `undefined`
 * if there is nothing else. The rest is useful because the first line of a trace or usage text says little.
 */
export const restOf = (outcome: ScriptOutcome): string | undefined => {
  const [, ...rest] = [outcome.stdout, outcome.stderr].flatMap((output) =>
    output.toString("utf8").split(/\r?\n/).map(oneLine).filter((line) => line !== "")
  )
  return rest.length === 0 ? undefined : rest.join(" | ").slice(0, longestRest)
}

/**
 * The program could not be started, or it did not end in time and was killed. `detail` contains nothing from the
 * program's arguments, environment or input.
 */
export class ScriptFailed extends Data.TaggedError("ScriptFailed")<{
  readonly reason: "not_started" | "timeout"
  readonly detail: string
  /** What the program had printed when it timed out, up to the limit of its output. */
  readonly stdout?: Buffer
}> {}

/**
 * A variable with at most this number of octets always reaches a program. Linux allows 128 KiB for one variable. If its
 * limit on the stack is low, Linux may allow only this number of octets for all variables and arguments together.
 */
export const longestVariable = 65_536

const tooLong = "its arguments and variables are longer than this system takes (E2BIG)"

const minimalPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** When the program has ended, the rest of its output must arrive within this number of milliseconds. */
const remainderMillis = 250

const located = (path: string): string => path.includes("/") ? path : `./${path}`

/** The output of a program so far, and whether its limit is reached. */
interface Collected {
  readonly read: () => Buffer
  readonly isFull: () => boolean
}

/** Collects up to `max` bytes of output. Further output is discarded or, by default, left unread. */
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
 * Returns what is wrong at a path. If the system reports that an existing file does not exist, the interpreter in the
 * first line of the file is missing.
 */
const atPath = (path: string, code: string): string =>
  code !== "ENOENT" ? `${path} (${code})` : existsSync(located(path))
    ? `the program that its first line names is not there: ${path} (${code})`
    : `there is no ${path} (${code})`

const start = (
  request: ScriptRequest,
  /** Called with standard output and standard error when the program has started. */
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
        // The program gets a process group of its own, so that the processes that it starts can be killed together with
        // it.
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
    // Without a process there are no pipes. The host may have no descriptors left.
    const { pid } = child
    if (pid === undefined) return
    const killGroup = () => {
      try {
        process.kill(-pid, "SIGKILL")
      } catch {
        // No process of the group is left.
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
      // Processes that the program left running may keep the pipes open. So they are killed, and the rest of the output
      // gets only `remainderMillis`.
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
 * Runs operators' programs without a shell, with a newly built environment. Each program has a process group of its
 * own. The whole group is killed when the time is up or when the caller is interrupted.
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
        const { timeoutMillis, turns } = request
        const late = `did not end within ${timeoutMillis} ms`
        const flooded = `printed more than the ${request.maxOutputBytes} octets that are read, and ${late}`
        const limited = Effect.timeoutOrElse(started, {
          duration: timeoutMillis,
          orElse: () =>
            Effect.fail(
              new ScriptFailed({
                reason: "timeout",
                detail: printed.some(({ isFull }) => isFull()) ? flooded : late,
                stdout: printed[0]?.read() ?? Buffer.alloc(0)
              })
            )
        })
        // Otherwise a program that is fast enough would be killed only because others ran before it.
        const waited = `did not begin within ${timeoutMillis} ms, because other programs ran`
        return traced(
          "script",
          () => ({ path: request.path }),
          turns?.takeWithin(
            timeoutMillis,
            limited,
            Effect.fail(new ScriptFailed({ reason: "not_started", detail: waited }))
          ) ?? limited,
          ({ exit }) => ({ exit })
        )
      })
  })

  /** Runs no program. A function returns the outcome of every request. */
  static readonly layerScripted = (
    script: (request: ScriptRequest) => Effect.Effect<ScriptOutcome, ScriptFailed>
  ): Layer.Layer<Scripts> => Layer.succeed(this, { run: script })
}
