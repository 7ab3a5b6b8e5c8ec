import type { Filter } from "../../engine/template/TemplateFilters.ts"
import { parseRfc3339 } from "../../engine/Time.ts"

/* The filters of the panel's templates. They turn times, counts and ids into texts for people. */

const units: ReadonlyArray<readonly [seconds: number, one: string, many: string]> = [
  [86_400, "day", "days"],
  [3600, "hour", "hours"],
  [60, "minute", "minutes"],
  [1, "second", "seconds"]
]

/** Returns a length of time in its largest unit: `3 days`. */
const lengthOf = (seconds: number): string => {
  const [size, one, many] = units.find(([size]) => seconds >= size) ?? [1, "second", "seconds"]
  const count = Math.floor(seconds / size)
  return `${count} ${count === 1 ? one : many}`
}

const agoOf = (at: number, now: number): string =>
  Math.abs(now - at) < 5 ? "now" : at <= now ? `${lengthOf(now - at)} ago` : `in ${lengthOf(at - now)}`

const secondsOf = (value: unknown): number | undefined =>
  typeof value === "number" ? value : typeof value === "string" ? parseRfc3339(value) : undefined

const spaced = (value: unknown): string => String(value ?? "").replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f")

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" })

const middleOf = (text: string, most: number): string => {
  if (text.length <= most) return text
  const all = Array.from(graphemes.segment(text), ({ segment }) => segment)
  const end = Math.floor((most - 1) / 2)
  return all.length <= most ? text : `${all.slice(0, most - 1 - end).join("")}…${all.slice(-end).join("")}`
}

/** Returns all filters by name. `now` returns the current epoch second. */
export const wordsAt = (now: () => number): { readonly [name: string]: Filter } => ({
  /** Returns how long ago an RFC 3339 time was, or how long it is until then. */
  ago: (value) => {
    const at = secondsOf(value)
    return at === undefined ? "" : agoOf(at, now())
  },
  /** Returns a time in readable form: `2031-02-03 04:05:06 UTC`. */
  utc: (value) => typeof value === "string" ? value.replace("T", " ").replace("Z", " UTC") : "",
  /** Returns a number of seconds as a length of time. */
  span: (value) => typeof value === "number" ? lengthOf(value) : "",
  /** Returns an id, a serial number or a fingerprint in a shortened form. */
  short: (value) => {
    const text = String(value ?? "")
    if (text.length <= 16) return text
    return /^[0-9a-f]{8}-/.test(text) ? `${text.slice(0, 8)}…${text.slice(-4)}` : `${text.slice(0, 12)}…`
  },
  /** Returns a count with thin spaces between its thousands. */
  number: spaced,
  /** Returns a count with its noun: `1 order`, `2 orders`. */
  of: (value, noun, many) => `${spaced(value)} ${value === 1 ? String(noun) : String(many ?? `${String(noun)}s`)}`,
  /** Returns a text, cut off after `most` characters. */
  cut: (value, most = 200) => {
    const characters = [...String(value ?? "")]
    return characters.length > Number(most) ? `${characters.slice(0, Number(most)).join("")}…` : characters.join("")
  },
  /**
   * Returns a text with at most `most` characters, as readers count them. What is too much is cut out of its middle,
   * because the begin and the end of a name tell most.
   */
  middle: (value, most = 36) => middleOf(String(value ?? ""), Number(most)),
  /** Returns a text, escaped for a part of a URL. */
  urlencode: (value) => encodeURIComponent(String(value ?? "").replace(/\p{Surrogate}/gu, "\ufffd")),
  /** Returns the mail address in a `mailto` URI, or any other text unchanged. */
  mailbox: (value) => String(value ?? "").replace(/^mailto:/i, ""),
  /** Returns a key in groups of four characters. */
  grouped: (value) => String(value ?? "").replace(/(.{4})(?=.)/g, "$1 "),
  /** Returns a value as indented JSON. */
  pretty: (value) => JSON.stringify(plain(value), undefined, 2),
  /** Returns a word of the API in readable form: `live_certificates` becomes `live certificates`. */
  words: (value) => String(value ?? "").replaceAll("_", " ")
})

/** Turns maps into objects, because the engine passes objects as maps. */
const plain = (value: unknown): unknown =>
  value instanceof Map
    ? Object.fromEntries([...value].map(([key, member]) => [key, plain(member)]))
    : Array.isArray(value)
    ? value.map(plain)
    : value
