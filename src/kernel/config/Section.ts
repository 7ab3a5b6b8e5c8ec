import { Redacted } from "effect"

/** Every value of a section, secrets included: two sections are the same when their texts are. For comparing alone. */
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
