import { spawn, spawnSync } from "node:child_process"
import { closeSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { freePort } from "../../test/support/Ports.ts"
import { onEnd, temporaryDirectory } from "./Cleanup.ts"

const repository = resolve(import.meta.dirname, "../..")
const built = join(repository, "dist/main.js")
const source = join(repository, "src/main.ts")

/** A value of `database.sqlite.synchronous`. */
export type Synchronous = "normal" | "full" | "grouped"

/** Options for a run of the server. */
export interface ServiceOptions {
  readonly databaseUrl: string
  readonly synchronous: Synchronous
  /** Options for node, which come before the program. */
  readonly nodeWords: ReadonlyArray<string>
  /** A program and its options, which runs the server. */
  readonly tracer?: ReadonlyArray<string> | undefined
  /** The working directory; a new directory by default. */
  readonly directory?: string
  /** Lines to add to the configuration file. */
  readonly configuration?: string
  /** The only role of the process, by default every role. */
  readonly role?: "acme" | "worker"
  /** Variables to add to the environment. */
  readonly variables?: { readonly [name: string]: string } | undefined
  /** The PEM files for TLS, by default plain HTTP. */
  readonly tls?: { readonly certificate: string; readonly privateKey: string } | undefined
  /** Whether to run the sources instead of the build. */
  readonly isFromSource?: boolean
  /** A PEM certificate that the server trusts in addition to the public ones. */
  readonly trusted?: string | undefined
}

/** A running server that bypasses validation. Its JSON log goes into a file. */
export interface Service {
  readonly pid: number
  readonly directory: string
  readonly directoryUrl: string
  /** Returns the URL of the directory of a profile other than `default`. */
  readonly directoryOf: (profile: string) => string
  readonly logFile: string
  /** Returns the number of bytes in the log so far. */
  readonly logged: () => number
  readonly stop: () => Promise<void>
}

const originOf = (port: number, { tls }: Pick<ServiceOptions, "tls">): string =>
  `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`

const environment = (directory: string, port: number, options: ServiceOptions): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  HOME: directory,
  ACME_SVC_DATABASE__URL: options.databaseUrl,
  ACME_SVC_DATABASE__SQLITE__SYNCHRONOUS: options.synchronous,
  ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
  ACME_SVC_SERVER__BASE_URL: originOf(port, options),
  ...options.tls === undefined ? {} : {
    ACME_SVC_SERVER__TLS__ENABLED: "true",
    ACME_SVC_SERVER__TLS__CERT_PATH: options.tls.certificate,
    ACME_SVC_SERVER__TLS__KEY_PATH: options.tls.privateKey
  },
  ...options.trusted === undefined ? {} : { NODE_EXTRA_CA_CERTS: options.trusted },
  ACME_SVC_CHALLENGE__BYPASS: "true",
  ACME_SVC_LOGGING__JSON_FORMAT: "true",
  ...options.variables
})

/** Returns the configuration of a service whose answers wait for results, or nothing. */
export const waitsConfiguration = (waits: boolean): string =>
  waits ? "[challenge]\nanswer_wait_ms = 5000\n[order]\nfinalize_wait_ms = 5000\n" : ""

const newDirectory = (configuration = ""): string => configured(temporaryDirectory(), configuration)

/** Writes the configuration file into a directory. */
export const configured = (directory: string, configuration = ""): string => {
  writeFileSync(join(directory, "config.toml"), `[profiles.default]\nenabled = true\n\n${configuration}\n`)
  return directory
}

/** Runs a command of the server, and returns the output. */
export const runCommand = (
  options: ServiceOptions & { readonly directory: string },
  words: ReadonlyArray<string>,
  input = ""
): string => {
  const { directory } = options
  const env = environment(directory, 0, options)
  const { status, stderr, stdout } = spawnSync(process.execPath, [built, ...words], {
    cwd: directory,
    env,
    encoding: "utf8",
    input
  })
  if (status !== 0) throw new Error(`${words.join(" ")} failed:\n${stdout}${stderr}`)
  return stdout
}

/** Runs the server's own command that brings the schema of a database up to date. */
export const migrate = (
  options: Pick<ServiceOptions, "databaseUrl" | "synchronous" | "directory">
): string => {
  const directory = options.directory ?? newDirectory()
  runCommand({ ...options, directory, nodeWords: [] }, ["migrate"])
  return directory
}

/** Starts a program whose output goes into a log file. The program is killed when this process ends. */
export const startProcess = (
  command: string,
  words: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly logFile: string }
) => {
  const log = openSync(options.logFile, "a")
  const child = spawn(command, words, { cwd: options.cwd, env: options.env, stdio: ["ignore", log, log] })
  closeSync(log)
  const release = onEnd(() => child.kill("SIGKILL"))
  let failure: Error | undefined
  const exited = new Promise<void>((done) => {
    child.once("error", (error) => {
      failure = error
      done()
    })
    child.once("exit", () => done())
  })
  void exited.then(release)
  const notUp = () =>
    new Error(
      `${command} ${words.join(" ")} did not come up${failure ? `: ${failure.message}` : ""}\n`
        + readFileSync(options.logFile, "utf8").slice(-4000)
    )
  const hasEnded = () => failure !== undefined || child.exitCode !== null || child.signalCode !== null
  return {
    pid: child.pid ?? 0,
    /** Fails if the program has ended. */
    check: (): void => {
      if (hasEnded()) throw notUp()
    },
    /** Waits until `text` is in the log. */
    said: async (text: string, timeoutMs = 30_000): Promise<void> => {
      const deadline = performance.now() + timeoutMs
      while (!readFileSync(options.logFile, "utf8").includes(text)) {
        if (hasEnded() || performance.now() > deadline) throw notUp()
        await delay(5)
      }
    },
    stop: async (): Promise<void> => {
      if (!hasEnded()) child.kill("SIGTERM")
      const timer = setTimeout(() => child.kill("SIGKILL"), 30_000)
      await exited
      clearTimeout(timer)
    }
  }
}

/** Starts `dist/main.js serve` in a separate directory. */
export const startService = async (options: ServiceOptions): Promise<Service> => {
  const directory = options.directory ?? newDirectory(options.configuration)
  const port = await freePort()
  const logFile = join(directory, `log-${port}.jsonl`)
  const roles = options.role === undefined ? [] : ["--role", options.role]
  const program = options.isFromSource === true ? source : built
  const [command, ...tracing] = [...options.tracer ?? [], process.execPath]
  const server = startProcess(command ?? process.execPath, [
    ...tracing,
    ...options.nodeWords,
    program,
    "serve",
    ...roles
  ], {
    cwd: directory,
    env: environment(directory, port, options),
    logFile
  })
  const directoryOf = (profile: string) => `${originOf(port, options)}/profile/${profile}/directory`
  await server.said(options.role === "worker" ? `"job_runner_started"` : `"server_listening"`)
  return {
    pid: server.pid,
    directory,
    directoryUrl: directoryOf("default"),
    directoryOf,
    logFile,
    logged: () => statSync(logFile).size,
    stop: server.stop
  }
}
