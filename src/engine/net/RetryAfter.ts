/**
 * Reads a Retry-After header (RFC 9110 section 10.2.3). Its value is a number of seconds, or a time. Returns seconds
 * from now, or `undefined` if the header is absent or has another form. `nowMillis` is in epoch milliseconds.
 */
export const retryAfter = (header: string | undefined, nowMillis: number): number | undefined => {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - nowMillis) / 1000))
}
