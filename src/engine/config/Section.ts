import * as Redacted from "effect/Redacted"

/**
 * Returns all values of a section as one text, including the secrets. Two sections are equal if their texts are equal.
 * The text contains secrets, so it may only be used for comparisons.
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
