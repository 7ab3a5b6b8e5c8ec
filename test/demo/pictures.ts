import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { startBrowser } from "../support/Browser.ts"
import { takeGallery } from "./Gallery.ts"
import { takePanel } from "./PanelPictures.ts"

/*
 * `npm run pictures` takes the pictures of docs/start/panel.md, and those of every page in docs/contribute/gallery.md,
 * with what it counts for each page. `--only panel` takes those of docs/start/panel.md alone. `--to` names a different
 * folder for the pictures; the document is then left alone.
 */

const { values } = parseArgs({ options: { to: { type: "string" }, only: { type: "string" } } })
if (values.only !== undefined && values.only !== "panel" && values.only !== "gallery") {
  throw new Error("--only takes panel or gallery")
}
const docs = join(import.meta.dirname, "../../docs")
const folder = resolve(values.to ?? join(docs, "pictures"))
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const browser = await startBrowser()
try {
  if (values.only !== "gallery") await takePanel(browser, folder, say)
  if (values.only !== "panel") {
    const document = values.to === undefined ? join(docs, "contribute/gallery.md") : undefined
    await takeGallery(browser, { folder: join(folder, "gallery"), document, say })
  }
} finally {
  await browser.close()
}
