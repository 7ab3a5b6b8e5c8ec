import type { Meaning } from "../../src/domain/words/meanings/Meaning.ts"
import { saidBy } from "../../src/domain/words/meanings/Meaning.ts"
import { linked, prose, tableOf } from "./Markdown.ts"

/** Returns a table of words with their meanings, remedies and pages. */
export const renderMeanings = (head: string, meanings: { readonly [word: string]: Meaning | string }): string =>
  tableOf(
    [head, "Means", "What to do", "Page"],
    Object.entries(meanings).map(([word, given]) => {
      const { meaning, page, remedy = "" } = saidBy(given)
      return [word, meaning, prose(remedy), page === undefined ? "" : linked(page)]
    })
  )
