import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { builtServer } from "../support/Databases.ts"

/*
 * The main path through the panel, in a real browser with a real service. `panelWhole.test.ts` tests the rest, and
 * `panelForms.test.ts` the forms.
 */

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
    await builtServer()
    ;[demo, browser] = await Promise.all([startDemo({ state: "empty" }), startBrowser()])
  })
  afterAll(async () => {
    for (const window of windows) await window.context.close()
    await browser?.close()
    await demo?.stop()
  })

  it("takes an operator from the sign-in over the issuance and revocation of a certificate to the sign-out", async () => {
    const { close, context, page } = await open()
    await signInAs(page, demo.url, operatorOf("operator"))
    assert.strictEqual(new URL(page.url()).pathname, "/ui/")
    await page.click("nav >> text=Orders")
    await page.waitForSelector("text=No order has been made yet")
    const client = await demo.client("corp")
    await client.register()
    const placed = await client.newOrder(["main-path.corp.example"])
    await page.reload()
    await page.click("tbody a")
    await page.waitForSelector("h1:has-text('main-path.corp.example')")
    // The following changes appear without a reload of the page.
    await page.waitForSelector("#order[data-poll]")
    const issued = await client.issue(["second.corp.example"], new Map())
    assert.include(issued.chain, "BEGIN CERTIFICATE")
    await client.authorize(placed.body, new Map())
    await page.waitForSelector("#order b:has-text('ready')")
    await page.goto(`${demo.url}/ui/orders?identifier=second.corp.example`)
    await page.click("tbody a")
    await page.waitForSelector("text=BEGIN CERTIFICATE")
    // Another tab shows the order in its earlier state.
    const other = await context.newPage()
    await other.goto(page.url())
    await page.click("summary:has-text('Revoke')")
    await page.selectOption("[name=reason]", { label: "superseded" })
    await page.click("form[hx-post$='/revoke'] button")
    await page.waitForSelector("text=The certificate is revoked.")
    await page.waitForSelector("b:has-text('revoked')")
    await other.click("summary:has-text('Revoke')")
    await other.click("form[hx-post$='/revoke'] button")
    await other.waitForSelector("main > .notice:focus >> text=already_revoked")
    await other.waitForSelector("b:has-text('revoked')")
    let sent = 0
    page.on("request", (request) => {
      if (request.method() === "POST") sent++
    })
    await page.click(".menu summary")
    await page.locator("text=Sign out").dblclick()
    await page.waitForURL("**/ui/login?why=out")
    assert.strictEqual(sent, 1)
    await page.goto(`${demo.url}/ui/orders`)
    assert.strictEqual(new URL(page.url()).pathname, "/ui/login")
    await close()
  })

  it("shows no actions to a viewer", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("viewer"))
    await page.goto(`${demo.url}/ui/orders`)
    await page.click("tbody a")
    await page.waitForSelector("text=Audit rows of this order")
    assert.strictEqual(await page.locator("form[hx-post*='/orders/']").count(), 0)
    await close()
  })

  it("is searched by keys alone: a slash, a text, and arrows through the results", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("viewer"))
    await page.goto(`${demo.url}/ui/orders`)
    await page.click("summary:has-text('Filters')")
    await page.locator("[name=identifier]").press("/")
    assert.strictEqual(await page.locator("[name=identifier]").inputValue(), "/", "a slash in a field is a slash")
    await page.locator("h1").click()
    await page.keyboard.press("/")
    await page.keyboard.type("corp.example")
    const options = page.locator("#q-found [role=option]")
    await options.nth(1).waitFor()
    const box = page.getByRole("combobox", { name: "Search" })
    assert.strictEqual(await box.inputValue(), "corp.example")
    assert.strictEqual(await box.getAttribute("aria-expanded"), "true")
    const chosen = () => page.locator("[role=option][aria-selected=true]").innerText()
    await page.keyboard.press("ArrowDown")
    const first = await chosen()
    await page.keyboard.press("ArrowDown")
    const second = await chosen()
    assert.notStrictEqual(first, second)
    await page.keyboard.press("ArrowUp")
    assert.strictEqual(await chosen(), first)
    await page.keyboard.press("Escape")
    assert.strictEqual(await options.count(), 0)
    await box.fill("second.corp.example")
    await options.first().waitFor()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/ui/orders/*-*")
    assert.include(await page.locator("main").innerText(), "second.corp.example")
    await page.keyboard.press("/")
    await page.keyboard.type("second.corp.example")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/ui/search?q=second.corp.example")
    await close()
  })

  it("tells times relative to now, with the absolute one on hover, in UTC or local as the reader has chosen", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("viewer"))
    await page.goto(`${demo.url}/ui/orders`)
    const time = page.locator("tbody time").first()
    assert.match(await time.innerText(), /^(?:now|\d+ \w+ ago)$/)
    assert.match(await time.getAttribute("title") ?? "", /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/)
    assert.match(await time.getAttribute("datetime") ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    await page.click(".menu summary")
    await page.click("[data-choice=zone]")
    const local = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$/
    assert.match(await time.getAttribute("title") ?? "", local)
    await page.click("tbody a")
    await page.waitForSelector("time .abs")
    assert.match(await page.locator("time .abs").first().innerText(), local, "the browser remembers it")
    await close()
  })

  it("brings rows closer together, and back, as the reader has chosen", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("viewer"))
    await page.goto(`${demo.url}/ui/orders`)
    const height = async () => (await page.locator("tbody tr").first().boundingBox())?.height ?? 0
    const roomy = await height()
    await page.click(".menu summary")
    const button = page.locator("[data-choice=rows]")
    assert.strictEqual(await button.innerText(), "Rows: roomy")
    await button.click()
    assert.strictEqual(await button.innerText(), "Rows: compact")
    const compact = await height()
    assert.isBelow(compact, roomy - 5)
    await page.reload()
    assert.strictEqual(await height(), compact, "the browser remembers it")
    await page.click(".menu summary")
    await button.click()
    assert.strictEqual(await height(), roomy)
    await close()
  })

  it("allows operators to sign in and to read without scripts", async () => {
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

  it("finds and shows a certificate without scripts, says that changes need them, and changes nothing", async () => {
    const client = await demo.client("corp")
    await client.register()
    await client.issue(["plain.corp.example"], new Map())
    const { close, page } = await open({ hasScripts: false })
    await signInAs(page, demo.url, operatorOf("operator"))
    await page.fill("#q", "plain.corp.example")
    await page.press("#q", "Enter")
    await page.waitForURL("**/ui/search?q=plain.corp.example")
    await page.click("main a[href^='/ui/orders/']")
    await page.waitForSelector("h1:has-text('plain.corp.example')")
    const id = new URL(page.url()).pathname.split("/").at(-1) ?? ""
    await page.goto(`${demo.url}/ui/certificates`)
    assert.isFalse(await page.locator(".bulk").isVisible(), "nothing can be ticked")
    await page.goto(`${demo.url}/ui/certificates/revoke?order=${id}`)
    assert.include(await page.content(), "Changes need them.")
    const answered = page.waitForResponse((response) => response.request().method() === "POST")
    await page.click("button.danger")
    assert.strictEqual((await answered).status(), 403)
    await page.waitForSelector("text=has to be loaded again")
    await page.goto(`${demo.url}/ui/orders/${id}`)
    assert.strictEqual(await page.locator("main b:has-text('revoked')").count(), 0)
    await close()
  })
})
