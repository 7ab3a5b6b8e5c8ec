import { closeSync, openSync } from "node:fs"

/** The system's error codes for a host that has no descriptors, buffers, memory or processes left. */
const ownCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"])

/** Whether this host alone caused a failure. Such a failure says nothing about the peer. */
export const isExhaustion = (code: string | undefined): boolean => code !== undefined && ownCodes.has(code)

/** The sentence about such a failure. */
export const exhausted = (code: string | undefined): string =>
  `this host has no descriptors, buffers or memory left (${code ?? "unknown"})`

/** The code of a system error. */
export const codeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

/**
 * Fewer free descriptors than this count as none: the code that failed a moment ago may have found none, even if a few
 * are free again.
 */
const few = 16

/** The error code if there are hardly any descriptors left now; otherwise `undefined`. */
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
