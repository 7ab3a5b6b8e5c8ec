/** Values a detail view can show; nested ones are told apart by their own commands. */
type Shown = string | number | boolean | ReadonlyArray<string>

/** `hmacKey` as people read it: `hmac key`. */
const labelOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** One padded `label value` line for each member present, in the order given. */
export const renderDetail = (members: { readonly [name: string]: Shown | undefined }): string => {
  const present = Object.entries(members).flatMap(([name, value]) =>
    value === undefined ? [] : [[labelOf(name), Array.isArray(value) ? value.join(", ") : String(value)] as const]
  )
  const width = Math.max(0, ...present.map(([label]) => label.length))
  return present.map(([label, value]) => `${label.padEnd(width)}  ${value}`).join("\n")
}

/** A page of a list as the API and `--json` answer it. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly limit: number
  readonly offset: number
}
