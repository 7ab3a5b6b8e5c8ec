import { readFileSync, readlinkSync } from "node:fs"

/* Who holds a row: `<host>:<pid>:<uuid>:<place>.<begun>`. The kernel tells the last two; where it does not, they are missing. */

/** What a process can know of the processes of its machine. */
export interface Machine {
  /** Where a process id means what it means here: this boot of this kernel, and this namespace of ids. */
  readonly place: string | undefined
  /** When a process of this place began, as the kernel counts; `hidden` when that cannot be read, `undefined` when it is gone. */
  readonly begun: (pid: number) => string | undefined
}

const hidden = "hidden"

const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const placeHere = (): string | undefined =>
  attempt(() => {
    const [boot = ""] = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").split("-")
    const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))
    return namespace === null ? undefined : `${boot}-${namespace[0]}`
  })

// Whether there is such a process is asked of the kernel: `/proc` may hide those of other users.
const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

const begunHere = (pid: number): string | undefined => {
  if (!isThere(pid)) return undefined
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
  if (stat === undefined) return hidden
  // The name stands in parentheses and may hold anything; behind it come the state and, nineteen on, the start.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19] ?? hidden
}

/** The machine this process runs on, as Linux shows it; elsewhere nothing is known. */
export const here = (): Machine => ({ place: placeHere(), begun: begunHere })

/** The owner a process is; the uuid is made for it alone. */
export const ownerOf = (
  { begun, place }: Machine,
  of: { readonly host: string; readonly pid: number; readonly uuid: string }
): string => `${of.host}:${of.pid}:${of.uuid}:${place === undefined ? "" : `${place}.${begun(of.pid) ?? hidden}`}`

const parts = /:(\d+):[^:]+:(?:([^:.]+)\.([^:.]+))?$/

/** Whether an owner renews its leases. Those of earlier versions took them once, for as long as an attempt could last. */
export const renews = (owner: string): boolean => parts.test(owner)

/** Whether an owner was a process of this machine that is no more. Where that cannot be known, its leases tell. */
export const isGone = ({ begun, place }: Machine) => (owner: string): boolean => {
  const [, pid, itsPlace, itsBegun] = parts.exec(owner) ?? []
  if (place === undefined || itsPlace !== place || itsBegun === hidden) return false
  const now = begun(Number(pid))
  return now === undefined || (now !== hidden && now !== itsBegun)
}
