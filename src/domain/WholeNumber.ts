const form = /^[+-]?\d+$/
const most = Number.MAX_SAFE_INTEGER

/** Moves a whole number beyond the safe integers to the nearest safe one, which the caller's bound then judges. */
export const countable = (value: number): number => Math.min(Math.max(value, -most), most)

/**
 * Reads a whole number from typed text; blanks around it are ignored. A number beyond the safe integers is read as the
 * nearest safe one. Undefined if the text is no whole number.
 */
export const readWhole = (text: string): number | undefined => {
  const digits = text.trim()
  return form.test(digits) ? countable(Number(digits)) : undefined
}
