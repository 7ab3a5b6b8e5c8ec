import { spawn } from "node:child_process"
import { join } from "node:path"
import { patienceMs } from "./Patience.ts"
import { watch } from "./Watchdog.ts"

/* A command of the built service at a pseudo terminal, which `script` of util-linux provides. */

const main = join(import.meta.dirname, "../../dist/main.js")

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** A person at a terminal, who waits for a question before answering it. */
export interface Terminal {
  /** Everything that the terminal has shown. */
  readonly shown: () => string
  /** Waits until the terminal shows a text that was not waited for before. Rejects if the command ends first. */
  readonly sees: (pattern: RegExp) => Promise<void>
  readonly type: (text: string) => void
  /** The exit code, once the command has ended. */
  readonly ended: Promise<number | null>
}

/** Keys of a terminal. */
export const keys = { enter: "\r", interrupt: "\u0003", endOfInput: "\u0004", eraseAll: "\u0015" } as const

/** Starts a command line of the service at a terminal. */
export const atTerminal = (
  words: ReadonlyArray<string>,
  directory: string,
  env: Readonly<Record<string, string>> = {}
): Terminal => {
  const line = [process.execPath, main, ...words].map(quoted).join(" ")
  const child = spawn("script", ["--quiet", "--return", "--flush", "--command", line, "/dev/null"], {
    cwd: directory,
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], HOME: directory, NO_COLOR: "1", SHELL: "/bin/sh", USER: "tester", ...env }
  })
  watch(child, "group")
  let [shown, from, isOver] = ["", 0, false]
  const waiting = new Set<() => void>()
  const changed = () => waiting.forEach((look) => look())
  child.stdout.on("data", (chunk: Buffer) => {
    shown += chunk.toString().replaceAll("\r\n", "\n")
    changed()
  })
  const ended = new Promise<number | null>((done, fail) => {
    child.once("error", fail)
    child.once("close", (code) => {
      isOver = true
      changed()
      done(code)
    })
  })
  const sees = (pattern: RegExp) =>
    new Promise<void>((done, fail) => {
      const over = (why: string) => {
        waiting.delete(look)
        clearTimeout(timer)
        fail(new Error(`${why} before ${pattern} was seen: ${shown}`))
      }
      const look = () => {
        const found = pattern.exec(shown.slice(from))
        if (found !== null) {
          from += found.index + found[0].length
          waiting.delete(look)
          clearTimeout(timer)
          done()
        } else if (isOver) over("the command ended")
      }
      const timer = setTimeout(() => over("the time was over"), patienceMs)
      waiting.add(look)
      look()
    })
  return { shown: () => shown, sees, type: (text) => void child.stdin.write(text), ended }
}
