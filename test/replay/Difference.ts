import type { Answer, Outcome } from "./Recording.ts"
import { inLines, linesApart } from "./Recording.ts"

/* Prints the difference between a recorded answer and the present answer. */

const mostMembers = 6
const mostLines = 6

const cut = (value: unknown): string => {
  const text = value === undefined ? "absent" : JSON.stringify(value)
  return text.length > 400 ? `${text.slice(0, 400)}…` : text
}

/** Returns whether two values of JSON are the same. The order of members counts, because clients see it. */
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Returns the members that differ, by their paths. */
const apart = (before: unknown, now: unknown, path: string): ReadonlyArray<readonly [string, unknown, unknown]> => {
  if (same(before, now)) return []
  if (
    !isObject(before) || !isObject(now) || Array.isArray(before) !== Array.isArray(now) || "sha256" in before ||
    "sha256" in now
  ) {
    return [[path, before, now]]
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])]
  const found = names.flatMap((name) => apart(before[name], now[name], path === "" ? name : `${path}.${name}`))
  // The order of headers has no meaning.
  const isOrdered = path === "headers" || same(Object.keys(before), Object.keys(now))
  return found.length > 0 || isOrdered
    ? found
    : [[`${path}, the order of its members`, Object.keys(before), Object.keys(now)]]
}

const texts = new Set(["body", "stderr"])

/** Returns the lines that only one of two texts has, in the order of the texts. */
const onlyIn = (one: string, other: string): ReadonlyArray<string> => {
  const left = other.split("\n")
  return one.split("\n").filter((line) => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

const signed = (sign: string, lines: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...lines.slice(0, mostLines).map((line) => `    ${sign} ${line.slice(0, 300)}`),
  ...lines.length > mostLines ? [`    ${sign} and ${lines.length - mostLines} lines more`] : []
]

const told = ([path, before, now]: readonly [string, unknown, unknown], outcome: Outcome): ReadonlyArray<string> => {
  const text = texts.has(path) ? inLines(outcome.texts[path] ?? "") : undefined
  if (text !== undefined && typeof before === "string" && before.includes("\n")) {
    return [`  ${path}`, ...signed("-", onlyIn(before, text)), ...signed("+", onlyIn(text, before))]
  }
  const lines = text === undefined ? undefined : linesApart(before, text)
  if (lines !== undefined) {
    return [`  ${path}: ${lines.gone} lines are gone, and these are new or otherwise`, ...signed("+", lines.added)]
  }
  return [`  ${path}`, `    recorded  ${cut(before)}`, `    now       ${cut(now)}`]
}

/** Returns a difference in a few lines, or none if there is no difference. */
export const differenceOf = (before: Answer | undefined, outcome: Outcome): ReadonlyArray<string> => {
  if (before === undefined) return ["  It is not in the recording."]
  if (same(before, outcome.answer)) return []
  const found = apart(before, outcome.answer, "")
  return [
    ...found.slice(0, mostMembers).flatMap((one) => told(one, outcome)),
    ...found.length > mostMembers ? [`  and ${found.length - mostMembers} more`] : []
  ]
}
