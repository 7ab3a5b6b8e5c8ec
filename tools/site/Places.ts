import { posix } from "node:path"

/* Where each file of the repository is in the site, as paths with `/`. */

/** The document that lists all others. It is the first page of the site. */
export const map = "docs/README.md"

/** Returns the path of a file in the site: a page for a document, a copy of any other file. */
export const placeOf = (file: string): string => {
  const inDocs = /^docs\/(.+)$/.exec(file)?.[1]
  const at = inDocs ?? (file.endsWith(".md") ? file.toLowerCase() : `files/${file}`)
  if (inDocs !== undefined) return at.replace(/(^|\/)README\.md$/, "$1index.html").replace(/\.md$/, ".html")
  return at.replace(/\.md$/, ".html")
}

/** Returns the reference from one place of the site to another, with its fragment. */
export const referenceTo = (from: string, to: string, fragment = ""): string =>
  `${posix.relative(posix.dirname(from), to)}${fragment}`
