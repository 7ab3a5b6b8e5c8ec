import { posix } from "node:path"
import { map } from "./Places.ts"

/* The list of the documents, docs/README.md, as data. */

/** A document and its name in the list. */
export interface Listed {
  readonly document: string
  readonly name: string
}

/** A section of the list, such as "Operate". */
export interface Section {
  readonly name: string
  readonly pages: ReadonlyArray<Listed>
}

const capitalized = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

/** Reads the sections of the list. A section without documents is left out. */
export const sectionsOf = (text: string): ReadonlyArray<Section> =>
  text.split(/^## /m).slice(1).flatMap((part) => {
    const name = part.slice(0, part.indexOf("\n"))
    const items = [...part.matchAll(/^- .*(?:\n {2}.*)*/gm)].map(([item]) => item).join("\n")
    const pages = [...items.matchAll(/\[([^\]]+)\]\(([^)#\s]+\.md)\)/g)].map(([, named = "", target = ""]) => ({
      document: posix.join(posix.dirname(map), target),
      name: capitalized(named.replaceAll("`", "").replaceAll(/\s+/g, " "))
    }))
    return pages.length === 0 ? [] : [{ name, pages }]
  })

/** Returns the page of the list that stands for a document: its own, or that of the list of its folder. */
export const listedFor = (sections: ReadonlyArray<Section>, document: string): string =>
  sections.some(({ pages }) => pages.some((page) => page.document === document))
    ? document
    : posix.join(posix.dirname(document), "README.md")
