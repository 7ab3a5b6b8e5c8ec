import { bucketLabel, countTicks, startLabel } from "./Ticks.ts"

/*
 * Draws how many certificates end in each week, in SVG that needs neither a script nor a style attribute. The stylesheet
 * sets colours and patterns by class.
 */

/** A week that the chart draws. */
export interface Week {
  /** The first second of the week, in epoch seconds. */
  readonly start: number
  readonly count: number
  /** Whether there are more certificates than are counted. The bar is then paler. */
  readonly isCut: boolean
}

const sizes = {
  wide: { width: 876, height: 170, intervals: 3, labelEvery: 1 },
  narrow: { width: 300, height: 160, intervals: 3, labelEvery: 3 }
} as const

const left = 46
const top = 22
const bottom = 22
/** The smallest height that is drawn for a count above zero, so that one certificate beside thousands can be seen. */
const leastHeight = 2
const weekSeconds = 604_800

const spaced = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f")
const shown = (value: number): string => String(Math.round(value * 10) / 10)

const countOf = ({ count, isCut }: Week): string => `${spaced(count)}${isCut ? " or more" : ""}`

/** Returns the days of a week: `30 Nov–6 Dec`. */
const daysOf = ({ start }: Week): string => `${startLabel(start)}–${bucketLabel(start + weekSeconds - 86_400, 86_400)}`

const drawn = (weeks: ReadonlyArray<Week>, name: keyof typeof sizes): string => {
  const { height, intervals, labelEvery, width } = sizes[name]
  const ticks = countTicks(Math.max(0, ...weeks.map(({ count }) => count)), intervals)
  const most = ticks.at(-1) ?? 1
  const base = height - bottom
  const plot = base - top
  const band = (width - left) / Math.max(1, weeks.length)
  const barWidth = band * 0.72
  const rules = ticks.map((tick) => {
    const y = shown(base - tick / most * plot)
    return `<path class="${tick === 0 ? "base" : "rule"}" d="M${left} ${y}H${width}"/>` +
      `<text x="${left - 6}" y="${y}" dy="0.35em" text-anchor="end">${spaced(tick)}</text>`
  })
  const pathOf = (isCut: boolean) =>
    weeks.flatMap((week, index) => {
      if (week.isCut !== isCut || week.count === 0) return []
      const own = Math.max(leastHeight, week.count / most * plot)
      const x = left + index * band + (band - barWidth) / 2
      return [`M${shown(x)} ${base}v-${shown(own)}h${shown(barWidth)}v${shown(own)}z`]
    }).join("")
  const [whole, cut] = [pathOf(false), pathOf(true)]
  const labels = weeks.flatMap((week, index) =>
    index % labelEvery === 0
      ? [
        `<text x="${shown(left + (index + 0.5) * band)}" y="${height - 6}" text-anchor="middle">${
          startLabel(week.start)
        }</text>`
      ]
      : []
  )
  // As in the trend, a pointer finds each week over the whole height. Touch screens show no titles.
  const targets = name === "narrow" ?
    "" :
    `<g class="hits">${
      weeks.map((week, index) =>
        `<path d="M${shown(left + index * band)} ${top}h${shown(band)}v${plot}h-${shown(band)}z"><title>${
          daysOf(week)
        }: ${countOf(week)}</title></path>`
      ).join("")
    }</g>`
  return `<svg class="chart ${name}" viewBox="0 0 ${width} ${height}" role="img" ` +
    `aria-label="Bars of how many certificates end in each week. The numbers are in the table beneath.">` +
    `<text x="0" y="10">per week, UTC</text>${rules.join("")}` +
    `${whole === "" ? "" : `<path class="issued" d="${whole}"/>`}` +
    `${cut === "" ? "" : `<path class="issued left-area" d="${cut}"/>`}${labels.join("")}${targets}</svg>`
}

/** Returns the chart in two sizes, and its numbers as rows of a table. The stylesheet shows one of the two sizes. */
export const endingsChart = (weeks: ReadonlyArray<Week>) => ({
  svg: `${drawn(weeks, "wide")}${drawn(weeks, "narrow")}`,
  rows: weeks.map((week) => ({ when: daysOf(week), count: week.count, isCut: week.isCut })),
  total: weeks.reduce((sum, { count }) => sum + count, 0),
  isCut: weeks.some(({ isCut }) => isCut)
})
