import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"

/* The main path through the panel, in a real browser and over a real service. The whole of it is `panelWhole.test.ts`. */

describe("the panel in a browser", () => {
  let demo: Demo
  let browser: Browser
  const windows: Array<Window> = []
  const open = async (...given: ReadonlyArray<Parameters<typeof openWindow>[1]>) => {
    const window = await openWindow(browser, given[0])
    windows.push(window)
    return window
  }

  beforeAll(async () => {
    ;[demo, browser] = await Promise.all([startDemo({ isEmpty: true }), startBrowser()])
  })
  afterAll(async () => {
    for (const window of windows) await window.context.close()
    await browser?.close()
    await demo?.stop()
  })

  it("signs in, sees an order become a certificate, revokes it, and signs out", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("operator"))
    assert.strictEqual(new URL(page.url()).pathname, "/ui/")
    await page.click("nav >> text=Orders")
    await page.waitForSelector("text=No order has been made yet")
    const client = await demo.client("corp")
    await client.register()
    const placed = await client.newOrder(["main-path.corp.example"])
    await page.reload()
    await page.click("tbody a")
    await page.waitForSelector("h1:has-text('Order')")
    // What follows is seen without anybody reloading the page.
    await page.waitForSelector("#order[data-poll]")
    const issued = await client.issue(["second.corp.example"], new Map())
    assert.include(issued.chain, "BEGIN CERTIFICATE")
    await client.authorize(placed.body, new Map())
    await page.waitForSelector("#order b:has-text('ready')")
    await page.goto(`${demo.url}/ui/orders?identifier=second.corp.example`)
    await page.click("tbody a")
    await page.waitForSelector("text=BEGIN CERTIFICATE")
    await page.click("summary:has-text('Revoke')")
    await page.selectOption("[name=reason]", { label: "superseded" })
    await page.click("form[hx-post$='/revoke'] button")
    await page.waitForSelector("text=The certificate is revoked.")
    await page.waitForSelector("b:has-text('revoked')")
    await page.click(".menu summary")
    await page.click("text=Sign out")
    await page.waitForURL("**/ui/login?why=out")
    await page.goto(`${demo.url}/ui/orders`)
    assert.strictEqual(new URL(page.url()).pathname, "/ui/login")
    await close()
  })

  it("shows a viewer no act", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("viewer"))
    await page.goto(`${demo.url}/ui/orders`)
    await page.click("tbody a")
    await page.waitForSelector("h1:has-text('Order')")
    assert.strictEqual(await page.locator("form[hx-post*='/orders/']").count(), 0)
    await close()
  })

  it("signs in and reads without scripts", async () => {
    const { close, page } = await open({ hasScripts: false })
    await signInAs(page, demo.url, operatorOf("viewer"))
    await page.goto(`${demo.url}/ui/orders`)
    assert.include(await page.locator("main").innerText(), "second.corp.example")
    await page.click("summary:has-text('Filters')")
    await page.selectOption("[name=status]", "pending")
    await page.click("text=Filter >> nth=-1")
    await page.waitForURL("**status=pending**")
    await close()
  })
})
