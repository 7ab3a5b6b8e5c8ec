import type { ChildProcessByStdio } from "node:child_process"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { patienceMs } from "./Patience.ts"
import { freePort } from "./Ports.ts"
import { watch } from "./Watchdog.ts"

/** The folder of this build. */
export const thisBuild = resolve(import.meta.dirname, "../..")

/** The runtime of the service, which is the one that `ACME_TEST_NODE` names or else that of the tests. */
export const runtime = process.env["ACME_TEST_NODE"] ?? process.execPath

/** The shortest configuration with which the service starts. */
export const minimalConfig = "[profiles.default]\nenabled = true\n"

/** A line of the service's JSON log. */
interface LogRecord {
  readonly timestamp: string
  readonly level: string
  readonly target: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly span: Readonly<Record<string, unknown>>
}

/** How a process of the service is run. */
export interface ProcessOptions {
  /** The text of `config.toml`, by default {@link minimalConfig}. With `null`, there is no file. */
  readonly config?: string | null
  /** Variables in addition to PATH and those for the JSON log. `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The working directory, by default a new temporary one that is removed afterwards. */
  readonly directory?: string
  /** `dist` runs the built `dist/main.js`. `source` runs `src/main.ts`, whose types are stripped. */
  readonly from?: "dist" | "source"
  /** The folder of the build that is run, by default {@link thisBuild}. */
  readonly build?: string
  /** Words of the command line after `serve`. */
  readonly flags?: ReadonlyArray<string>
}

/** How a server is started. */
export interface ServerOptions extends ProcessOptions {
  /** The URL of the database, by default that of a SQLite file in the working directory. */
  readonly databaseUrl?: string
  readonly tls?: boolean
  /** A port that is known to be free. By default the function chooses one. */
  readonly port?: number
  /** The event that shows that the server has started, by default `server_listening`. */
  readonly startedBy?: string
}

/** How a process ended. */
interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A finished process and its whole output. */
export interface Finished extends Exit {
  readonly stdout: string
  readonly stderr: string
  readonly records: ReadonlyArray<LogRecord>
  readonly directory: string
}

/** A line of stdout, with the record if the line is one of the log. */
interface Line {
  readonly text: string
  readonly record: LogRecord | undefined
}

interface Waiter {
  readonly wanted: (line: Line) => boolean
  readonly resolve: (line: Line) => void
  readonly reject: (error: Error) => void
}

const isRecord = (value: unknown): value is LogRecord =>
  typeof value === "object" && value !== null && "fields" in value && "level" in value

/** Returns the record of a line. In the format for people, a record has only time, level and event. */
const parseRecord = (line: string): LogRecord | undefined => {
  const [, timestamp, level, event] = /^(\d{4}-\S+Z) (DEBUG|INFO|WARN|ERROR) +(\w+)/.exec(line) ?? []
  if (timestamp !== undefined && level !== undefined) {
    return { timestamp, level: level.toLowerCase(), target: "", fields: { event }, span: {} }
  }
  try {
    const value: unknown = JSON.parse(line)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the records among the lines that a process wrote. */
export const recordsOf = (stdout: string): ReadonlyArray<LogRecord> =>
  stdout.split("\n").flatMap((line) => parseRecord(line) ?? [])

/** A run of the service's process, from its start to its exit. */
class Run {
  readonly pid: number
  readonly lines: Array<Line> = []
  readonly exited: Promise<Exit>
  stderr = ""
  private ended: Exit | undefined
  private readonly child: ChildProcessByStdio<null, Readable, Readable>
  private readonly waiters = new Set<Waiter>()

  constructor(directory: string, words: ReadonlyArray<string>, options: ProcessOptions) {
    const entry = join(options.build ?? thisBuild, options.from === "source" ? "src/main.ts" : "dist/main.js")
    const env: NodeJS.ProcessEnv = {
      PATH: process.env["PATH"],
      HOME: directory,
      NO_COLOR: "1",
      ACME_SVC_LOGGING__JSON_FORMAT: "true",
      ...options.env
    }
    this.child = spawn(runtime, [entry, ...words], {
      cwd: directory,
      env,
      stdio: ["ignore", "pipe", "pipe"]
    })
    watch(this.child)
    this.pid = this.child.pid ?? 0
    createInterface({ input: this.child.stdout }).on("line", (line) => this.onLine(line))
    this.child.stderr.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    this.exited = new Promise((done) =>
      this.child.once("close", (code, signal) => {
        this.ended = { code, signal }
        for (const waiter of this.waiters) waiter.reject(this.endedEarly())
        this.waiters.clear()
        done(this.ended)
      })
    )
  }

  private onLine(text: string): void {
    const line = { text, record: parseRecord(text) }
    this.lines.push(line)
    for (const waiter of this.waiters) {
      if (!waiter.wanted(line)) continue
      this.waiters.delete(waiter)
      waiter.resolve(line)
    }
  }

  get records(): ReadonlyArray<LogRecord> {
    return this.lines.flatMap(({ record }) => record ?? [])
  }

  get stdout(): string {
    return this.lines.map(({ text }) => `${text}\n`).join("")
  }

  private endedEarly(): Error {
    const { code, signal } = this.ended ?? { code: null, signal: null }
    return new Error(
      `the service ended (code ${code}, signal ${signal}) before it logged what was awaited\n${this.tail()}`
    )
  }

  tail(): string {
    return `${this.stderr.slice(-4000)}\n${this.stdout.slice(-4000)}`
  }

  waitFor(wanted: (line: Line) => boolean, what: string, timeoutMs: number): Promise<Line> {
    const seen = this.lines.find(wanted)
    if (seen !== undefined) return Promise.resolve(seen)
    if (this.ended !== undefined) return Promise.reject(this.endedEarly())
    return new Promise((done, fail) => {
      const timer = setTimeout(() => {
        this.waiters.delete(waiter)
        fail(new Error(`${what} was not logged in ${timeoutMs} ms\n${this.tail()}`))
      }, timeoutMs)
      const waiter: Waiter = {
        wanted,
        resolve: (line) => {
          clearTimeout(timer)
          done(line)
        },
        reject: (error) => {
          clearTimeout(timer)
          fail(error)
        }
      }
      this.waiters.add(waiter)
    })
  }

  signal(signal: NodeJS.Signals): void {
    if (this.ended === undefined) this.child.kill(signal)
  }
}

/**
 * Returns the working directory of a process with its configuration, and a function that removes what was made for it.
 */
export const prepare = (options: ProcessOptions): { readonly directory: string; readonly remove: () => void } => {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), "acme-server-"))
  const config = options.config === undefined ? minimalConfig : options.config
  if (config !== null) writeFileSync(join(directory, "config.toml"), config)
  const remove = () => {
    if (options.directory === undefined) rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
  return { directory, remove }
}

/**
 * Runs one command of the service to its end, for at most `timeoutMs`. Returns how the process exited, and its output.
 * The temporary directory is removed, so callers that read its files must give `directory`.
 */
export const runToEnd = async (
  words: ReadonlyArray<string>,
  options: ProcessOptions = {},
  timeoutMs = patienceMs
): Promise<Finished> => {
  const { directory, remove } = prepare(options)
  const run = new Run(directory, [...words, ...options.flags ?? []], options)
  const timer = setTimeout(() => run.signal("SIGKILL"), timeoutMs)
  const exit = await run.exited
  clearTimeout(timer)
  remove()
  return { ...exit, stdout: run.stdout, stderr: run.stderr, records: run.records, directory }
}

/** A running service. Every wait ends at an event or fails at its time limit. */
export interface Server {
  readonly baseUrl: string
  /** The URL of the directory of the profile `default`. */
  readonly directoryUrl: string
  /** The URL of the directory of a profile. */
  readonly profileUrl: (profile: string) => string
  /** The working directory, with the configuration and everything that the service wrote. */
  readonly directory: string
  readonly caFile: string
  readonly port: number
  /** The id of the process that runs now, which {@link restart} replaces. */
  readonly pid: () => number
  /** Every log record since the first start, across restarts. */
  readonly records: () => ReadonlyArray<LogRecord>
  /** The output of the current process. */
  readonly stdout: () => string
  readonly stderr: () => string
  /** Completes when the current process ends. */
  readonly exited: () => Promise<Exit>
  /** Waits for the first record of this event that the current process wrote or will write. */
  readonly waitForEvent: (
    event: string,
    options?: { readonly where?: (record: LogRecord) => boolean; readonly timeoutMs?: number }
  ) => Promise<LogRecord>
  /** Waits for the first matching line of stdout that the current process wrote or will write. */
  readonly waitForLine: (pattern: RegExp) => Promise<string>
  readonly signal: (signal: NodeJS.Signals) => void
  /**
   * Ends the process, with SIGKILL if this takes too long, and returns how it ended. Files stay until {@link dispose}.
   */
  readonly stop: (signal?: NodeJS.Signals) => Promise<Exit>
  /** Sends SIGKILL, and waits until the process is gone. */
  readonly kill9: () => Promise<Exit>
  /**
   * Stops the process if it runs, and starts the service again in the same directory and on the same port, from the
   * build in a folder if one is given.
   */
  readonly restart: (build?: string) => Promise<void>
  /** Stops the process and removes its temporary directory. */
  readonly dispose: () => Promise<void>
}

/** Starts `serve`, and returns once it listens. Fails with the output of the process if the process ends instead. */
export const startServer = async (options: ServerOptions = {}): Promise<Server> => {
  const { directory, remove } = prepare(options)
  const port = options.port ?? await freePort()
  const baseUrl = `${options.tls === true ? "https" : "http"}://127.0.0.1:${port}`
  const full: ProcessOptions = {
    ...options,
    env: {
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: baseUrl,
      ACME_SVC_SERVER__TLS__ENABLED: options.tls === true ? "true" : "false",
      ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true",
      ...options.databaseUrl === undefined ? {} : { ACME_SVC_DATABASE__URL: options.databaseUrl },
      ...options.env
    }
  }
  const earlier: Array<LogRecord> = []
  let run: Run

  let build = options.build ?? thisBuild
  const start = async () => {
    run = new Run(directory, ["serve", ...options.flags ?? []], { ...full, build })
    const { startedBy = "server_listening" } = options
    await run.waitFor(({ record }) => record?.fields["event"] === startedBy, startedBy, patienceMs)
  }
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    const current = run
    current.signal(signal)
    const timer = setTimeout(() => current.signal("SIGKILL"), patienceMs)
    const exit = await current.exited
    clearTimeout(timer)
    return exit
  }
  try {
    await start()
  } catch (error) {
    await stop("SIGKILL")
    remove()
    throw error
  }
  const profileUrl = (profile: string) => `${baseUrl}/profile/${profile}/directory`

  return {
    baseUrl,
    directoryUrl: profileUrl("default"),
    profileUrl,
    directory,
    caFile: join(directory, "ca.pem"),
    port,
    pid: () => run.pid,
    records: () => [...earlier, ...run.records],
    stdout: () => run.stdout,
    stderr: () => run.stderr,
    exited: () => run.exited,
    waitForEvent: async (event, { timeoutMs = patienceMs, where = () => true } = {}) => {
      const wanted = (record: LogRecord | undefined): record is LogRecord =>
        record?.fields["event"] === event && where(record)
      const { record } = await run.waitFor((line) => wanted(line.record), event, timeoutMs)
      if (!wanted(record)) throw new Error(`not the record of ${event} that was waited for`)
      return record
    },
    waitForLine: async (pattern) =>
      (await run.waitFor(({ text }) => pattern.test(text), String(pattern), patienceMs)).text,
    signal: (signal) => run.signal(signal),
    stop,
    kill9: () => stop("SIGKILL"),
    restart: async (next = build) => {
      await stop()
      build = next
      // A long run has more records than a call may have arguments.
      for (const record of run.records) earlier.push(record)
      await start()
    },
    dispose: async () => {
      await stop()
      remove()
    }
  }
}
