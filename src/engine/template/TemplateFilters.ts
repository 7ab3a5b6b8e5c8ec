import { rfc3339 } from "../Time.ts"

/**
 * A filter. Its first argument is the value before the filter, and its other arguments are those in the brackets. An
 * absent argument is `undefined`. A filter must not throw.
 */
export type Filter = (value: unknown, ...args: ReadonlyArray<unknown>) => unknown

/** Turns maps into objects: the engine passes objects as maps. */
const plain = (value: unknown): unknown =>
  value instanceof Map
    ? Object.fromEntries([...value].map(([key, member]) => [key, plain(member)]))
    : Array.isArray(value)
    ? value.map(plain)
    : value

const text = (value: unknown): string =>
  value === undefined
    ? ""
    : typeof value === "object"
    ? JSON.stringify(plain(value))
    : String(value)

/** The last second of the year 9999, which is the last time in RFC 3339. */
const lastSecond = 253_402_300_799

/**
 * Returns a value as JSON, or `null` for an absent value. U+2028 and U+2029 are escaped, because some readers of JSON
 * end a line there.
 */
const jsonOf = (value: unknown): string =>
  JSON.stringify(plain(value) ?? null).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")

/** Shortens a text to at most `most` characters. If a text was shortened, it ends with an ellipsis. */
const cut = (whole: string, most: number): string => {
  const characters = [...whole]
  if (characters.length <= most) return whole
  return most < 1 ? "" : `${characters.slice(0, most - 1).join("")}…`
}

/** The filters of the language subset for messages. */
export const filters: { readonly [name: string]: Filter } = {
  tojson: jsonOf,
  join: (value, separator = "") => Array.isArray(value) ? value.map(text).join(text(separator)) : text(value),
  default: (value, other) => value ?? other ?? "",
  length: (value) => Array.isArray(value) ? value.length : value instanceof Map ? value.size : [...text(value)].length,
  upper: (value) => text(value).toUpperCase(),
  lower: (value) => text(value).toLowerCase(),
  truncate: (value, most) => typeof most === "number" ? cut(text(value), most) : text(value),
  date: (value) =>
    typeof value === "number" && value >= 0 && value <= lastSecond ? rfc3339(Math.floor(value)) : text(value)
}
