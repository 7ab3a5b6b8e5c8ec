import type { Level } from "./Declaration.ts"

const ranks = { off: 0, error: 1, warn: 2, info: 3, debug: 4, trace: 5 } as const

/** The words of `logging.filter` and `--log-level`. */
export type LevelWord = keyof typeof ranks

const isLevel = (word: string): word is LevelWord => Object.hasOwn(ranks, word)

/** The target of every record of an event: `acme_svc.` and the first word of its name. */
export const targetOf = (event: string): string => `acme_svc.${event.slice(0, event.indexOf("_"))}`

/** Whether a record of this target and level is written. */
export type Filter = (target: string, level: Level) => boolean

/**
 * `logging.filter` (docs/decisions/log-and-metrics.md, "The filter"): comma-separated `target=level`, a bare level
 * (every target) or a bare target (all its levels). The longest target prefix wins. The text was checked with the
 * configuration.
 */
export const parseFilter = (text: string): Filter => {
  const directives = text.split(",").map((item) => {
    const [target = "", level] = item.trim().split("=")
    if (level !== undefined) return { target, rank: isLevel(level) ? ranks[level] : 0 }
    return isLevel(target) ? { target: "", rank: ranks[target] } : { target, rank: ranks.trace }
  }).sort((one, other) => other.target.length - one.target.length)
  const covers = (prefix: string, target: string) =>
    prefix === "" || target === prefix || target.startsWith(`${prefix}.`)
  return (target, level) => {
    const directive = directives.find((one) => covers(one.target, target))
    return directive !== undefined && ranks[level] <= directive.rank
  }
}
