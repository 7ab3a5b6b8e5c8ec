const form = /^[+-]?\d+$/
const most = Number.MAX_SAFE_INTEGER

/**
 * A whole number as it is typed, blanks around it left out. One that is too large to be counted exactly is the nearest that is not,
 * so that its bound judges it. Undefined if the text is no whole number.
 */
export const readWhole = (text: string): number | undefined => {
  const digits = text.trim()
  return form.test(digits) ? Math.min(Math.max(Number(digits), -most), most) : undefined
}
