import type { Page } from "playwright-core"

/* A browser that is used with the keyboard alone. */

/** Returns what is wrong with the focus, or an empty text if a reader sees which element has it. Runs in the page. */
const faultOfFocus = `(() => {
  const element = document.activeElement
  if (element === null || element === document.body) return ""
  const name = element.outerHTML.slice(0, 120)
  if (!element.matches(":focus-visible")) return "the focus is not shown: " + name
  const { boxShadow, outlineStyle, outlineWidth } = getComputedStyle(element)
  if ((outlineStyle === "none" || outlineWidth === "0px") && boxShadow === "none") return "the focus has no mark: " + name
  const { bottom, height, left, right, top, width } = element.getBoundingClientRect()
  if (width === 0 || height === 0) return "the focus is on something without a size: " + name
  if (bottom <= 0 || top >= innerHeight || right <= 0 || left >= innerWidth) return "the focus is outside of the window: " + name
  return ""
})()`

/** Fails unless the focus can be seen. */
export const focusIsSeen = async (page: Page): Promise<void> => {
  const fault = await page.evaluate<string>(faultOfFocus)
  if (fault !== "") throw new Error(fault)
}

/** How often a key is pressed at most, which is more than any page has controls. */
const most = 250

/** Presses a key until the element that has the focus matches a selector. Fails if the focus is unseen at any stop. */
export const pressTo = async (page: Page, selector: string, key = "Tab"): Promise<void> => {
  for (let presses = 0; presses < most; presses++) {
    await page.keyboard.press(key)
    await focusIsSeen(page)
    const isThere = `document.activeElement.matches(${JSON.stringify(selector)})`
    if (await page.evaluate<boolean>(isThere)) return
  }
  throw new Error(`no ${key} leads to ${selector}`)
}
