import { createHash } from "node:crypto"

/*
 * Recorded answers as lines of JSON. An answer that occurs several times is written once, and the lines of other plays
 * name it by its digest, so that a recording is small and differences are readable.
 */

/** A text that is too long to be recorded, with its type, its beginning, and a digest of each line. */
interface Long {
  readonly sha256: string
  readonly begins: string
  /** Four hexadecimal digits for each line. */
  readonly lines: string
}

/** The JSON value if the text is JSON, and otherwise the text. */
type Recorded = Long | string | object

/** The result of a play. */
export interface Answer {
  /** The HTTP status or the exit code, or `hangs` if the play did not end. */
  readonly status: number | "hangs"
  readonly headers?: Readonly<Record<string, string>>
  /** The body, or standard output. */
  readonly body?: Recorded
  readonly stderr?: Recorded
  /** The logged events, and the events of the audit trail. */
  readonly log?: ReadonlyArray<string>
  readonly audit?: ReadonlyArray<string>
}

/** A play and its result. */
export interface Outcome {
  readonly name: string
  /** The request, for people who read a difference. */
  readonly asked: string
  readonly answer: Answer
  /** Long texts as lines, so that differences can be shown. */
  readonly texts: Readonly<Record<string, string>>
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex")

const lineDigest = (line: string): string => digest(line).slice(0, 4)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns a text in lines. JSON is written with one member on each line. */
export const inLines = (text: string): string => {
  const json = parsed(text)
  return typeof json === "object" && json !== null ? JSON.stringify(json, undefined, 1) : text
}

const longest = 1900

/**
 * Returns the recorded form of a text, which is the whole text if it is short, and otherwise the digests of its lines.
 */
export const recorded = (text: string): Recorded => {
  const json = parsed(text)
  if (text.length <= longest) return typeof json === "object" && json !== null ? json : text
  const lines = inLines(text).split("\n").map(lineDigest).join("")
  return { sha256: digest(text).slice(0, 32), begins: text.slice(0, 300), lines }
}

/** Returns the lines that a long text did not have when it was recorded, and how many recorded lines are gone. */
export const linesApart = (
  before: unknown,
  now: string
): { readonly added: ReadonlyArray<string>; readonly gone: number } | undefined => {
  if (typeof before !== "object" || before === null || !("lines" in before) || typeof before.lines !== "string") {
    return undefined
  }
  const left = new Map<string, number>()
  for (const line of before.lines.match(/.{4}/g) ?? []) left.set(line, (left.get(line) ?? 0) + 1)
  const added = now.split("\n").filter((line) => {
    const count = left.get(lineDigest(line)) ?? 0
    left.set(lineDigest(line), Math.max(0, count - 1))
    return count === 0
  })
  return { added, gone: [...left.values()].reduce((sum, count) => sum + count, 0) }
}

type Line = { readonly play: string; readonly as: string } | { readonly play: string; readonly answer: string } & Answer

/** Returns the lines of a recording. */
export const written = (outcomes: ReadonlyArray<Outcome>): string => {
  const seen = new Set<string>()
  return outcomes.map(({ answer, name }) => {
    const key = digest(JSON.stringify(answer)).slice(0, 8)
    const line: Line = seen.has(key) ? { play: name, as: key } : { play: name, answer: key, ...answer }
    seen.add(key)
    return `${JSON.stringify(line)}\n`
  }).join("")
}

/** Returns the answers of a recording, by the names of the plays. */
export const read = (text: string): ReadonlyMap<string, Answer> => {
  const known = new Map<string, Answer>()
  return new Map(
    text.split("\n").filter((line) => line !== "").map((line) => {
      const { play, ...rest } = JSON.parse(line) as Line
      if ("as" in rest) {
        const answer = known.get(rest.as)
        if (answer === undefined) throw new Error(`${play} names an answer that is not before it`)
        return [play, answer]
      }
      const { answer: key, ...answer } = rest
      known.set(key, answer)
      return [play, answer]
    })
  )
}
