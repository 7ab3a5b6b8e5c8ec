import type { ChildProcess, ChildProcessByStdio } from "node:child_process"
import { spawn } from "node:child_process"
import type { Writable } from "node:stream"

/*
 * No program outlives the process that started it, however that process ends. A killed process cannot end its programs.
 * So a shell in a separate session is told of every program, and ends the remaining ones when its input pipe closes.
 */

const script = `
watched=
while read -r sign target; do
  case $sign in
    +) watched="$watched $target" ;;
    -)
      left=
      for one in $watched; do [ "$one" = "$target" ] || left="$left $one"; done
      watched=$left
      ;;
  esac
done
[ -z "$watched" ] || kill -s KILL -- $watched
`

let dog: ChildProcessByStdio<Writable, null, null> | undefined

const tell = (sign: "+" | "-", target: number): void => {
  if (dog === undefined) {
    dog = spawn("sh", ["-c", script], { detached: true, cwd: "/", stdio: ["pipe", "ignore", "ignore"] })
    dog.unref()
    dog.stdin.on("error", () => undefined)
    if ("unref" in dog.stdin && typeof dog.stdin.unref === "function") dog.stdin.unref()
  }
  dog.stdin.write(`${sign} ${target}\n`)
}

/** Ends a program when this process ends. If the program leads a process group, the whole group ends. */
export const watch = (child: ChildProcess, scope: "process" | "group" = "process"): void => {
  if (child.pid === undefined) return
  const target = scope === "group" ? -child.pid : child.pid
  tell("+", target)
  child.once("exit", () => tell("-", target))
}

/** Ends a process group when this process ends, unless the group has ended before. */
export const watchGroup = (leader: number, ended: Promise<unknown>): void => {
  tell("+", -leader)
  void ended.then(() => tell("-", -leader))
}

/** Ends this process by a signal when its parent ends. `process.exit` would be an error in tests. */
export const endWithParent = (): void => {
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"))
}
