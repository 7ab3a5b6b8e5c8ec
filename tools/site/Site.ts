import { build } from "esbuild"
import MiniSearch from "minisearch"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { sectionsOf } from "./DocumentMap.ts"
import { pageOf } from "./Page.ts"
import { sizeOf } from "./PictureSize.ts"
import { map, placeOf } from "./Places.ts"
import type { Prose } from "./Prose.ts"
import { render } from "./Prose.ts"
import type { Entry } from "./Search.ts"
import { options } from "./Search.ts"

/* The site of the documents: every document as a page, with a search, for browsers without a network. */

const repository = resolve(import.meta.dirname, "../..")

const octets = (file: string): Buffer => readFileSync(join(repository, file))
const text = (file: string): string => octets(file).toString("utf8")

const isFile = (path: string): boolean => statSync(join(repository, path), { throwIfNoEntry: false })?.isFile() === true

const around = { isFile, sizeOf: (path: string) => isFile(path) ? sizeOf(octets(path)) : undefined }

/** The documents, each by its path in the repository. */
const documents: ReadonlyArray<string> = [
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(join(repository, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`)
    .toSorted()
]

/** Returns the parts of a page for the search. The first part stands for the whole page. */
const entriesOf = (document: string, { parts, title }: Prose): ReadonlyArray<Entry> =>
  parts.map(({ anchor, heading, words }, index) => ({
    id: index === 0 ? placeOf(document) : `${placeOf(document)}#${anchor}`,
    heading,
    page: index === 0 ? "" : title,
    // Of the records of development the headings are enough to find them by.
    words: document.startsWith("docs/contribute/") ? "" : words
  }))

/** Returns the index as a script, because a page that was opened as a file cannot read other files. */
const indexScript = (rendered: ReadonlyMap<string, Prose>): string => {
  const index = new MiniSearch<Entry>(options)
  for (const [document, prose] of rendered) index.addAll(entriesOf(document, prose))
  return `globalThis.siteIndex=${JSON.stringify(index)}\n`
}

/** The files of the site by their paths, and what is in its script, as esbuild describes it. */
export interface Site {
  readonly files: ReadonlyMap<string, string | Uint8Array>
  readonly metafile: object
}

/** Makes the site. Equal documents give equal files. */
export const makeSite = async (): Promise<Site> => {
  const { version } = JSON.parse(text("package.json")) as { readonly version: string }
  const frame = { version, sections: sectionsOf(text(map)) }
  const rendered = new Map(documents.map((document) => [document, render(document, text(document), around)]))
  const files = new Map<string, string | Uint8Array>()
  for (const [document, prose] of rendered) files.set(placeOf(document), pageOf(frame, document, prose))
  for (const file of [...rendered.values()].flatMap(({ leadsTo }) => leadsTo)) {
    if (!rendered.has(file)) files.set(placeOf(file), octets(file))
  }
  const [script, style] = await Promise.all([
    build({
      absWorkingDir: repository,
      entryPoints: ["tools/site/site.js"],
      bundle: true,
      minify: true,
      format: "iife",
      target: "es2022",
      legalComments: "none",
      metafile: true,
      write: false
    }),
    build({
      absWorkingDir: repository,
      stdin: {
        contents: `@import "./panel/static/panel.css"; @import "./tools/site/site.css";`,
        loader: "css",
        resolveDir: repository
      },
      bundle: true,
      minify: true,
      write: false
    })
  ])
  files.set("site.js", script.outputFiles[0]?.text ?? "")
  files.set("site.css", style.outputFiles[0]?.text ?? "")
  files.set("mark.svg", octets("panel/static/mark.svg"))
  files.set("search-index.js", indexScript(rendered))
  return { files, metafile: script.metafile }
}
