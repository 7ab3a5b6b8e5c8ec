import { openWindow, startBrowser } from "../support/Browser.ts"
import { cleared, linkOnScreen, onTerminalIn } from "./Clone.ts"
import { commandsBelow } from "./Page.ts"
import type { Way } from "./Way.ts"

const page = "docs/start/ten-minutes.md"
const password = "Gdynia harbour, 7 cranes"

/** From the clone to the panel in a real browser. */
export const firstPanel: Way = {
  name: "to the panel in a browser",
  before: "8 steps",
  page,
  commands: [],
  beginsWithClone: true,
  go: async (steps, { clone, scratch }) => {
    cleared(clone)
    const [install = "", start = ""] = commandsBelow(page, "Start it")
    steps.typed(install)
    const serving = onTerminalIn(clone, scratch, steps.typed(start))
    const [, link = ""] = await serving.shown(linkOnScreen)
    const browser = await startBrowser()
    try {
      const { close, page: window } = await openWindow(browser)
      steps.done("the link is opened")
      await window.goto(link)
      await window.fill("[name=newPassword]", password)
      await window.fill("[name=repeated]", password)
      steps.done("the password is chosen")
      await window.click("button[type=submit]")
      await window.waitForURL("**/ui/")
      steps.said(`${await window.title()}: ${await window.locator("h1").innerText()}`)
      await close()
    } finally {
      await browser.close()
    }
    await serving.interrupt()
  }
}
