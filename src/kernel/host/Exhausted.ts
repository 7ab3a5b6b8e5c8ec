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

/** Whoever asked a moment ago may have found none where there are a few again: fewer than so many count as none. */
const few = 16

/** The code that says there are hardly any descriptors left, where that is so now. */
export const exhaustion = (): string | undefined => {
  const opened: Array<number> = []
  try {
    while (opened.length < few) opened.push(openSync("/dev/null", "r"))
    return undefined
  } catch (cause) {
    const code = codeOf(cause)
    return isExhaustion(code) ? code : undefined
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
