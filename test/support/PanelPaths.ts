import type { Browser } from "playwright-core"
import type { Demo, DemoOperator } from "../demo/Demo.ts"
import { enrol, openWindow, signInAs } from "./Browser.ts"
import type { Row } from "./PanelPages.ts"
import { patternOf } from "./PanelRoutes.ts"

/* How the pages of the table are reached in a demo. */

/**
 * Returns the path of a row. `htmlOf` returns a page that links to it. Returns undefined if that page has no such link.
 */
export const pathOf = async (
  { at, pattern }: Row,
  htmlOf: (path: string) => Promise<string>
): Promise<string | undefined> => {
  if (typeof at === "string") return at
  const { linkedFrom, plus = "" } = at
  const links = [...(await htmlOf(linkedFrom)).matchAll(/href="([^"?#]+)"/g)].map(([, href = ""]) => `${href}${plus}`)
  return links.find((one) => patternOf(one) === pattern)
}

/** An operator with a second factor, whose session is used before its code is entered. */
export const half: DemoOperator = { username: "hanna", password: "Half a bridge is no bridge", role: "viewer" }

/** Makes {@link half} in a demo. */
export const enlistHalf = async (browser: Browser, demo: Demo): Promise<void> => {
  await demo.enlist(half)
  const window = await openWindow(browser)
  await signInAs(window.page, demo.url, half)
  await enrol(window, demo.url, half)
  await window.close()
}
