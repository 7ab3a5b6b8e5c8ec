/* In which hour the renewal window of a certificate begins, if windows are spread by load (docs/clients/renewal.md). */

/** The length of a spread window, in seconds. */
export const hourSeconds = 3600

/** The first and the last second of a certificate, in epoch seconds. */
export interface Life {
  readonly notBefore: number
  readonly notAfter: number
}

/** Returns the usual renewal window: from two thirds to three quarters of the life. It lasts at least one second. */
export const usualWindow = ({ notAfter, notBefore }: Life): { readonly start: number; readonly end: number } => {
  const lifetime = notAfter - notBefore
  const start = notBefore + Math.floor(lifetime * 2 / 3)
  return { start, end: Math.max(start + 1, notBefore + Math.floor(lifetime * 3 / 4)) }
}

/**
 * Returns the hour (hours since 1970) in which the fewest windows begin, among the whole hours of the usual window. If
 * several have the fewest, `place`, from 0 up to but not including 1, chooses. Undefined if the usual window has not
 * two whole hours: there is nothing to choose.
 */
export const emptiestHour = (
  life: Life,
  windowsIn: (hour: number) => number,
  place: number
): number | undefined => {
  const { end, start } = usualWindow(life)
  const [first, last] = [Math.ceil(start / hourSeconds), Math.floor(end / hourSeconds) - 1]
  if (last <= first) return undefined
  let fewest = Number.POSITIVE_INFINITY
  const hours: Array<number> = []
  for (let hour = first; hour <= last; hour++) {
    const windows = windowsIn(hour)
    if (windows > fewest) continue
    if (windows < fewest) hours.length = 0
    fewest = windows
    hours.push(hour)
  }
  return hours[Math.floor(place * hours.length)]
}
