import type { Compared, SideName, Turn } from "./Compare.ts"
import { nameOf } from "./Compare.ts"
import { median } from "./Median.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import type { Dialect } from "./Statements.ts"

/* Prints the figures of the service, Pebble and the floor in one table. */

const medianOf = (values: ReadonlyArray<number | undefined>): number | undefined => {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : median(known)
}

/** The medians of one side. */
interface Medians {
  readonly floor: number | undefined
  readonly cpu: number | undefined
  readonly databaseCpu: number | undefined
  readonly databaseFloor: number | undefined
  readonly toFloor: number | undefined
  readonly toPebble: number | undefined
  readonly requests: number | undefined
}

const floorOf = ({ floor }: Turn): number | undefined => floor === undefined ? undefined : floor.total / 1000

/** Returns the medians of a side's turns. Each ratio compares two neighbouring turns. */
export const mediansOf = ({ turns }: Compared, name: SideName): Medians => {
  const own = turns[name] ?? []
  const pebble = turns.pebble ?? []
  const of = (read: (turn: Turn, round: number) => number | undefined) =>
    medianOf(own.map((turn, round) => turn === undefined ? undefined : read(turn, round)))
  const quotient = (one: number, other: number | undefined) => other === undefined ? undefined : one / other
  return {
    floor: of(floorOf),
    cpu: of(({ cpu }) => cpu),
    databaseCpu: of(({ databaseCpu }) => databaseCpu),
    databaseFloor: of(({ floor }) => floor === undefined ? undefined : floor.databaseServer / 1000),
    toFloor: of((turn) => quotient(turn.cpu, floorOf(turn))),
    toPebble: of(({ cpu }, round) => quotient(cpu, pebble[round]?.cpu)),
    requests: of(({ requests }) => requests)
  }
}

const columnsOf = (name: Dialect): ReadonlyArray<string> =>
  name === "sqlite"
    ? ["SQLite ms", "floor", "to it", "to Pebble"]
    : ["PostgreSQL ms", "+ database", "floor", "+ database", "to it", "to Pebble"]

const cellsOf = (paint: Paint, name: Dialect, compared: Compared): ReadonlyArray<string> => {
  const { cpu, databaseCpu, databaseFloor, floor, toFloor, toPebble } = mediansOf(compared, name)
  const judged = toPebble === undefined ? "-" : (toPebble <= 1 ? paint.good : paint.bad)(toPebble.toFixed(2))
  const isPostgres = name === "postgres"
  return [
    paint.strong(fixed(cpu, 2)),
    ...isPostgres ? [fixed(databaseCpu, 2)] : [],
    fixed(floor, 2),
    ...isPostgres ? [fixed(databaseFloor, 2)] : [],
    fixed(toFloor, 2),
    judged
  ]
}

/** Shows how many turns Pebble finished, unless it finished all of them. */
const pebbleCell = (compared: Compared): string => {
  const turns = compared.turns.pebble ?? []
  const taken = turns.filter((turn) => turn !== undefined)
  const cpu = fixed(mediansOf(compared, "pebble").cpu, 2)
  return taken.length === turns.length ? cpu : `${cpu} (${taken.length} of ${turns.length})`
}

/** Prints the comparison, with one line for each burden. */
export const comparisonReport = (
  paint: Paint,
  databases: ReadonlyArray<Dialect>,
  compared: ReadonlyArray<Compared>
): string => {
  const sides: ReadonlyArray<SideName> = [...databases, "pebble"]
  const rows = compared.map((one) => [
    nameOf(one.burden),
    ...databases.flatMap((name) => cellsOf(paint, name, one)),
    pebbleCell(one),
    sides.map((name) => fixed(mediansOf(one, name).requests, 1)).join(" / "),
    `${Math.round(one.otherShare * 100)} %`
  ])
  const rounds = compared[0]?.turns.pebble?.length ?? 0
  return [
    `CPU ms of issuances and of single requests, medians of ${rounds} turn${
      rounds === 1 ? "" : "s"
    } each; TLS on every side`,
    table(paint, ["", ...databases.flatMap(columnsOf), "Pebble ms", "requests of each", "others"], rows)
  ].join("\n\n")
}
