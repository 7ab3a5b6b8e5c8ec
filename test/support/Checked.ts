import axe from "axe-core"
import { HtmlValidate } from "html-validate"
import type { Page } from "playwright-core"

/* Judges of pages that others wrote. */

/** What axe finds wrong with a page, by rule and place. */
export const accessFaults = async (page: Page): Promise<ReadonlyArray<string>> => {
  // The policy of the page allows no inline script, and an evaluation is none.
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as axe.AxeResults
  return violations.flatMap(({ help, id, nodes }) => nodes.map(({ target }) => `${id}: ${help}: ${target.join(" ")}`))
}

const validator = new HtmlValidate({
  extends: ["html-validate:standard"],
  rules: {
    // Templates write what their authors find readable.
    "attribute-boolean-style": "off",
    "no-trailing-whitespace": "off",
    "long-title": "off",
    "doctype-style": "off",
    "no-inline-style": "error",
    "require-sri": "off"
  }
})

/** What the validator finds wrong with a document. */
export const htmlFaults = async (html: string): Promise<ReadonlyArray<string>> => {
  const { results } = await validator.validateString(html)
  return results.flatMap(({ messages }) =>
    messages.map(({ line, message, ruleId }) => `${line}: ${ruleId}: ${message}`)
  )
}
