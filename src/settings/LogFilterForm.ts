import { events } from "../domain/words/Log.ts"
import { nearest } from "../engine/config/KeyPath.ts"
import type { Form } from "../engine/config/ValueForm.ts"
import { quoteOf } from "../engine/config/ValueForm.ts"
import { covers, levelWords, readDirective, targetOf } from "../engine/telemetry/LogFilter.ts"

/** Every target that a record can have. */
export const targets: ReadonlyArray<string> = [...new Set(Object.keys(events).map(targetOf))].sort()

/** Returns whether there are records of this target, or of a target that begins with it. */
export const isKnownTarget = (target: string): boolean => targets.some((one) => covers(target, one))

const shape = /^[A-Za-z0-9_.:/@-]+(?:=[A-Za-z0-9]+)?$/
const own = /^acme_svc\b/

const levels = `a level is one of ${levelWords.join(", ")}, or 0 to ${levelWords.length - 1}`

/** Returns what is wrong with one part of a filter. A part about the targets of another program is not checked. */
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
 * Parts separated by commas. A part is `target=level`, only a level, or only a target. A target that no record can have
 * is refused, because it would silence the log unnoticed. Parts about other programs are allowed if at least one part
 * is about this service.
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
