import { readFileSync } from "node:fs"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { builtServer } from "../support/Databases.ts"

/*
 * What programs that read pages aloud find on five pages: the landmarks, the headings, and the names of the controls, in
 * the accessibility tree of a browser. The expected trees are in the folder `trees`.
 */

const shown =
  /^ *- (banner|navigation|search|main|region|contentinfo|form|heading|link|button|textbox|searchbox|combobox|checkbox|table|list|group|img|status)\b/

/**
 * Returns the lines of the landmarks, headings and controls. What differs from run to run is replaced: ids, times,
 * counts and ports.
 */
const outlineOf = (tree: string): string =>
  tree.split("\n").filter((line) => shown.test(line)).map((line) =>
    line.replace(
      /(?<=^ *- (?:link|button|list|status|table|group|img|navigation|region)(?: "[^"]*")?(?: \[[^\]]*\])*):.*$/,
      ""
    )
      .replaceAll(/[0-9a-f]{8}…[0-9a-f]{4}/g, "ID")
      .replaceAll(/(?<!level=)\d+/g, "0")
      .trimEnd()
  ).join("\n")

describe("the accessibility tree", () => {
  let demo: Demo
  let browser: Browser
  let window: Window

  beforeAll(async () => {
    await builtServer()
    ;[browser, demo] = await Promise.all([startBrowser(), startDemo({ state: "empty" })])
    const client = await demo.client("corp")
    await client.register()
    await client.issue(["tree.corp.example"], new Map())
    window = await openWindow(browser, { width: 1440, height: 900 })
    await window.page.route(/[?&]poll=/, (route) => route.fulfill({ status: 204 }))
  })
  afterAll(async () => {
    await window?.context.close()
    await browser?.close()
    await demo?.stop()
  })

  it.each([
    ["sign-in", "/ui/login"],
    ["overview", "/ui/"],
    ["certificates", "/ui/certificates"],
    ["order", "/ui/orders"],
    ["profile", "/ui/profiles/corp"]
  ])("of the page %s has these landmarks, headings and names", async (name, path) => {
    const { page } = window
    if (name === "overview") await signInAs(page, demo.url, operatorOf("operator"))
    await page.goto(`${demo.url}${path}`)
    if (name === "order") {
      await page.click("main tbody a")
      await page.waitForURL("**/ui/orders/*")
    }
    const outline = outlineOf(await page.locator("body").ariaSnapshot())
    assert.strictEqual(`${outline}\n`, readFileSync(new URL(`trees/${name}.txt`, import.meta.url), "utf8"))
  })
})
