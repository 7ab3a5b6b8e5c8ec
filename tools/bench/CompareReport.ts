import type { Compared, SideTurns } from "./Compare.ts"
import { nameOf } from "./Compare.ts"
import { median } from "./Median.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import type { Turn } from "./Turn.ts"

/* Prints the figures of the service, of the other servers and of the floor in one table. */

type Figure = (turn: Turn) => number | undefined

const medianOf = (values: ReadonlyArray<number | undefined>): number | undefined => {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : median(known)
}

const finished = ({ turns }: SideTurns): ReadonlyArray<Turn> => turns.filter((turn) => turn !== undefined)

const floorOf: Figure = ({ floor }) => floor === undefined ? undefined : floor.total / 1000
const databaseFloorOf: Figure = ({ databaseCpu, floor }) =>
  floor === undefined || databaseCpu === undefined ? undefined : floor.databaseServer / 1000
const wholeCpu: Figure = ({ cpu, databaseCpu = 0 }) => cpu + databaseCpu
const toFloor: Figure = (turn) => {
  const floor = floorOf(turn)
  return floor === undefined ? undefined : turn.cpu / floor
}

/** Returns the median of the ratios of a side to the floor. Each ratio is that of one turn. */
export const floorRatioOf = ({ sides }: Compared, name: string): number | undefined =>
  medianOf(sides.flatMap((side) => side.name === name ? finished(side).map(toFloor) : []))

/** Returns the median of a side's ratios to the first side. Each ratio compares two turns of the same round. */
export const ratioToFirst = ({ sides: [first] }: Compared, { turns }: SideTurns, figure: Figure): number | undefined =>
  medianOf(turns.map((turn, round) => {
    const other = first?.turns[round]
    const [own, others] = [turn && figure(turn), other && figure(other)]
    return own === undefined || others === undefined ? undefined : own / others
  }))

interface Column {
  readonly title: string
  readonly cell: (side: SideTurns, compared: Compared) => string
}

const medians = (title: string, digits: number, figure: Figure): Column => ({
  title,
  cell: (side) => fixed(medianOf(finished(side).map(figure)), digits)
})

const ratios = (figure: Figure): Column => ({
  title: "to the first",
  cell: (side, compared) => fixed(ratioToFirst(compared, side, figure), 2)
})

const columns: ReadonlyArray<Column> = [
  medians("CPU ms", 2, ({ cpu }) => cpu),
  medians("+ database", 2, ({ databaseCpu }) => databaseCpu),
  ratios(wholeCpu),
  medians("a second", 1, ({ perSecond }) => perSecond),
  ratios(({ perSecond }) => perSecond),
  medians("ms p50", 0, ({ durations }) => durations?.p50),
  medians("p99", 0, ({ durations }) => durations?.p99),
  medians("requests", 1, ({ requests }) => requests),
  medians("floor ms", 2, floorOf),
  medians("+ database", 2, databaseFloorOf),
  medians("to it", 2, toFloor),
  {
    title: "refused",
    cell: (side) => {
      const sum = (figure: (turn: Turn) => number) => finished(side).reduce((total, turn) => total + figure(turn), 0)
      const refused = sum((turn) => turn.refused)
      return refused === 0 ? "0" : `${refused} of ${refused + sum((turn) => turn.issuances)}`
    }
  },
  { title: "turns", cell: (side) => `${finished(side).length} of ${side.turns.length}` },
  {
    title: "others",
    cell: (side) => {
      const share = medianOf(finished(side).map(({ otherShare }) => otherShare))
      return share === undefined ? "-" : `${Math.round(share * 100)} %`
    }
  }
]

const shownNames: { readonly [name: string]: string } = { sqlite: "SQLite", postgres: "PostgreSQL" }

/** Prints the comparison, with one line for each side under each burden. */
export const comparisonReport = (paint: Paint, compared: ReadonlyArray<Compared>): string =>
  [
    "CPU ms of issuances and of single requests, medians of the turns. Ratios are to the first line of each load.",
    table(
      paint,
      ["", ...columns.map(({ title }) => title)],
      compared.flatMap((one) => [
        [paint.strong(nameOf(one.burden))],
        ...one.sides.map((side) => [
          `  ${shownNames[side.name] ?? side.name}`,
          ...columns.map(({ cell }) => cell(side, one))
        ])
      ])
    )
  ].join("\n\n")
