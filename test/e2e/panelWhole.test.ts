import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, Page } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import { totpNow } from "../support/Authenticator.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { builtServer } from "../support/Databases.ts"
import { qrTextOf } from "../support/Qr.ts"

/*
 * Tests what happens between pages of the panel, in a real browser. The gate runs this test. `panel.test.ts` tests the
 * main path, and `panelPages.test.ts` each page by itself.
 */

/** Every page that needs no id. */
const pages = [
  "/ui/",
  "/ui/certificates",
  "/ui/certificates?sort=soonest",
  "/ui/orders",
  "/ui/expiring",
  "/ui/campaigns",
  "/ui/accounts",
  "/ui/eab",
  "/ui/upstream-orders",
  "/ui/jobs",
  "/ui/notifications",
  "/ui/workers",
  "/ui/authorities",
  "/ui/profiles",
  "/ui/profiles/corp/filter",
  "/ui/profiles/corp/kinds",
  "/ui/configuration",
  "/ui/nonces",
  "/ui/audit",
  "/ui/audit/chain",
  "/ui/operators",
  "/ui/operators/olga",
  "/ui/account",
  "/ui/search",
  "/ui/search?q=corp.example"
]

/** Pages that show one record, as the list that contains the record and the beginning of the link to the page. */
const records = [
  ["/ui/orders?status=valid", "/ui/orders/"],
  ["/ui/orders?status=invalid", "/ui/orders/"],
  ["/ui/orders?status=pending", "/ui/orders/"],
  ["/ui/accounts", "/ui/accounts/"],
  ["/ui/eab", "/ui/eab/"],
  ["/ui/campaigns", "/ui/campaigns/"],
  ["/ui/jobs?status=failed", "/ui/jobs/"],
  ["/ui/upstream-orders", "/ui/upstream-orders/"],
  ["/ui/audit", "/ui/audit/"]
] as const

describe("every page of the panel in a browser", () => {
  let demo: Demo
  let browser: Browser
  const paths: Array<string> = []
  const windows: Array<Window> = []
  const open = async (options?: Parameters<typeof openWindow>[1]) => {
    const window = await openWindow(browser, options)
    windows.push(window)
    return window
  }
  const at = async (page: Page, path: string) => {
    const answer = await page.goto(`${demo.url}${path}`)
    assert.strictEqual(answer?.status(), 200, path)
  }

  beforeAll(async () => {
    await builtServer()
    browser = await startBrowser()
    demo = await startDemo()
    const { context, page } = await open()
    await signInAs(page, demo.url, operatorOf("admin"))
    for (const [list, prefix] of records) {
      await page.goto(`${demo.url}${list}`)
      const links = await page.locator(`main tbody a[href^="${prefix}"]`).evaluateAll((found) =>
        found.map((one) => one.getAttribute("href") ?? "")
      )
      const [path] = links.filter((one) => !one.includes("?"))
      assert.isDefined(path, `${list} leads to no record`)
      if (path !== undefined) paths.push(path)
    }
    await context.close()
  })
  afterAll(async () => {
    for (const window of windows) await window.context.close()
    await browser?.close()
    await demo?.stop()
  })

  it("loads at most 80 KB on the first visit, and at most 20 KB of HTML for every other page", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("admin"))
    const weights: Array<readonly [string, number]> = []
    for (const path of [...pages, ...paths]) {
      const answer = await page.request.get(`${demo.url}${path}`)
      weights.push([path, (await answer.body()).length])
    }
    let files = 0
    const html = await (await page.request.get(`${demo.url}/ui/`)).text()
    for (const [, url = ""] of html.replaceAll("&#x2f;", "/").matchAll(/(?:src|href)="(\/ui\/static\/[^"]+)"/g)) {
      files += (await page.request.get(`${demo.url}${url}`, { headers: { "accept-encoding": "identity" } }))
          .headers()["content-length"] === undefined
        ? 0
        : Number((await page.request.get(`${demo.url}${url}`)).headers()["content-length"])
    }
    const first = weights.find(([path]) => path === "/ui/")?.[1] ?? 0
    process.stdout.write(
      `${weights.map(([path, octets]) => `${String(octets).padStart(7)} ${path}`).join("\n")}\n${
        String(files).padStart(7)
      } files, as they are sent\n`
    )
    assert.isBelow(first + files, 80_000)
    assert.deepStrictEqual(weights.filter(([path, octets]) => octets > (path === "/ui/" ? 32_000 : 20_000)), [])
    await close()
  })

  it("opens from a link of another site, after a sign-in if there is no session", async () => {
    // For a browser, the other name of this host is another site.
    const elsewhere = createServer((_, answer) => {
      answer.setHeader("content-type", "text/html").end(`<a href="${demo.url}/ui/orders?status=valid">A ticket</a>`)
    })
    elsewhere.listen(0, "127.0.0.1")
    await once(elsewhere, "listening")
    const { close, page } = await open()
    const follow = async (landing: RegExp) => {
      await page.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`)
      await page.click("a")
      await page.waitForURL(landing)
    }
    try {
      assert.include(demo.url, "localhost")
      await follow(/\/ui\/login\?next=/)
      const { password, username } = operatorOf("viewer")
      await page.fill("[name=username]", username)
      await page.fill("[name=password]", password)
      await page.click("button[type=submit]")
      await page.waitForURL(`${demo.url}/ui/orders?status=valid`)
      await follow(/\/ui\/orders\?status=valid/)
      await page.waitForSelector("main tbody tr")
    } finally {
      await close()
      elsewhere.close()
    }
  })

  it("allows the main path with only the keyboard", async () => {
    const { close, page } = await open()
    await page.goto(`${demo.url}/ui/login`)
    await page.waitForSelector("[name=username]:focus")
    const { password, username } = operatorOf("operator")
    await page.keyboard.type(username)
    await page.keyboard.press("Tab")
    await page.keyboard.type(password)
    await page.keyboard.press("Enter")
    await page.waitForURL("**/ui/")
    await page.keyboard.press("Tab")
    assert.strictEqual(await page.evaluate("document.activeElement.className"), "skip")
    await page.keyboard.press("Enter")
    assert.strictEqual(await page.evaluate("document.activeElement.id"), "main")
    await at(page, "/ui/orders")
    await page.focus("main tbody a")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/ui/orders/*")
    await close()
  })

  it("sets up a second factor from the QR code, and signs in with it", async () => {
    const { close, page } = await open()
    const olga = operatorOf("operator")
    await signInAs(page, demo.url, olga)
    await page.goto(`${demo.url}/ui/account`)
    await page.click("summary:has-text('Set up an authenticator')")
    await page.fill("form[hx-post='/ui/account/factor/begin'] [name=password]", olga.password)
    await page.click("form[hx-post='/ui/account/factor/begin'] button")
    await page.waitForSelector("svg.qr")
    const uri = new URL(await qrTextOf(await page.locator("svg.qr").screenshot()))
    assert.strictEqual(uri.protocol, "otpauth:")
    const secret = uri.searchParams.get("secret") ?? ""
    await page.fill("form[hx-post='/ui/account/factor/confirm'] [name=code]", totpNow(secret))
    await page.click("form[hx-post='/ui/account/factor/confirm'] button")
    await page.waitForSelector("ul.codes li")
    const codes = await page.locator("ul.codes li").allInnerTexts()
    assert.lengthOf(codes, 10)
    const second = await open()
    await signInAs(second.page, demo.url, olga)
    assert.strictEqual(new URL(second.page.url()).pathname, "/ui/login/verify")
    await second.page.fill("[name=code]", "000000")
    await second.page.click("button.main")
    await second.page.waitForSelector("text=The code is wrong")
    await second.page.fill("[name=code]", codes[0] ?? "")
    await second.page.click("button.main")
    await second.page.waitForURL("**/ui/")
    await second.close()

    await close()
  })

  it("sends an operator who lost the session to the sign-in, and then back to the page", async () => {
    const { close, context, page } = await open()
    const ann = operatorOf("admin")
    await signInAs(page, demo.url, ann)
    await at(page, "/ui/eab")
    await context.clearCookies()
    await page.click("summary:has-text('Filters')")
    await page.click("main form[hx-get] button")
    await page.waitForURL("**/ui/login?next=**")
    await page.fill("[name=username]", ann.username)
    await page.fill("[name=password]", ann.password)
    await page.click("button[type=submit]")
    await page.waitForURL("**/ui/eab**")
    await close()
  })

  it("is not shown again by the back button after a sign-out", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("admin"))
    await at(page, "/ui/orders")
    await page.click("main tbody a")
    await page.waitForSelector("text=Audit rows of this order")
    await page.click(".menu summary")
    await page.click("text=Sign out")
    await page.waitForURL("**/ui/login?why=out")
    for (let steps = 0; steps < 2; steps++) {
      await page.goBack()
      await page.waitForURL("**/ui/login?next=**")
      assert.strictEqual(await page.locator("main tbody, main dl").count(), 0)
    }
    await close()
  })

  it("sends no form again if the operator goes back in the browser", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("admin"))
    await at(page, "/ui/orders?status=valid&profile=corp")
    await page.click("main tbody a")
    await page.waitForSelector("summary:has-text('Revoke the certificate')")
    let sent = 0
    page.on("request", (request) => {
      if (request.method() === "POST") sent++
    })
    await page.click("summary:has-text('Revoke')")
    await page.click("form[hx-post$='/revoke'] button")
    await page.waitForSelector("text=The certificate is revoked.")
    await page.goBack()
    await page.waitForSelector("text=The certificate is revoked already.")
    await page.goForward()
    await page.waitForSelector("text=The certificate is revoked.")
    await page.reload()
    await page.waitForSelector("text=The certificate is revoked already.")
    assert.strictEqual(sent, 1)
    await close()
  })

  it("creates one credential for a double click", async () => {
    const { close, page } = await open()
    await signInAs(page, demo.url, operatorOf("admin"))
    await at(page, "/ui/eab")
    const before = await page.locator("main tbody tr").count()
    await page.click("summary:has-text('Make a credential')")
    await page.fill("form[hx-post='/ui/eab'] [name=label]", "Double")
    await page.locator("form[hx-post='/ui/eab'] button[type=submit]").dblclick()
    await page.waitForSelector(".secret")
    await at(page, "/ui/eab")
    assert.strictEqual(await page.locator("main tbody tr").count(), before + 1)
    assert.strictEqual(await page.locator(".secret").count(), 0)
    await page.goBack()
    await close()
  })
})
