const form = /^[+-]?\d+$/
const most = Number.MAX_SAFE_INTEGER

/** A whole number, or the nearest that is not too large to be counted exactly, so that its bound judges it. */
export const countable = (value: number): number => Math.min(Math.max(value, -most), most)

/** A {@link countable} number as it is typed, blanks around it left out. Undefined if the text is no whole number. */
export const readWhole = (text: string): number | undefined => {
  const digits = text.trim()
  return form.test(digits) ? countable(Number(digits)) : undefined
}
