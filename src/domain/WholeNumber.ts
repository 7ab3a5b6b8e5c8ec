const form = /^[+-]?\d+$/
const most = Number.MAX_SAFE_INTEGER

/** Replaces a whole number beyond the safe integers by the nearest safe integer. The caller then checks its bound. */
export const countable = (value: number): number => Math.min(Math.max(value, -most), most)

/**
 * Reads a whole number from typed text; blanks around it are ignored. A number beyond the safe integers is read as the
 * nearest safe one. Returns undefined if the text is not a whole number.
 */
export const readWhole = (text: string): number | undefined => {
  const digits = text.trim()
  return form.test(digits) ? countable(Number(digits)) : undefined
}
