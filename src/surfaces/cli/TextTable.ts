import { escaped } from "./Escaped.ts"
import type { Style, View } from "./Paint.ts"
import { Rendered } from "./Rendered.ts"
import { columnsOf, isTime, padded, shortened, stateStyle, timeShown } from "./Text.ts"

/** A cell that needs attention, although other cells in its column may not. */
export interface Marked {
  readonly text: string
  readonly style: Style
}

/** The content of one cell of a table. */
export type Cell = string | Marked

const textOf = (cell: Cell): string => typeof cell === "string" ? cell : cell.text

/** A column, and the properties that all of its cells share. */
interface Column {
  readonly cells: ReadonlyArray<string>
  readonly styles: ReadonlyArray<Style | undefined>
  readonly canShrink: boolean
}

const between = "  "
const narrowestText = 10
const isId = (cell: string): boolean => /^[0-9a-f][0-9a-f-]{31,}$/.test(cell)

/**
 * Makes a column. If all of its cells are times, they are shown as relative times. If all are states, they are
 * coloured. Values that can be given to other commands are never shortened.
 */
const columnOf = (view: View, name: string, given: ReadonlyArray<Cell>, isFirst: boolean): Column => {
  const cells = given.map(textOf)
  const filled = cells.filter((cell) => cell !== "")
  const every = (is: (cell: string) => boolean) => filled.length > 0 && filled.every(is)
  const isOfTimes = every(isTime)
  const isOfStates = every((cell) => stateStyle(cell) !== undefined)
  const shown = isOfTimes ? cells.map((cell) => timeShown(view, cell)) : cells.map(escaped)
  return {
    cells: [name.toUpperCase(), ...shown],
    styles: [
      "bold",
      ...given.map((cell) => typeof cell !== "string" ? cell.style : isOfStates ? stateStyle(cell) : undefined)
    ],
    canShrink: !isFirst && !isOfTimes && !isOfStates && !every(isId)
  }
}

/** Returns widths that fit the terminal. The widest column shrinks first, but it always stays readable. */
const fitted = (columns: ReadonlyArray<Column>, { columns: room = Infinity }: View): ReadonlyArray<number> => {
  const natural = columns.map(({ cells }) => Math.max(...cells.map(columnsOf)))
  const widths = natural.map((width, index) => columns[index]?.canShrink === true ? Math.min(width, room) : width)
  const least = columns.map(({ canShrink, cells: [name = ""] }) =>
    canShrink ? Math.max(narrowestText, name.length) : Infinity
  )
  let over = widths.reduce((sum, width) => sum + width + between.length, -between.length) - room
  for (; over > 0; over--) {
    const spare = widths.map((width, index) => width > (least[index] ?? 0) ? width : 0)
    const widest = Math.max(...spare)
    if (widest === 0) break
    widths[spare.indexOf(widest)] = widest - 1
  }
  return widths
}

/**
 * Renders a list as a table: padded columns, then a footer that says how many of all rows are shown. For an empty list
 * only the footer is rendered. On a terminal the table fits the width, times show how long ago they were, and states
 * are coloured. A program reads every value unchanged.
 */
export const renderTable = (
  names: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>,
  total: number
): Rendered =>
  new Rendered((view) => {
    const footer = `${rows.length} of ${total} row(s).`
    if (rows.length === 0) return footer
    const columns = names.map((name, index) => columnOf(view, name, rows.map((row) => row[index] ?? ""), index === 0))
    const widths = fitted(columns, view)
    const line = (row: number) =>
      columns.map(({ cells, styles }, index) => {
        const [width = 0, style] = [widths[index], styles[row]]
        const cell = padded(shortened(cells[row] ?? "", width), width)
        return style === undefined ? cell : cell.replace(/^.*\S/u, (text) => view.paint(style, text))
      }).join(between).trimEnd()
    return [...Array.from({ length: rows.length + 1 }, (_, row) => line(row)), view.paint("dim", footer)].join("\n")
  })
