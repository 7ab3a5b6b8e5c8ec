import { spawn } from "node:child_process"
import { watch, watchGroup } from "./Watchdog.ts"

/** A command that runs on a terminal of its own. */
export interface OnTerminal {
  /** Everything that the terminal has shown, with plain line ends. */
  readonly screen: () => string
  /** Waits until the terminal shows this, and returns the match. */
  readonly shown: (pattern: RegExp) => Promise<RegExpExecArray>
  readonly type: (text: string) => void
  /** The exit code, once the command has ended. */
  readonly ended: Promise<number | null>
  /** Presses Ctrl-C, and waits for the end of the command. Returns its exit code. */
  readonly interrupt: () => Promise<number | null>
}

/** Runs a command of the shell on a terminal of its own. */
export const onTerminal = (
  command: string,
  { directory, env }: { readonly directory: string; readonly env: NodeJS.ProcessEnv }
): OnTerminal => {
  // The command is in a session of its own, which outlives the program that makes the terminal.
  const words = ["--quiet", "--return", "--echo", "never", "--command", `echo "group $$"; ${command}`, "/dev/null"]
  const child = spawn("script", words, {
    cwd: directory,
    stdio: ["pipe", "pipe", "inherit"],
    env
  })
  watch(child)
  let text = ""
  let isOver = false
  const waiting = new Set<() => void>()
  const look = () => waiting.forEach((one) => one())
  const ended = new Promise<number | null>((done) =>
    child.once("close", (code) => {
      isOver = true
      look()
      done(code)
    })
  )
  let group: number | undefined
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString().replaceAll("\r\n", "\n")
    const [, leader] = /^group (\d+)$/m.exec(text) ?? []
    if (group === undefined && leader !== undefined) watchGroup(group = Number(leader), ended)
    look()
  })
  return {
    screen: () => text,
    shown: (pattern) =>
      new Promise((done, fail) => {
        const seen = () => {
          const found = pattern.exec(text)
          if (found === null && !isOver) return
          waiting.delete(seen)
          if (found === null) fail(new Error(`The command ended, and the terminal shows:\n${text}`))
          else done(found)
        }
        waiting.add(seen)
        seen()
      }),
    type: (text) => void child.stdin.write(text),
    ended,
    interrupt: () => {
      child.stdin.write("\u0003")
      return ended
    }
  }
}
