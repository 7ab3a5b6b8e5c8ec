import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Browser } from "playwright-core"
import { openWindow, operatorOf, signInAs } from "../support/Browser.ts"
import { startDemo } from "./Demo.ts"

/* The pictures of docs/start/panel.md, each in light and dark colours. */

const pages: ReadonlyArray<readonly [name: string, path: string, link?: string]> = [
  ["overview", "/ui/"],
  ["orders", "/ui/orders"],
  ["order", "/ui/orders?identifier=gitea.corp.example", "main tbody a[href^='/ui/orders/']"],
  ["failed-order", "/ui/orders?identifier=wiki.corp.example", "main tbody a[href^='/ui/orders/']"],
  ["jobs", "/ui/jobs"],
  ["policy", "/ui/profiles/corp/filter"]
]

/** Takes the pictures from a demo into a folder. */
export const takePanel = async (browser: Browser, folder: string, say: (text: string) => void): Promise<void> => {
  const demo = await startDemo({ tell: say })
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
    await demo.stop()
  }
}
