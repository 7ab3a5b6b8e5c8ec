import measured from "fast-string-truncated-width"
import type { Style, View } from "./Paint.ts"

/**
 * Returns the number of columns of a text: two for a wide character, none for a mark that combines with the previous
 * character.
 */
export const columnsOf = (text: string): number => measured(text).width

/** Returns a text in at most `columns` columns. A shortened text ends with an ellipsis. */
export const shortened = (text: string, columns: number): string => {
  const { ellipsed, index } = measured(text, { limit: columns, ellipsis: "…" })
  return ellipsed ? `${text.slice(0, index).trimEnd()}…` : text
}

/** Pads a text with spaces to a number of columns. */
export const padded = (text: string, columns: number): string =>
  text + " ".repeat(Math.max(0, columns - columnsOf(text)))

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/

/** Returns whether a cell is a time, perhaps with a word after it. */
export const isTime = (text: string): boolean => instant.test(text)

const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]] as const

/**
 * Returns a span of time in its largest unit: `3 h`. If the number would be below two, the next smaller unit is used.
 */
export const span = (seconds: number): string => {
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? ["s", 1]
  return `${Math.floor(seconds / size)} ${unit}`
}

/** Returns a time for people on a terminal: `3 h ago`, `in 12 d`. Other readers get the time unchanged. */
export const timeShown = ({ isTerminal, now, utc }: View, time: string): string => {
  if (!isTerminal || utc) return time
  return time.replace(instant, (written) => {
    const away = Math.round(Date.parse(written) / 1000 - now)
    return away > 0 ? `in ${span(away)}` : away === 0 ? "now" : `${span(-away)} ago`
  })
}

/** Returns a client in readable form: its address, and its reverse name, which the owner of the reverse zone chose. */
export const clientText = (address: string | undefined, name: string | undefined): string | undefined =>
  address === undefined || name === undefined ? address ?? name : `${address} (${name})`

const styles: { readonly [word: string]: Style } = Object.fromEntries(
  Object.entries(
    {
      green: ["valid", "active", "done", "ok", "success", "allowed", "served", "enabled", "issued", "current"],
      yellow: ["pending", "ready", "running", "processing", "due", "expiring", "stale", "undecided", "warning"],
      red: [
        "invalid",
        "failed",
        "failure",
        "revoked",
        "disabled",
        "refused",
        "deactivated",
        "error",
        "denied",
        "ended",
        "overdue",
        "stopped"
      ],
      dim: ["expired", "cancelled", "parked", "off"]
    } as const
  ).flatMap(([style, words]) => words.map((word) => [word, style as Style]))
)

/** Returns the style of a word for a state, or undefined for other words. In `valid, revoked` the last word decides. */
export const stateStyle = (text: string): Style | undefined => {
  const word = text.split(", ").at(-1) ?? ""
  return Object.hasOwn(styles, word) ? styles[word] : undefined
}
