import * as Redacted from "effect/Redacted"

/**
 * Every value of a section, secrets included, as one text. Two sections are equal when their texts are equal. Use the
 * text only to compare: it holds secrets.
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
