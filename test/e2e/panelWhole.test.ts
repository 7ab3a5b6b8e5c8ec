import type { Browser, Page } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { accessFaults, htmlFaults } from "../support/Checked.ts"
import { isFull } from "../support/Full.ts"
import { qrTextOf, totpNow } from "../support/Qr.ts"

/* Every page of the panel in a real browser. The gate runs it; the main path is in `panel.test.ts`. */

/** Every page that needs no id, with who sees it first. */
const pages = [
  "/ui/",
  "/ui/orders",
  "/ui/expiring",
  "/ui/accounts",
  "/ui/eab",
  "/ui/upstream-orders",
  "/ui/jobs",
  "/ui/notifications",
  "/ui/workers",
  "/ui/authorities",
  "/ui/profiles",
  "/ui/profiles/corp/filter",
  "/ui/configuration",
  "/ui/nonces",
  "/ui/audit",
  "/ui/operators",
  "/ui/operators/olga",
  "/ui/account",
  "/ui/search",
  "/ui/search?q=corp.example"
]

/** Pages of one record: the list, and what leads to the record there. */
const records = [
  ["/ui/orders?status=valid", "/ui/orders/"],
  ["/ui/orders?status=invalid", "/ui/orders/"],
  ["/ui/orders?status=pending", "/ui/orders/"],
  ["/ui/accounts", "/ui/accounts/"],
  ["/ui/eab", "/ui/eab/"],
  ["/ui/jobs?status=failed", "/ui/jobs/"],
  ["/ui/upstream-orders", "/ui/upstream-orders/"],
  ["/ui/audit", "/ui/audit/"]
] as const

describe.runIf(isFull)("every page of the panel in a browser", () => {
  let demo: Demo
  let empty: Demo
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
    browser = await startBrowser()
    demo = await startDemo()
    empty = await startDemo({ isEmpty: true })
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
    await Promise.all([demo?.stop(), empty?.stop()])
  })

  it.each([["light", 1280], ["dark", 1280], ["light", 360]] as const)(
    "can be used by everybody and fits its window: %s, %i wide",
    async (theme, width) => {
      const { close, page } = await open({ theme, width })
      await signInAs(page, demo.url, operatorOf("admin"))
      for (const path of [...pages, ...paths]) {
        await at(page, path)
        assert.deepStrictEqual(await accessFaults(page), [], `${path} ${theme} ${width}`)
        const overflow = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert.strictEqual(overflow, 0, `${path} is wider than its window of ${width}`)
      }
      await close()
    }
  )

  it("is HTML as the standard has it, with records and without", async () => {
    const { close, page } = await open()
    for (const { url } of [demo, empty]) {
      await signInAs(page, url, operatorOf("admin"))
      for (const path of [...pages, ...(url === demo.url ? paths : [])]) {
        const answer = await page.request.get(`${url}${path}`)
        assert.strictEqual(answer.status(), 200, path)
        assert.deepStrictEqual(await htmlFaults(await answer.text()), [], path)
        const fragment = await page.request.get(`${url}${path}`, { headers: { "hx-request": "true" } })
        assert.notInclude(await fragment.text(), "<html", path)
      }
    }
    await close()
  })

  it("shows every page to an operator and a viewer, and operators to admins alone", async () => {
    for (const role of ["operator", "viewer"] as const) {
      const { close, page } = await open()
      await signInAs(page, demo.url, operatorOf(role))
      for (const path of [...pages, ...paths]) {
        const answer = await page.request.get(`${demo.url}${path}`)
        assert.strictEqual(answer.status(), path.startsWith("/ui/operators") ? 403 : 200, `${path} ${role}`)
        const forms = role === "viewer" && !path.startsWith("/ui/account")
          ? (await answer.text()).match(/<form[^>]*hx-post="(?!\/ui\/logout)[^"]*"/g)
          : null
        assert.isNull(forms, `${path} shows a viewer an act`)
      }
      await close()
    }
  })

  it("reads without scripts", async () => {
    const { close, page } = await open({ hasScripts: false })
    await signInAs(page, demo.url, operatorOf("viewer"))
    for (const path of [...pages, ...paths].filter((one) => !one.startsWith("/ui/operators"))) {
      await at(page, path)
      assert.isAbove((await page.locator("main").innerText()).length, 20, path)
    }
    await close()
  })

  it("weighs 80 KB at most when it is first seen, files included, and 20 KB of HTML after that", async () => {
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
    assert.deepStrictEqual(weights.filter(([, octets]) => octets > 20_000), [])
    await close()
  })

  it("has the main path done with the keyboard alone", async () => {
    const { close, page } = await open()
    await page.goto(`${demo.url}/ui/login`)
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

  it("enrols a second factor by the code in the picture, and signs in with it", async () => {
    const { close, page } = await open()
    const olga = operatorOf("operator")
    await signInAs(page, demo.url, olga)
    await page.goto(`${demo.url}/ui/account`)
    await page.click("summary:has-text('Set up an authenticator')")
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

  it("sends whoever lost the session to sign-in, and back to the page", async () => {
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

  it("makes one credential of a double click, shows its secret once, and goes back to the list", async () => {
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
