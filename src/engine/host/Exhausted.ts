import { closeSync, openSync } from "node:fs"

/** The system's error codes that mean that this host has run out of descriptors, buffers, memory or processes. */
const ownCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"])

/** Returns whether a failure was caused by this host alone. Such a failure says nothing about the peer. */
export const isExhaustion = (code: string | undefined): boolean => code !== undefined && ownCodes.has(code)

/** Returns the sentence about a failure that this host alone caused. */
export const exhausted = (code: string | undefined): string =>
  `this host has no descriptors, buffers or memory left (${code ?? "unknown"})`

/** Returns the code of a system error. */
export const codeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

/**
 * If fewer descriptors than this are free, none count as free. A call that has just failed may have found none, even if
 * a few are free again now.
 */
const few = 16

/** Returns the error code if hardly any descriptors are free now, otherwise `undefined`. */
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
