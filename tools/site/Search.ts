import type { Options, SearchResult } from "minisearch"
import type MiniSearch from "minisearch"

/* How the documents are searched. The program that makes the index and the script of the pages use the same words. */

/** A part of a page, as the index has it. */
export interface Entry {
  /** The place in the site, with the anchor. */
  readonly id: string
  readonly heading: string
  readonly page: string
  readonly words: string
}

const idle = new Set(
  "a an and are as at be but by can do does for from get has have how i if in into is it its me my no not of on or our so than that the their them then there these they this to was we what when where which who why will with you your"
    .split(" ")
)

const longest = 32

/** Returns the form of a word in the index. Returns false for a word that finds nothing useful. */
const processTerm = (term: string): string | false => {
  const word = term.toLowerCase()
  return word.length < 2 || word.length > longest || idle.has(word) || /^\d{5,}$/.test(word) ? false : word
}

/**
 * Returns how much a part counts: pages for users before the long lists, and these before the pages for developers. The
 * beginning of a page counts more than its parts.
 */
const weightOf = (id: string): number =>
  (/^(?:contribute\/|changelog)/.test(id) ? 0.3 : /^reference\/(?:api-|log-|errors|cli)/.test(id) ? 0.5 : 1) *
  (id.includes("#") ? 1 : 1.5)

/** The options of the index. */
export const options: Options<Entry> = {
  fields: ["heading", "page", "words"],
  storeFields: ["heading", "page"],
  processTerm,
  searchOptions: {
    boost: { heading: 4, page: 3 },
    boostDocument: (id: string) => weightOf(id),
    prefix: (term) => term.length > 2,
    fuzzy: (term) => term.length > 4 ? 0.2 : false
  }
}

const shown = 12

/** Returns the parts that a text finds, the best first: those with every word, then those with some of the words. */
export const found = (index: MiniSearch<Entry>, text: string): ReadonlyArray<SearchResult> => {
  const all = index.search(text, { combineWith: "AND" })
  const ids = new Set(all.map(({ id }) => id as string))
  return [...all, ...index.search(text).filter(({ id }) => !ids.has(id as string))].slice(0, shown)
}
