import * as Redacted from "effect/Redacted"

/**
 * Returns every value of a section as one text, secrets included. Two sections are equal if their texts are equal. The
 * text has secrets, so use it only for comparison.
 */
export const sectionText = (section: object): string =>
  JSON.stringify(
    Object.entries(section).map(([name, value]: [string, unknown]) => [
      name,
      Redacted.isRedacted(value)
        ? Redacted.value(value)
        : typeof value === "object" && value !== null && !Array.isArray(value)
        ? sectionText(value)
        : value
    ])
  )
