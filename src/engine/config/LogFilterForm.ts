import { isKnownTarget, levelWords, readDirective, targets } from "../telemetry/LogFilter.ts"
import { nearest } from "./KeyPath.ts"
import type { Form } from "./ValueForm.ts"
import { quoteOf } from "./ValueForm.ts"

const shape = /^[A-Za-z0-9_.:/@-]+(?:=[A-Za-z0-9]+)?$/
const own = /^acme_svc\b/

const levels = `a level is one of ${levelWords.join(", ")}, or 0 to ${levelWords.length - 1}`

/** What is wrong with one part of a filter. A part about targets of other programs is not judged. */
const faultOf = (part: string): string | undefined => {
  const text = part.trim()
  const shown = quoteOf(text) ?? "a part"
  if (!shape.test(text)) return `has ${shown}, which is neither target=level nor a level nor a target; ${levels}`
  const { level, target } = readDirective(text)
  if (level === undefined) return `has ${shown}, whose level is none: ${levels}`
  const isMeant = own.test(target) || !text.includes("=")
  return target === "" || isKnownTarget(target) || !isMeant
    ? undefined
    : `has ${shown}, and no record has that target; the nearest are ${nearest(target, targets)} and the level ${
      nearest(target.toLowerCase(), levelWords)
    }`
}

/**
 * Comma-separated `target=level`, a bare level or a bare target. A target that no record can have is refused, because
 * it would silence the log without a word. Parts about other programs are allowed beside at least one that is about
 * this service.
 */
export const logFilter: Form = {
  says: "comma-separated `target=level`, level or target",
  fault: (text) => {
    const parts = text.split(",")
    const fault = parts.map(faultOf).find((one) => one !== undefined)
    if (fault !== undefined) return fault
    return parts.map(readDirective).some(({ target }) => isKnownTarget(target))
      ? undefined
      : "has no level and no target that begins with acme_svc, so that nothing would be logged"
  }
}
