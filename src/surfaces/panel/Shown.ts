import { replaceHidden } from "../../engine/HiddenText.ts"

/* Foreign text on a page. It must not change how the text beside it reads, and must not hide a part of itself. */

/** A text with every such character named instead. Tabs and line ends stay. */
const shownText = (text: string): string =>
  replaceHidden(text, (character, code) => "\t\n\r".includes(character) ? character : `⟨${code}⟩`)

/** Applies this to every text in the data of a template, so that no template can forget it. */
export const shownValue = (value: unknown): unknown => {
  if (typeof value === "string") return shownText(value)
  if (Array.isArray(value)) return value.map(shownValue)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shownValue(member)]))
}
