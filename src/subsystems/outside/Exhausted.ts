import { closeSync, openSync } from "node:fs"

/** What the system says when it is this host that has no descriptors, buffers, memory or processes left. */
const ownCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"])

/** Whether a failure is of this host alone, and so says nothing about whoever was to be reached. */
export const isExhaustion = (code: string | undefined): boolean => code !== undefined && ownCodes.has(code)

/** The same in words. */
export const exhausted = (code: string | undefined): string =>
  `this host has no descriptors, buffers or memory left (${code ?? "unknown"})`

/** The code of a system error. */
export const codeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

/** The code that says there are no descriptors left, where that is so now. */
export const exhaustion = (): string | undefined => {
  try {
    closeSync(openSync("/dev/null", "r"))
    return undefined
  } catch (cause) {
    const code = codeOf(cause)
    return isExhaustion(code) ? code : undefined
  }
}
