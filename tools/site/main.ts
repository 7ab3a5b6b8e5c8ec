import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { makeSite } from "./Site.ts"

/*
 * `npm run site` writes the site of the documents into `dist/site`, and prints how large it is. `npm run build` does the
 * same, and names a file for what is in the script of the site, as esbuild describes it.
 */

const folder = resolve(import.meta.dirname, "../../dist/site")
const [, , metafile] = process.argv

const { files, metafile: described } = await makeSite()
rmSync(folder, { recursive: true, force: true })
for (const [name, content] of files) {
  const file = join(folder, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}
const sizeOf = (pattern: RegExp): string => {
  const chosen = [...files].filter(([name]) => pattern.test(name))
  return `${chosen.length} of ${chosen.reduce((sum, [, content]) => sum + Buffer.byteLength(content), 0)} octets`
}
if (metafile !== undefined) writeFileSync(metafile, JSON.stringify(described))
else {
  process.stdout.write(
    `dist/site: pages ${sizeOf(/\.html$/)}, index ${sizeOf(/^search-index\.js$/)}, script and style ${
      sizeOf(/^site\./)
    }, pictures ${sizeOf(/^pictures\//)}\n`
  )
}
