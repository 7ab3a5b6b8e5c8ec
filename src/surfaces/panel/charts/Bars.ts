import { bucketLabel, countTicks, labelEvery, startLabel } from "./Ticks.ts"

/*
 * Draws trends as stacked bars, in SVG that needs neither a script nor a style attribute. The stylesheet sets colours
 * and patterns by class.
 */

/** A bucket in the form that the chart draws. */
export interface Bar {
  /** The first second of the bucket, in epoch seconds. */
  readonly start: number
  readonly issued: number
  readonly refused: number
  readonly revoked: number
  /**
   * Whether the rows of the bucket are still in the audit trail. If not, the bucket is marked, because its counts are
   * unknown, not zero.
   */
  readonly isKept: boolean
}

interface Size {
  readonly width: number
  readonly height: number
  readonly intervals: number
}

const sizes = {
  wide: { width: 876, height: 216, intervals: 4 },
  narrow: { width: 300, height: 180, intervals: 3 }
} as const satisfies { readonly [name: string]: Size }

const left = 46
const top = 22
const bottom = 22
const labelWidth = 46
/**
 * The smallest height that is drawn for a count above zero. Without it, one refusal beside a thousand certificates
 * would be invisible.
 */
const leastHeight = 2

const kinds = ["issued", "refused", "revoked"] as const
const spaced = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f")
const at = (value: number): string => String(Math.round(value * 10) / 10)

/**
 * The patterns for both sizes of the chart. The page contains them once and outside the charts, because a hidden chart
 * draws no patterns.
 */
export const barPatterns = `<svg class="off" width="0" height="0" aria-hidden="true" focusable="false"><defs>` +
  `<pattern id="bar-refused" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
  `<rect class="refused" width="5" height="5"/><path class="hatch" d="M0 0V5"/></pattern>` +
  `<pattern id="bar-revoked" width="4" height="4" patternUnits="userSpaceOnUse">` +
  `<rect class="revoked" width="4" height="4"/><path class="hatch" d="M0 0H4"/></pattern>` +
  `<pattern id="bar-lost" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
  `<path class="lost-line" d="M0 0V8"/></pattern></defs></svg>`

const fills = {
  issued: `class="issued"`,
  refused: `fill="url(#bar-refused)"`,
  revoked: `fill="url(#bar-revoked)"`
} as const

/** Returns a swatch of the legend. */
export const swatch = (kind: (typeof kinds)[number]): string =>
  `<svg viewBox="0 0 12 12" aria-hidden="true" focusable="false"><rect width="12" height="12" rx="2" ${
    fills[kind]
  }/></svg>`

const sumOf = (bar: Bar): number => bar.issued + bar.refused + bar.revoked

const unitOf = (bucketSeconds: number): string =>
  bucketSeconds >= 86_400 ? "per day" : bucketSeconds === 3600 ? "per hour" : `per ${bucketSeconds / 3600} hours`

const titleOf = (bar: Bar, bucketSeconds: number, isLast: boolean): string => {
  const when = bucketLabel(bar.start, bucketSeconds)
  return bar.isKept
    ? `${when} UTC${isLast ? ", so far" : ""}: ${kinds.map((kind) => `${spaced(bar[kind])} ${kind}`).join(", ")}`
    : `${when} UTC: not kept`
}

const drawn = (bars: ReadonlyArray<Bar>, bucketSeconds: number, name: keyof typeof sizes): string => {
  const { height, intervals, width } = sizes[name]
  const ticks = countTicks(Math.max(0, ...bars.map((bar) => bar.isKept ? sumOf(bar) : 0)), intervals)
  const most = ticks.at(-1) ?? 1
  const [plotWidth, plotHeight] = [width - left, height - top - bottom]
  const base = top + plotHeight
  const band = plotWidth / Math.max(1, bars.length)
  const barWidth = Math.max(2, Math.min(band - 2, band * 0.78))
  const xOf = (index: number) => left + index * band + (band - barWidth) / 2
  const heightOf = (count: number) => count === 0 ? 0 : Math.max(leastHeight, count / most * plotHeight)

  const rules = ticks.map((tick) => {
    const y = at(base - tick / most * plotHeight)
    return `<path class="${tick === 0 ? "base" : "rule"}" d="M${left} ${y}H${width}"/>` +
      `<text x="${left - 6}" y="${y}" dy="0.35em" text-anchor="end">${spaced(tick)}</text>`
  })
  const paths = kinds.map((kind, place) => {
    const d = bars.flatMap((bar, index) => {
      const own = heightOf(bar[kind])
      if (own === 0 || !bar.isKept) return []
      const below = kinds.slice(0, place).reduce((sum, other) => sum + heightOf(bar[other]), 0)
      return [`M${at(xOf(index))} ${at(base - below)}v-${at(own)}h${at(barWidth)}v${at(own)}z`]
    })
    return d.length === 0 ? "" : `<path ${fills[kind]} d="${d.join("")}"/>`
  })
  const lost = bars.filter(({ isKept }) => !isKept).length
  const lostWidth = lost * band
  const gone = lost === 0
    ? ""
    : `<rect class="lost" x="${left}" y="${top}" width="${at(lostWidth)}" height="${plotHeight}"/>` +
      `<rect fill="url(#bar-lost)" x="${left}" y="${top}" width="${at(lostWidth)}" height="${plotHeight}"/>` +
      (lostWidth > 60
        ? `<text class="lost-word" x="${at(left + lostWidth / 2)}" y="${
          top + plotHeight / 2
        }" text-anchor="middle">not kept</text>`
        : "")
  const every = labelEvery(bucketSeconds, band, labelWidth)
  const labels = bars.flatMap(({ start }, index) => {
    const x = left + (index + 0.5) * band
    // A label that the edge of the chart would cut off is left out.
    if (Math.floor(start / bucketSeconds) % every !== 0 || x > width - labelWidth / 3) return []
    return [`<text x="${at(x)}" y="${height - 6}" text-anchor="middle">${startLabel(start)}</text>`]
  })
  // Each bucket has an area over its whole height that shows the bucket's title, so that a pointer also finds low bars.
  // The narrow chart has no such areas, because people use it on touch screens, which show no titles.
  const targets = name === "narrow" ?
    [] :
    bars.map((bar, index) =>
      `<path d="M${at(left + index * band)} ${top}h${at(band)}v${plotHeight}h-${at(band)}z">` +
      `<title>${titleOf(bar, bucketSeconds, index === bars.length - 1)}</title></path>`
    )
  return `<svg class="chart ${name}" viewBox="0 0 ${width} ${height}" role="img" ` +
    `aria-label="Bars of what was issued, refused and revoked. The numbers are in the table beneath.">` +
    `<text x="0" y="10">${unitOf(bucketSeconds)}, UTC</text>` +
    `${gone}${rules.join("")}${paths.join("")}${labels.join("")}<g class="hits">${targets.join("")}</g></svg>`
}

/** Returns the chart in two sizes, and its numbers as rows of a table. The stylesheet shows one of the two sizes. */
export const trendChart = (bars: ReadonlyArray<Bar>, bucketSeconds: number) => ({
  svg: `${drawn(bars, bucketSeconds, "wide")}${drawn(bars, bucketSeconds, "narrow")}`,
  rows: bars.map((bar, index) => ({
    when: `${bucketLabel(bar.start, bucketSeconds)}${index === bars.length - 1 ? ", so far" : ""}`,
    isKept: bar.isKept,
    issued: bar.issued,
    refused: bar.refused,
    revoked: bar.revoked
  })),
  totals: Object.fromEntries(
    kinds.map((kind) => [kind, bars.reduce((sum, bar) => bar.isKept ? sum + bar[kind] : sum, 0)])
  )
})
