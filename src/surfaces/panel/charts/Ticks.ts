/* Labels the axes of charts. */

/**
 * Returns round numbers from 0 to at least `most`, with at most `intervals` between them. Counts are whole numbers, so
 * the steps are whole numbers too.
 */
export const countTicks = (most: number, intervals: number): ReadonlyArray<number> => {
  const least = Math.max(1, most / intervals)
  const power = 10 ** Math.floor(Math.log10(least))
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least) ?? 10 * power
  const many = Math.max(1, Math.ceil(most / step))
  return Array.from({ length: many + 1 }, (_, index) => index * step)
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
const two = (value: number): string => String(value).padStart(2, "0")

/** Returns a day in UTC: `23 Nov`. */
const dayOf = (at: number): string => {
  const date = new Date(at * 1000)
  return `${date.getUTCDate()} ${months[date.getUTCMonth()]}`
}

/** Returns the time of day in UTC: `14:00`. */
const hourOf = (at: number): string => {
  const date = new Date(at * 1000)
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`
}

const daySeconds = 86_400

/** Returns the label of a bucket on the axis: its hour, or its day if a day begins there. */
export const startLabel = (start: number): string => start % daySeconds === 0 ? dayOf(start) : hourOf(start)

/** Returns the times of a bucket in words, in UTC. */
export const bucketLabel = (start: number, seconds: number): string =>
  seconds >= daySeconds ? dayOf(start) : `${dayOf(start)}, ${hourOf(start)}–${hourOf(start + seconds)}`

/** Returns how many buckets lie between two labels, so that labels of this width do not overlap. */
export const labelEvery = (bucketSeconds: number, band: number, width: number): number => {
  const perDay = Math.max(1, daySeconds / bucketSeconds)
  // A step within a day must divide the day, so that each new day has a label.
  const steps = perDay > 6
    ? [1, 2, 3, 6, 12, 24]
    : perDay > 1
    ? [perDay, 2 * perDay, 4 * perDay]
    : [1, 2, 5, 7, 10, 15]
  return steps.find((step) => step * band >= width) ?? (steps.at(-1) ?? 1)
}
