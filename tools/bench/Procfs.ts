import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"

/* Reads from /proc the CPU time that processes have used. This works only on Linux. */

/** Returns whether this machine offers these figures. */
export const isAvailable = (): boolean => existsSync("/proc/self/stat")

const ticksPerSecond = (): number => {
  try {
    return Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" })) || 100
  } catch {
    return 100
  }
}
const millisPerTick = 1000 / ticksPerSecond()

// The fields of /proc/<pid>/stat, counted from the state, which follows the command in parentheses.
const field = { parent: 1, userTicks: 11, systemTicks: 12, childUserTicks: 13, childSystemTicks: 14 }

const statOf = (pid: number): ReadonlyArray<string> | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1")
    return text.slice(text.lastIndexOf(")") + 2).split(" ")
  } catch {
    return undefined
  }
}

/** Returns whether a process with this number exists. */
export const isRunning = (pid: number): boolean => statOf(pid) !== undefined

const millisOf = (stat: ReadonlyArray<string>, fields: ReadonlyArray<number>): number =>
  fields.reduce((sum, index) => sum + Number(stat[index] ?? 0), 0) * millisPerTick

/**
 * Returns the milliseconds that the live threads have run on a processor, or undefined if the kernel has no such count.
 */
const scheduledMillis = (pid: number): number | undefined => {
  let nanos = 0
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ", 1)[0])
    }
    return nanos / 1e6
  } catch {
    return undefined
  }
}

/**
 * The CPU that a process has used so far, in milliseconds. `user` and `system` are whole ticks. `total` is as exact as
 * the kernel counts.
 */
export interface Cpu {
  readonly total: number
  readonly user: number
  readonly system: number
}

/** Returns the CPU of one process with all its threads. */
export const cpuOf = (pid: number): Cpu => {
  const stat = statOf(pid)
  if (stat === undefined) throw new Error(`process ${pid} is gone`)
  const user = millisOf(stat, [field.userTicks])
  const system = millisOf(stat, [field.systemTicks])
  return { total: scheduledMillis(pid) ?? user + system, user, system }
}

/** Returns the CPU, in whole ticks, of those children of a process that have ended and were waited for. */
export const cpuOfEnded = (parent: number): number =>
  millisOf(statOf(parent) ?? [], [field.childUserTicks, field.childSystemTicks])

/** Returns the CPU of the live children of a process, as exactly as the kernel counts. */
export const cpuOfChildren = (parent: number): number => {
  let millis = 0
  for (const entry of readdirSync("/proc")) {
    const child = /^\d+$/.test(entry) ? statOf(Number(entry)) : undefined
    if (child !== undefined && Number(child[field.parent]) === parent) {
      millis += scheduledMillis(Number(entry)) ?? millisOf(child, [field.userTicks, field.systemTicks])
    }
  }
  return millis
}

/** Returns the CPU of a process and its children, including those that have ended. */
export const cpuOfFamily = (parent: number): number => cpuOf(parent).total + cpuOfChildren(parent) + cpuOfEnded(parent)

/** Returns the CPU of the live threads of a process, by thread id. The main thread has the id of the process. */
export const threadsOf = (pid: number): ReadonlyMap<number, { readonly name: string; readonly cpu: number }> =>
  new Map(
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const read = (file: string) => readFileSync(`/proc/${pid}/task/${thread}/${file}`, "latin1")
      return [Number(thread), { name: read("comm").trim(), cpu: Number(read("schedstat").split(" ", 1)[0]) / 1e6 }]
    })
  )

/** Returns the process id of the parent of a process. */
export const parentOf = (pid: number): number => Number(statOf(pid)?.[field.parent] ?? 0)

/** Returns the resident memory of a process, in MiB. */
export const rssOf = (pid: number): number => {
  const kibibytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]
  return Number(kibibytes ?? 0) / 1024
}

/**
 * Returns how many milliseconds all processors of the machine have been busy so far, and how many milliseconds they had
 * in total.
 */
export const machineCpu = (): { readonly busy: number; readonly total: number } => {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n", 1)
  // The fields are user, nice, system, idle, iowait, irq, softirq and steal. The time of guests is part of user.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number)
  const total = ticks.reduce((sum, one) => sum + one, 0)
  return { busy: (total - (ticks[3] ?? 0) - (ticks[4] ?? 0)) * millisPerTick, total: total * millisPerTick }
}
