import axe from "axe-core"
import { HtmlValidate } from "html-validate"
import type { Page } from "playwright-core"

/* Checks pages with programs of third parties. */

/** Returns the faults that axe finds in a page, by rule and place. */
export const accessFaults = async (page: Page): Promise<ReadonlyArray<string>> => {
  // The policy of the page forbids inline scripts, but an evaluation is not an inline script.
  if (!await page.evaluate("'axe' in globalThis")) await page.evaluate(axe.source)
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as axe.AxeResults
  return violations.flatMap(({ help, id, nodes }) => nodes.map(({ target }) => `${id}: ${help}: ${target.join(" ")}`))
}

const validator = new HtmlValidate({
  extends: ["html-validate:standard"],
  rules: {
    // The authors of a template choose the format that they find readable.
    "attribute-boolean-style": "off",
    "no-trailing-whitespace": "off",
    "long-title": "off",
    "doctype-style": "off",
    "no-inline-style": "error",
    "require-sri": "off"
  }
})

/** Returns the faults that the validator finds in a document. */
export const htmlFaults = async (html: string): Promise<ReadonlyArray<string>> => {
  const { results } = await validator.validateString(html)
  return results.flatMap(({ messages }) =>
    messages.map(({ line, message, ruleId }) => `${line}: ${ruleId}: ${message}`)
  )
}

/**
 * Opens every collapsed part of the page, and from then on records which elements get the focus. Returns the elements
 * that Tab must reach, in order.
 */
const watchFocus = `(() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true
  const reachable = "a[href], button, input, select, textarea, summary, [tabindex='0']"
  const shown = [...document.querySelectorAll(reachable)].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.matches(":disabled, [type=hidden]") &&
    // Tab reaches only the selected one of several radio buttons, and the arrow keys reach the others.
    !one.matches("[type=radio]:not(:checked)")
  )
  const wordOf = (one) =>
    one.tagName.toLowerCase() + " " + (one.textContent.trim() || one.name || one.className).slice(0, 40)
  globalThis.reached = []
  document.addEventListener("focusin", ({ target }) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(target)
    const isSeen = outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0
    const number = shown.indexOf(target)
    globalThis.reached.push(number < 0 ? "another " + wordOf(target) : isSeen ? String(number) : "unseen " + wordOf(target))
  })
  // Starts at the top, wherever the page has put the focus.
  document.body.tabIndex = -1
  document.body.focus()
  globalThis.reached.length = 0
  return shown.map(wordOf)
})()`

/**
 * Returns what cannot be done on a page without a mouse. Tab must reach every control and link, in the order of the
 * page, and each element must show that it has the focus. Returns the first three mistakes.
 */
export const keyboardFaults = async (page: Page): Promise<ReadonlyArray<string>> => {
  const expected = await page.evaluate<ReadonlyArray<string>>(watchFocus)
  for (let presses = 0; presses < expected.length; presses++) await page.keyboard.press("Tab")
  const reached = await page.evaluate<ReadonlyArray<string>>("globalThis.reached")
  return expected.flatMap((word, number) =>
    reached[number] === String(number) ? [] : [`Tab ${number + 1} leads to ${reached[number]}, not to ${word}`]
  ).slice(0, 3)
}
