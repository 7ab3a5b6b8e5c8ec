import type { Browser, Page } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { builtServer } from "../support/Databases.ts"
import { nameOf, rows } from "../support/PanelPages.ts"
import { pathOf } from "../support/PanelPaths.ts"

/*
 * At a zoom of 200 % a window of 1440 pixels has 720 pixels of the page, and each of these is two pixels wide. No page
 * may then lose a control or scroll sideways (WCAG 2.2, 1.4.4 and 1.4.10).
 */

const pages = rows.flatMap((row) => row.kind === "page" && row.from !== "half" ? [row] : [])

/** Returns the words of every control of the content that can be seen, in the order of the page. */
const controlsOf = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(
    `[...document.querySelectorAll("main a[href], main button, main input, main select, main textarea, main summary")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.type !== "hidden")
    .map((one) => one.tagName + " " + (one.ariaLabel ?? one.name ?? "") + " " + one.textContent.trim().slice(0, 40))`
  )

const overflowOf = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

describe("the panel at a zoom of 200 %", () => {
  let demo: Demo
  let browser: Browser
  const windows: Array<Window> = []

  beforeAll(async () => {
    await builtServer()
    ;[browser, demo] = await Promise.all([startBrowser(), startDemo()])
    const whole = await openWindow(browser, { width: 1440, height: 900 })
    const zoomed = await openWindow(browser, { width: 720, height: 450, scale: 2 })
    for (const window of [whole, zoomed]) {
      windows.push(window)
      await window.page.route(/[?&]poll=/, (route) => route.fulfill({ status: 204 }))
      await signInAs(window.page, demo.url, operatorOf("admin"))
    }
  })
  afterAll(async () => {
    for (const { context } of windows) await context.close()
    await browser?.close()
    await demo?.stop()
  })

  it.each(pages.map((row) => ({ name: nameOf(row), row })))("keeps every control of $name", async ({ row }) => {
    const [whole, zoomed] = windows.map(({ page }) => page)
    if (whole === undefined || zoomed === undefined) throw new Error("no windows")
    const path = await pathOf(row, async (list) => (await whole.request.get(`${demo.url}${list}`)).text())
    for (const page of [whole, zoomed]) await page.goto(`${demo.url}${path}`)
    assert.deepStrictEqual(await controlsOf(zoomed), await controlsOf(whole))
    assert.strictEqual(await overflowOf(zoomed), 0)
  })

  it("opens the navigation, the menu and the search", async () => {
    const page = windows[1]?.page
    if (page === undefined) throw new Error("no window")
    await page.goto(`${demo.url}/ui/orders`)
    await page.click("nav summary:has-text('Pages')")
    await page.click("nav a:has-text('Certificates')")
    await page.waitForURL("**/ui/certificates")
    await page.click(".menu summary")
    assert.isTrue(await page.getByText("Sign out").isVisible())
    assert.strictEqual(await overflowOf(page), 0)
    await page.keyboard.press("Escape")
    await page.fill("#q", "intranet.corp.example")
    await page.locator("#q-found [role=option]").first().waitFor()
    assert.strictEqual(await overflowOf(page), 0)
  })
})
