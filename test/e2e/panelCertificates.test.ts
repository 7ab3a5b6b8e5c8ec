import SqliteDatabase from "better-sqlite3"
import { join } from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { AcmeSession } from "../support/AcmeSession.ts"
import type { Window, WindowOptions } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { accessFaults } from "../support/Checked.ts"
import { builtServer } from "../support/Databases.ts"
import { pressTo } from "../support/Keyboard.ts"

/* The list of certificates in a real browser: tick boxes, the revocation of several certificates, and cards. */

describe("the certificates of the panel in a browser", () => {
  let demo: Demo
  let browser: Browser
  let client: AcmeSession
  const windows: Array<Window> = []
  const open = async (options?: WindowOptions) => {
    const window = await openWindow(browser, options)
    windows.push(window)
    await signInAs(window.page, demo.url, operatorOf("operator"))
    return window
  }

  beforeAll(async () => {
    await builtServer()
    ;[browser, demo] = await Promise.all([startBrowser(), startDemo()])
    client = await demo.client("corp")
    await client.register()
  })
  afterAll(async () => {
    for (const window of windows) await window.context.close()
    await browser?.close()
    await demo?.stop()
  })

  const issue = async (...names: ReadonlyArray<string>): Promise<void> =>
    void (await client.issue([...names], new Map()))
  const of = (part: string) => `${demo.url}/ui/certificates?identifierContains=${part}`

  it("lets an operator revoke several certificates with only the keyboard", async () => {
    for (const name of ["a", "b", "c"]) await issue(`${name}-keys.corp.example`)
    const { close, page } = await open()
    await page.goto(of("-keys"))
    assert.isTrue(await page.locator(".bulk button").isDisabled())
    await pressTo(page, "td.tick input")
    await page.keyboard.press("Space")
    await pressTo(page, "td.tick input")
    await page.keyboard.press("Space")
    await pressTo(page, ".bulk button")
    assert.strictEqual(await page.locator(".bulk button").innerText(), "Revoke 2…")
    await page.keyboard.press("Enter")
    await page.waitForSelector("h1:has-text('Revoke 2 certificates')")
    assert.strictEqual(await page.locator("main tbody tr").count(), 2)
    await pressTo(page, "select[name=reason]")
    await page.keyboard.type("superseded")
    await pressTo(page, "button.danger")

    // Another operator revokes one of them in the meantime.
    const other = await open()
    await other.page.goto(page.url().replace(/&order=.*/, ""))
    await other.page.click("button.danger")
    await other.page.waitForSelector("text=1 certificate is revoked.")
    await other.close()

    await page.keyboard.press("Enter")
    await page.waitForSelector("text=1 certificate is revoked.")
    await page.waitForSelector("text=1 certificate was revoked already")
    assert.strictEqual(await page.evaluate("document.activeElement.id"), "revoked")
    await page.reload()
    await page.waitForSelector("text=2 certificates of these are revoked already.")
    await page.goto(of("-keys"))
    const states = await page.locator("main tbody b").allInnerTexts()
    assert.deepStrictEqual(states.toSorted(), ["revoked", "revoked", "valid"])
    assert.strictEqual(await page.locator("td.tick input").count(), 1)
    await close()
  })

  it("ticks every row at once, and sorts by links", async () => {
    for (const name of ["a", "b"]) await issue(`${name}-all.corp.example`)
    const { close, page } = await open()
    await page.goto(of("-all"))
    await page.check("th.tick input")
    assert.strictEqual(await page.locator(".bulk button").innerText(), "Revoke 2…")
    await page.locator("td.tick input").first().uncheck()
    assert.isFalse(await page.isChecked("th.tick input"))
    await page.goto(`${demo.url}/ui/certificates`)
    await page.click("th a")
    await page.waitForURL("**/ui/certificates?sort=soonest")
    assert.strictEqual(await page.getAttribute("th:has(a)", "aria-sort"), "ascending")
    await page.click("th a")
    await page.waitForURL("**/ui/certificates?sort=latest")
    assert.strictEqual(await page.getAttribute("th:has(a)", "aria-sort"), "descending")
    await close()
  })

  it("shows long names, and many names, without hiding the state and the end", async () => {
    const label = "x".repeat(60)
    const longest = `${label}.${label}.${label}.${"y".repeat(57)}.corp.example`
    assert.lengthOf(longest, 253)
    await issue("planted.corp.example")
    // No client can order such a name with dns-01, so the row is changed.
    const database = new SqliteDatabase(join(demo.directory, "sqlite.db"), { timeout: 10_000 })
    database.prepare("UPDATE orders SET identifiers = replace(identifiers, 'planted.corp.example', ?)").run(longest)
    database.prepare("UPDATE order_identifiers SET name = ? WHERE name = 'planted.corp.example'").run(longest)
    database.close()
    await issue(...Array.from({ length: 100 }, (_, number) => `many-${number}.corp.example`))
    for (const hasScripts of [true, false]) {
      const { close, page } = await open({ width: 390, hasScripts })
      for (const end of ["many-", "x.yyy"]) {
        await page.goto(of(end))
        const row = page.locator("main tbody tr").first()
        for (const part of [row.locator("b"), row.locator("time"), row.locator("td:has(bdi)").first()]) {
          const box = await part.boundingBox()
          assert.isTrue(box !== null && box.x >= 0 && box.x + box.width <= 390, `${end} ${JSON.stringify(box)}`)
        }
        assert.isBelow((await row.boundingBox())?.height ?? 999, 70, end)
      }
      assert.strictEqual(await page.locator("main tbody bdi").first().getAttribute("title"), longest)
      assert.match(await page.locator("main tbody bdi").first().innerText(), /^x+….*corp\.example$/)
      await close()
    }
  })

  it("has cards that are rows and cells of a table for screen readers", async () => {
    const { close, page } = await open({ width: 390 })
    for (const path of ["/ui/certificates", "/ui/orders", "/ui/jobs", "/ui/accounts", "/ui/audit", "/ui/expiring"]) {
      await page.goto(`${demo.url}${path}`)
      const tree = await page.locator("main table.list").last().ariaSnapshot()
      assert.match(tree, /^- table:?/m, path)
      for (const role of ["row ", "columnheader ", "cell "]) assert.include(tree, `- ${role}`, path)
      assert.strictEqual(await page.evaluate("document.documentElement.scrollWidth"), 390, path)
      assert.deepStrictEqual(await accessFaults(page), [], path)
    }
    await close()
  })
})
