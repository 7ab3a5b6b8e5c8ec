import { countTicks, startLabel } from "./Ticks.ts"

/*
 * Draws how many certificates of a campaign are left over time, in SVG that needs neither a script nor a style
 * attribute. The stylesheet sets colours by class.
 */

/** A moment, in epoch seconds, and how many certificates were left then. */
export interface Point {
  readonly at: number
  readonly remaining: number
}

const sizes = {
  wide: { width: 876, height: 216, intervals: 4, labels: 6 },
  narrow: { width: 300, height: 180, intervals: 3, labels: 2 }
} as const

const left = 56
const top = 22
const bottom = 22
/** The highest number of points that are drawn. */
const mostDrawn = 400

const spaced = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f")
const shown = (value: number): string => String(Math.round(value * 10) / 10)

/** Returns at most {@link mostDrawn} of the points, the first and the last among them. */
const thinned = (points: ReadonlyArray<Point>): ReadonlyArray<Point> => {
  const step = Math.max(1, Math.ceil(points.length / (mostDrawn - 1)))
  return points.filter((_, index) => index % step === 0 || index === points.length - 1)
}

const drawn = (points: ReadonlyArray<Point>, matched: number, name: keyof typeof sizes): string => {
  const { height, intervals, labels, width } = sizes[name]
  const from = points[0]?.at ?? 0
  const until = Math.max(from + 1, points.at(-1)?.at ?? 0)
  const ticks = countTicks(Math.max(1, matched), intervals)
  const most = ticks.at(-1) ?? 1
  const base = height - bottom
  const xOf = (at: number) => shown(left + (at - from) / (until - from) * (width - left))
  const yOf = (count: number) => shown(base - Math.min(count, most) / most * (base - top))
  const rules = ticks.map((tick) =>
    `<path class="${tick === 0 ? "base" : "rule"}" d="M${left} ${yOf(tick)}H${width}"/>` +
    `<text x="${left - 6}" y="${yOf(tick)}" dy="0.35em" text-anchor="end">${spaced(tick)}</text>`
  )
  const line = points.map(({ at, remaining }, index) => `${index === 0 ? "M" : "L"}${xOf(at)} ${yOf(remaining)}`)
  const area = points.length < 2
    ? ""
    : `<path class="issued left-area" d="${line.join("")}L${xOf(until)} ${base}L${left} ${base}z"/>`
  const times = Array.from({ length: labels }, (_, index) => {
    const at = from + Math.round((until - from) * index / Math.max(1, labels - 1) / 60) * 60
    const anchor = index === 0 ? "start" : index === labels - 1 ? "end" : "middle"
    const x = index === 0 ? left : index === labels - 1 ? width : xOf(at)
    return `<text x="${x}" y="${height - 6}" text-anchor="${anchor}">${startLabel(at - at % 60)}</text>`
  })
  return `<svg class="chart ${name}" viewBox="0 0 ${width} ${height}" role="img" ` +
    `aria-label="How many certificates were left over time. The numbers are in the table beneath.">` +
    `<text x="0" y="10">certificates left, UTC</text>${rules.join("")}${area}` +
    `<path class="left-line" d="${line.join("")}"/>${times.join("")}</svg>`
}

/** Returns the chart in two sizes, and its points. The stylesheet shows one of the two sizes. */
export const burnDownChart = (points: ReadonlyArray<Point>, matched: number) => {
  const some = thinned(points)
  return { svg: `${drawn(some, matched, "wide")}${drawn(some, matched, "narrow")}`, rows: some.toReversed() }
}
