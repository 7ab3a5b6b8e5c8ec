const form = /^[+-]?\d+$/
const most = Number.MAX_SAFE_INTEGER

/**
 * Replaces a whole number outside the safe integers with the nearest safe integer. The caller then checks the limits of
 * the number.
 */
export const countable = (value: number): number => Math.min(Math.max(value, -most), most)

/**
 * Reads a whole number from a typed text. Blanks around it are ignored. A number outside the safe integers becomes the
 * nearest safe integer. Returns undefined if the text is not a whole number.
 */
export const readWhole = (text: string): number | undefined => {
  const digits = text.trim()
  return form.test(digits) ? countable(Number(digits)) : undefined
}
