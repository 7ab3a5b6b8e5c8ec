import { mkdirSync } from "node:fs"
import { join, resolve } from "node:path"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { startDemo } from "./Demo.ts"

/*
 * `npm run pictures` takes the pictures of docs/start/panel.md from a demo, each in light and dark colours. `--to`
 * names a different folder.
 */

const [, to] = /^--to=(.+)$/.exec(process.argv[2] ?? "") ?? []
const folder = resolve(to ?? join(import.meta.dirname, "../../docs/pictures"))

const pages: ReadonlyArray<readonly [name: string, path: string, link?: string]> = [
  ["overview", "/ui/"],
  ["orders", "/ui/orders"],
  ["order", "/ui/orders?status=valid&profile=corp", "main tbody a[href^='/ui/orders/']"],
  ["failed-order", "/ui/orders?identifier=wiki.corp.example", "main tbody a[href^='/ui/orders/']"],
  ["jobs", "/ui/jobs"],
  ["policy", "/ui/profiles/corp/filter"]
]

const demo = await startDemo({ tell: (text) => process.stdout.write(`${text}\n`) })
const browser = await startBrowser()
mkdirSync(folder, { recursive: true })
try {
  for (const theme of ["light", "dark"] as const) {
    const { close, page } = await openWindow(browser, { theme, width: 1180, height: 760 })
    await signInAs(page, demo.url, operatorOf("admin"))
    for (const [name, path, link] of pages) {
      await page.goto(`${demo.url}${path}`)
      if (link !== undefined) {
        await page.locator(link).first().click()
        await page.waitForURL("**/ui/orders/*")
      }
      await page.screenshot({ path: join(folder, `panel-${name}-${theme}.png`) })
    }
    await close()
  }
} finally {
  await browser.close()
  await demo.stop()
}
