import type { View } from "./Paint.ts"
import { span } from "./Text.ts"

/** The progress of long work. */
export interface Progressed {
  readonly title: string
  readonly done: number
  /** The total amount. Undefined if it is not known in advance. */
  readonly total: number | undefined
  readonly elapsedMs: number
}

const counted = (count: number): string => count.toLocaleString("en-US").replaceAll(",", " ")

const shareOf = (done: number, total: number): number => total <= 0 ? 1 : Math.min(1, done / total)

/** Returns `1 200 of 5 000, 24 %, 400/s, 9 s left`, or only the parts of it that are known. */
const numbersOf = ({ done, elapsedMs, total }: Progressed): string => {
  const rate = elapsedMs > 0 ? done * 1000 / elapsedMs : 0
  const left = total === undefined || rate === 0 || done >= total ? undefined : Math.ceil((total - done) / rate)
  return [
    total === undefined ? counted(done) : `${counted(done)} of ${counted(total)}`,
    ...total === undefined ? [] : [`${Math.floor(shareOf(done, total) * 100)} %`],
    ...rate === 0 ? [] : [`${rate < 10 ? rate.toFixed(1) : counted(Math.round(rate))}/s`],
    ...left === undefined ? [] : [`${span(left)} left`]
  ].join(", ")
}

const widestBar = 30

/** Returns a line for a log or a file. */
export const progressLine = (so: Progressed): string => `${so.title}: ${numbersOf(so)}`

/** Returns a line for a terminal, with a bar if there is room. */
export const progressBar = (so: Progressed, { columns = 80, paint }: View): string => {
  const numbers = numbersOf(so)
  const room = Math.min(widestBar, columns - so.title.length - numbers.length - 5) // a full line would wrap
  if (so.total === undefined || room < 5) return `${so.title}  ${numbers}`.slice(0, columns - 1)
  const full = Math.round(shareOf(so.done, so.total) * room)
  return `${so.title}  ${paint("cyan", "█".repeat(full))}${paint("dim", "░".repeat(room - full))}  ${numbers}`
}
