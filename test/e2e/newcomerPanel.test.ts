import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openWindow, startBrowser } from "../support/Browser.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { OnTerminal } from "../support/OnTerminal.ts"
import { onTerminal } from "../support/OnTerminal.ts"
import { freePort } from "../support/Ports.ts"
import { runtime, thisBuild } from "../support/Server.ts"

/* The way of a newcomer from `npm start` on a terminal to the panel, in a real browser. */

const [first, second] = ["Gdynia harbour, 7 cranes", "Wrocław tramway, 4 stops"]
const linkPattern = /^ {2}(http:\/\/localhost:\d+\/ui\/link#([\w-]{43}))$/m

describe.each(databases)("npm start on a terminal, $name", ({ dialect, freshUrl }) => {
  let browser: Browser
  let terminal: OnTerminal | undefined
  let env: Record<string, string>
  const directory = freshDirectory()

  const start = () => {
    const program = `'${runtime}' '${join(thisBuild, "dist/main.js")}'`
    terminal = onTerminal(`${program} init && exec ${program} serve`, { directory, env })
    return terminal
  }

  beforeAll(async () => {
    await builtServer()
    const [port, adminPort] = [await freePort(), await freePort()]
    env = {
      PATH: process.env["PATH"] ?? "",
      HOME: directory,
      USER: "newcomer",
      NO_COLOR: "1",
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: `http://localhost:${port}`,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: `http://localhost:${adminPort}`,
      ...dialect === "sqlite" ? {} : { ACME_SVC_DATABASE__URL: await freshUrl() }
    }
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await terminal?.interrupt()
  })

  const fillPassword = async (page: Awaited<ReturnType<typeof openWindow>>["page"], text: string) => {
    await page.fill("[name=newPassword]", text)
    await page.fill("[name=repeated]", text)
  }

  it("prints a link that leads a browser into the panel, once", async () => {
    const { screen, shown } = start()
    const [, link = "", token = ""] = await shown(linkPattern)
    await shown(/\/profile\/default\/\n/)
    assert.match(screen(), /^created operator +admin, whose password a link of serve sets$/m)

    const { close, context, page } = await openWindow(browser)
    // A browser that was told the other name of this machine is led to the right one.
    await page.goto(link.replace("localhost", "127.0.0.1"))
    await page.waitForSelector("[name=newPassword]")
    assert.notInclude(page.url(), token)
    assert.strictEqual(new URL(page.url()).hostname, "localhost")
    assert.strictEqual(await page.inputValue("[name=username]"), "admin")
    const other = await context.newPage()
    await other.goto(link)
    await other.waitForSelector("[name=newPassword]")
    await fillPassword(page, first)
    // The script sends a form only once.
    await page.locator("button[type=submit]").dblclick()
    await page.waitForURL("**/ui/")
    await page.waitForSelector("h1")

    await fillPassword(other, second)
    await other.click("button[type=submit]")
    await other.waitForSelector("text=This link was used already.")
    await other.waitForSelector("text=acme-svc admin user passwd admin")
    const late = await context.newPage()
    await late.goto(link)
    await late.waitForSelector("text=This link was used already.")

    await page.click(".menu summary")
    await page.click("text=Sign out")
    await page.waitForURL("**/ui/login?why=out")
    await page.fill("[name=username]", "admin")
    await page.fill("[name=password]", first)
    await page.click("button[type=submit]")
    await page.waitForURL("**/ui/")
    await close()

    await shown(/^\d\d:\d\d:\d\dZ 303 POST \/ui\/link\/password \d+ ms$/m)
    await shown(/^\d\d:\d\d:\d\dZ 410 POST \/ui\/link\/password \d+ ms \S+$/m)
    assert.strictEqual(screen().split(token).length, 2, "the link is on the screen once, and nowhere else")
    for (const name of readdirSync(directory).filter((file) => !file.startsWith("."))) {
      assert.notInclude(readFileSync(join(directory, name), "latin1"), token, name)
    }
  })

  it("prints no link once the password is set", async () => {
    assert.strictEqual(await terminal?.interrupt(), 0)
    const { screen, shown } = start()
    await shown(/\/profile\/default\/\n/)
    assert.match(screen(), /^ {2}Panel +http:\/\/localhost:\d+\/ui\/$/m)
    assert.notMatch(screen(), /admin user|\/ui\/link/)
  })

  it("can be told to print another link, also for a browser without scripts", async () => {
    const made = await commandLine(["admin", "user", "link", "admin"], { config: null, directory, env })
    assert.strictEqual(made.code, 0, made.stderr)
    const link = made.stdout.trim()
    assert.match(made.stderr, /good once, for 15 minutes/)
    const { close, page } = await openWindow(browser, { hasScripts: false })
    await page.goto(link)
    await page.fill("[name=token]", link)
    await page.click("button[type=submit]")
    await fillPassword(page, second)
    await page.click("button[type=submit]")
    await page.waitForURL("**/ui/")
    await close()
  })
})
