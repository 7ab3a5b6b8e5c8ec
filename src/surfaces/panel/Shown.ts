/* Foreign text on a page. It must not change how the text beside it reads, and must not hide a part of itself. */

/** Controls, and characters that turn the direction of what stands beside them. Tabs and line ends stay. */
const acting = /(?![\t\n\r])[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/gu

const named = (character: string): string =>
  `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`

/** A text with every such character named instead. */
const shownText = (text: string): string => text.replace(acting, named)

/** Applies this to every text in the data of a template, so that no template can forget it. */
export const shownValue = (value: unknown): unknown => {
  if (typeof value === "string") return shownText(value)
  if (Array.isArray(value)) return value.map(shownValue)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shownValue(member)]))
}
