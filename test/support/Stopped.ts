import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"

/** The state of a thread as one letter. `T` is stopped, `t` is stopped under a tracer,
 * `Z` and `X` are dead. */
const stateOf = (path: string): string => {
  try {
    return /\) (\S)/.exec(readFileSync(path, "latin1"))?.[1] ?? "X"
  } catch {
    return "X"
  }
}

const isStopped = (pid: number): boolean =>
  threadsOf(pid).every((thread) => "TtZX".includes(stateOf(`/proc/${pid}/task/${thread}/stat`)))

const threadsOf = (pid: number): ReadonlyArray<string> => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

const childrenOf = (parent: number): ReadonlyArray<number> =>
  readdirSync("/proc").map(Number).filter((pid) =>
    pid > 0 && new RegExp(`^PPid:\\s*${parent}$`, "m").test(statusOf(pid))
  )

const wordsOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1")
  } catch {
    return ""
  }
}

/** Returns the id of the child of a process whose command line contains a text, or undefined if there is none. */
export const childOf = (parent: number, text: string): number | undefined =>
  childrenOf(parent).find((pid) => wordsOf(pid).includes(text))

const statusOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1")
  } catch {
    return ""
  }
}

const signalTo = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended in the meantime.
  }
}

const stop = async (pid: number): Promise<void> => {
  signalTo(pid, "SIGSTOP")
  // A thread that waits for the disk stops only when the wait is over.
  while (!isStopped(pid)) await delay(5)
}

/**
 * Stops a process and its children, and waits until none of their threads runs or writes. Returns their ids, for {@link
 * killTree}.
 */
export const stopTree = async (pid: number): Promise<ReadonlyArray<number>> => {
  await stop(pid)
  // The parent is stopped, so no further child can appear.
  const children = childrenOf(pid)
  await Promise.all(children.map(stop))
  return [pid, ...children]
}

/** Ends stopped processes at once, as a loss of power does. */
export const killTree = (pids: ReadonlyArray<number>): void => {
  for (const pid of pids) signalTo(pid, "SIGKILL")
}
