import { readFileSync, readlinkSync } from "node:fs"

/*
 * The owner of a row: `<host>:<pid>:<uuid>:<place>.<begun>`. The last two come from the kernel; if it does not tell
 * them, they are missing.
 */

/** What a process can know about the processes of its machine. */
export interface Machine {
  /** The scope in which a process id has the same meaning as here: this boot of this kernel, and this pid namespace. */
  readonly place: string | undefined
  /**
   * When a process of this place began, in the kernel's count; `hidden` if that cannot be read, `undefined` if the
   * process is gone.
   */
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

// A signal asks the kernel whether the process exists, because `/proc` may hide processes of other users.
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
  // The name stands in parentheses and may hold any character. After it come the state and, nineteen fields later, the
  // start.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19] ?? hidden
}

/** The machine that this process runs on. This works on Linux; on other systems nothing is known. */
export const here = (): Machine => ({ place: placeHere(), begun: begunHere })

/** The owner text of a process. The uuid is made for this process alone. */
export const ownerOf = (
  { begun, place }: Machine,
  of: { readonly host: string; readonly pid: number; readonly uuid: string }
): string => `${of.host}:${of.pid}:${of.uuid}:${place === undefined ? "" : `${place}.${begun(of.pid) ?? hidden}`}`

const parts = /:(\d+):[^:]+:(?:([^:.]+)\.([^:.]+))?$/

/**
 * Whether an owner renews its leases. Owners of earlier versions took a lease once, for as long as an attempt could
 * last (docs/decisions/compatibility.md, "Neighbours").
 */
export const renews = (owner: string): boolean => parts.test(owner)

/** Whether an owner was a process of this machine that has ended. If that cannot be known, its leases show it. */
export const isGone = ({ begun, place }: Machine) => (owner: string): boolean => {
  const [, pid, itsPlace, itsBegun] = parts.exec(owner) ?? []
  if (place === undefined || itsPlace !== place || itsBegun === hidden) return false
  const now = begun(Number(pid))
  return now === undefined || (now !== hidden && now !== itsBegun)
}
