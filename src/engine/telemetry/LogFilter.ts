import type { Level } from "./Declaration.ts"

/** The words for levels in `logging.filter` and `--log-level`. The number of a level is its index. */
export const levelWords = ["off", "error", "warn", "info", "debug", "trace"] as const

/** One of {@link levelWords}. */
export type LevelWord = typeof levelWords[number]

/**
 * Returns the level that a text names. The text may be in upper or lower case, or a number: `info`, `INFO` and `3` are
 * the same.
 */
export const levelOf = (text: string): LevelWord | undefined =>
  levelWords.find((word, number) => text.toLowerCase() === word || text === String(number))

const rankOf = (level: LevelWord): number => levelWords.indexOf(level)

/** Returns the target of every record of an event: `acme_svc.` and the first word of its name. */
export const targetOf = (event: string): string => `acme_svc.${event.slice(0, event.indexOf("_"))}`

/** Returns whether a part of a filter with this prefix applies to this target. */
export const covers = (prefix: string, target: string): boolean =>
  prefix === "" || target === prefix || target.startsWith(`${prefix}.`)

/**
 * One part of a filter: the most detailed level at which records of a target are written. The empty target stands for
 * all targets.
 */
export interface Directive {
  readonly target: string
  /** The level. Undefined if the text after `=` is not a level. */
  readonly level: LevelWord | undefined
}

/** Reads `target=level`, only a level, or only a target. Between the words of a target, `::` is the same as `.`. */
export const readDirective = (text: string): Directive => {
  const [name = "", level] = text.trim().split("=")
  const bare = level === undefined ? levelOf(name) : undefined
  if (bare !== undefined) return { target: "", level: bare }
  return { target: name.replaceAll("::", "."), level: level === undefined ? "trace" : levelOf(level) }
}

/** Returns whether a record of this target and level is written. */
export type Filter = (target: string, level: Level) => boolean

/**
 * Parses `logging.filter` (docs/contribute/decisions/log-and-metrics.md, "The filter"): parts separated by commas, each
 * of them `target=level`, only a level (for every target) or only a target (at every level). The part with the longest
 * prefix of the target decides. The text was already checked with `settings/LogFilterForm.ts`.
 */
export const parseFilter = (text: string): Filter => {
  const directives = text.split(",").map(readDirective)
    .map(({ level = "off", target }) => ({ target, rank: rankOf(level) }))
    .sort((one, other) => other.target.length - one.target.length)
  return (target, level) => {
    const directive = directives.find((one) => covers(one.target, target))
    return directive !== undefined && rankOf(level) <= directive.rank
  }
}
