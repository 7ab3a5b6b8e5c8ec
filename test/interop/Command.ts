import type { ChildProcessByStdio } from "node:child_process"
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"

interface Surroundings {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** The programs that still run, which are ended when this process ends. */
const children = new Set<ChildProcessByStdio<null, Readable, Readable>>()
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL")
})

/** Starts a child with only PATH of this process's environment. Servers are looked for in the PATH of root. */
const start = (command: string, words: ReadonlyArray<string>, { cwd, env }: Surroundings) => {
  const child = spawn(command, words, {
    ...cwd === undefined ? {} : { cwd },
    env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin`, LC_ALL: "C.UTF-8", ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  children.add(child)
  child.once("close", () => children.delete(child))
  return child
}

/** Runs a command to its end, and returns the output. Fails if the command does not end with 0, or not in time. */
export const runCommand = (
  command: string,
  words: ReadonlyArray<string>,
  options: Surroundings & { readonly timeoutMs?: number } = {}
): Promise<string> =>
  new Promise((resolve, reject) => {
    const { timeoutMs = 180_000 } = options
    const child = start(command, words, options)
    let said = ""
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill("SIGKILL")
    }, timeoutMs)
    child.stdout.on("data", (chunk: Buffer) => said += chunk.toString())
    child.stderr.on("data", (chunk: Buffer) => said += chunk.toString())
    child.once("error", (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.once("close", (code, signal) => {
      clearTimeout(timer)
      if (code === 0) return resolve(said)
      const end = late ? `was killed after ${timeoutMs} ms` : `ended with ${code ?? signal}`
      reject(new Error(`${[command, ...words].join(" ")}\n${end}:\n${said.slice(-6000)}`))
    })
  })

/** A child that runs until it is stopped, and reports its progress in its output. */
export interface Foreground {
  /** Waits until `times` matching lines have been written. The default is one. */
  readonly waitFor: (pattern: RegExp, times?: number) => Promise<void>
  /** Returns the first group of the first line that matches. Fails if no such line has been written. */
  readonly found: (pattern: RegExp) => string
  /** How many matching lines have been written. */
  readonly count: (pattern: RegExp) => number
  readonly signal: (signal: NodeJS.Signals) => void
  /** Waits for the end, and returns how the child ended, such as `ended with 0`. */
  readonly ended: () => Promise<string>
  readonly stop: () => Promise<void>
}

/** How long a child in the foreground may take. */
const patienceMs = 120_000

/** Starts a child and returns once it has written a line that matches `ready`. */
export const startForeground = async (
  command: string,
  words: ReadonlyArray<string>,
  options: Surroundings & { readonly ready: RegExp }
): Promise<Foreground> => {
  const child = start(command, words, options)
  const lines: Array<string> = []
  const looks = new Set<() => void>()
  const lookAgain = () => {
    for (const look of looks) look()
  }
  let end: string | undefined
  child.once("error", (error) => {
    end = String(error)
    lookAgain()
  })
  const closed = new Promise<void>((resolve) =>
    child.once("close", (code, signal) => {
      end ??= `ended with ${code ?? signal}`
      lookAgain()
      resolve()
    })
  )
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => {
      lines.push(line)
      lookAgain()
    })
  }

  const found = (pattern: RegExp) => {
    for (const line of lines) {
      const [, group] = pattern.exec(line) ?? []
      if (group !== undefined) return group
    }
    throw new Error(`${command} said nothing that matches ${pattern}`)
  }
  const count = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length
  const waitFor = (pattern: RegExp, times = 1) =>
    new Promise<void>((resolve, reject) => {
      const settle = (why?: string) => {
        clearTimeout(timer)
        looks.delete(look)
        if (why === undefined) resolve()
        else reject(new Error(`${command} ${why} before it said ${pattern}:\n${lines.slice(-40).join("\n")}`))
      }
      const look = () => {
        if (count(pattern) >= times) settle()
        else if (end !== undefined) settle(end)
      }
      const timer = setTimeout(() => settle(`took more than ${patienceMs} ms`), patienceMs)
      looks.add(look)
      look()
    })
  const stop = async () => {
    if (end === undefined) child.kill("SIGTERM")
    const timer = setTimeout(() => child.kill("SIGKILL"), 10_000)
    if (child.pid !== undefined) await closed
    clearTimeout(timer)
  }
  try {
    await waitFor(options.ready)
  } catch (error) {
    await stop()
    throw error
  }
  const ended = () => closed.then(() => end ?? "")
  return { waitFor, found, count, ended, stop, signal: (signal) => child.kill(signal) }
}

const systemBundle = "/etc/ssl/certs/ca-certificates.crt"

/** Replaces the system's bundle of CA certificates for one command, in a mount namespace of that command. */
const trusting = (bundle: string, command: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const user = process.getuid?.() === 0 ? [] : ["--map-root-user"]
  const script = "mount --bind \"$0\" \"$1\" && shift && exec \"$@\""
  return ["--mount", ...user, "sh", "-c", script, bundle, systemBundle, command, ...words]
}

/** Runs a command that trusts only the system's bundle of CA certificates, with the given bundle in its place. */
export const runTrusting = (
  bundle: string,
  command: string,
  words: ReadonlyArray<string>,
  options: Surroundings
): Promise<string> => runCommand("unshare", trusting(bundle, command, words), options)

/** Returns whether {@link runTrusting} works here. */
export const canTrust = async (): Promise<boolean> => {
  try {
    if (!existsSync(systemBundle)) return false
    await runTrusting(systemBundle, "true", [], {})
    return true
  } catch {
    return false
  }
}
