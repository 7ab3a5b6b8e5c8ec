import { readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { catalogues } from "./Catalogues.ts"
import { diagrams } from "./Diagrams.ts"
import { replaced } from "./Markdown.ts"

/* `npm run catalogues` writes the catalogues into their documents, and draws the diagrams. */

const repository = resolve(import.meta.dirname, "../..")

for (const [document, render] of Object.entries(catalogues)) {
  const file = join(repository, document)
  writeFileSync(file, replaced(readFileSync(file, "utf8"), render()))
}
for (const [picture, draw] of Object.entries(diagrams)) writeFileSync(join(repository, picture), await draw())
