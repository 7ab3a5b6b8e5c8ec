import { join } from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, startBrowser } from "../support/Browser.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import type { Http01Responder } from "../support/Http01Responder.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { focusIsSeen, pressTo } from "../support/Keyboard.ts"
import type { OnTerminal } from "../support/OnTerminal.ts"
import { onTerminal } from "../support/OnTerminal.ts"
import { leafOf } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import { runtime, thisBuild } from "../support/Server.ts"

/* The way of a newcomer with the keyboard alone: from `npm start` to certificates, and to their revocation in the panel. */

describe("npm start, with the keyboard alone", () => {
  const directory = freshDirectory()
  let env: Record<string, string>
  let terminal: OnTerminal | undefined
  let browser: Browser
  let window: Window
  let responder: Http01Responder
  let directoryUrl = ""
  const serials: Array<string> = []

  beforeAll(async () => {
    await builtServer()
    const [port, adminPort, httpPort] = [await freePort(), await freePort(), await freePort()]
    responder = await startHttp01Responder({ port: httpPort })
    directoryUrl = `http://localhost:${port}/profile/default/directory`
    env = {
      PATH: process.env["PATH"] ?? "",
      HOME: directory,
      USER: "newcomer",
      NO_COLOR: "1",
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: `http://localhost:${port}`,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: `http://localhost:${adminPort}`
    }
    const program = `'${runtime}' '${join(thisBuild, "dist/main.js")}'`
    terminal = onTerminal(`${program} init && exec ${program} serve`, { directory, env })
    browser = await startBrowser()
    window = await openWindow(browser)
  })
  afterAll(async () => {
    await browser?.close()
    await terminal?.interrupt()
    await responder?.stop()
  })

  it("leads from the link over the password into the panel", async () => {
    const { page } = window
    const [, link = ""] = await terminal?.shown(/^ {2}(http:\/\/localhost:\d+\/ui\/link#[\w-]{43})$/m) ?? []
    await page.goto(link)
    await page.waitForSelector("[name=newPassword]")
    await focusIsSeen(page)
    for (const name of ["newPassword", "repeated"]) {
      const isThere = await page.evaluate<boolean>(`document.activeElement.matches("[name=${name}]")`)
      if (!isThere) await pressTo(page, `[name=${name}]`)
      await page.keyboard.type("Gdynia harbour, 7 cranes")
    }
    await pressTo(page, "button[type=submit]")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/ui/")
  })

  it("shows certificates that a client got, and revokes two of them at once", async () => {
    const session = await AcmeSession.open(directoryUrl)
    await session.register()
    for (const name of ["one", "two", "three"]) {
      serials.push(
        leafOf((await session.issue([`${name}.localhost`], responder.tokens)).chain).serialNumber.toLowerCase()
      )
    }
    session.close()

    const { page } = window
    await pressTo(page, "a.skip")
    await pressTo(page, "nav.side a[href='/ui/certificates']")
    await page.keyboard.press("Enter")
    await page.waitForSelector("main table.of-certificates")
    for (let ticked = 0; ticked < 2; ticked++) {
      await pressTo(page, "td.tick input:not(:checked)")
      await page.keyboard.press("Space")
    }
    await pressTo(page, ".bulk button")
    assert.strictEqual(await page.locator(".bulk button").innerText(), "Revoke 2…")
    await page.keyboard.press("Enter")
    await page.waitForSelector("h1:has-text('Revoke 2 certificates')")
    await pressTo(page, "select[name=reason]")
    await page.keyboard.type("superseded")
    await pressTo(page, "button.danger")
    await page.keyboard.press("Enter")
    await page.waitForSelector("text=2 certificates are revoked.")

    const listed = await commandLine(["cert", "list", "--state", "revoked", "--json"], { config: null, directory, env })
    const { items } = JSON.parse(listed.stdout) as { readonly items: ReadonlyArray<{ readonly certSerial: string }> }
    assert.sameMembers(items.map(({ certSerial }) => certSerial.toLowerCase()), serials.slice(1))
    await window.close()
  })
})
