import { escaped } from "./Escaped.ts"
import { Rendered } from "./Rendered.ts"
import { isTime, stateStyle, timeShown } from "./Text.ts"

/** Values that a detail view can show. Nested values have their own commands. */
type Shown = string | number | boolean | ReadonlyArray<string>

/** Returns the label of a member: `hmac key` for `hmacKey`. */
const labelOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

const isState = (label: string): boolean => /(?:^|\s)(?:status|state|outcome)$/.test(label)

/**
 * Renders each present member as one padded `label value` line, in the given order. On a terminal, a time also shows
 * how long ago it was, and a word for a state is coloured.
 */
export const renderDetail = (members: { readonly [name: string]: Shown | undefined }): Rendered => {
  const present = Object.entries(members).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [[labelOf(name), Array.isArray(value) ? value.map(escaped).join(", ") : escaped(String(value))] as const]
  )
  const width = Math.max(0, ...present.map(([label]) => label.length))
  return new Rendered((view) =>
    present.map(([label, value]) => {
      const style = isState(label) ? stateStyle(value) : undefined
      const away = isTime(value) ? timeShown(view, value) : value
      const shown = style === undefined ? value : view.paint(style, value)
      return `${label.padEnd(width)}  ${shown}${away === value ? "" : view.paint("dim", ` (${away})`)}`
    }).join("\n")
  )
}
