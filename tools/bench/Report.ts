import type { Kind } from "./Client.ts"
import { kinds } from "./Client.ts"
import type { Dearest } from "./Dearest.ts"
import type { Floor } from "./FloorRig.ts"
import type { Cell, Measured } from "./Measure.ts"
import type { Options } from "./Options.ts"
import { writingTransactions } from "./Statements.ts"

/* Prints the figures as tables for people. Only a terminal gets colours. */

/** The colours for important figures on a terminal. */
export interface Paint {
  readonly strong: (text: string) => string
  readonly faint: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
}

const escape = "\u001B["
const sgr = (code: number) => (text: string): string => `${escape}${code}m${text}${escape}0m`
const plain = (text: string): string => text
/** Returns how many columns of a terminal a text takes. An escape sequence takes none. */
const widthOf = (text: string): number =>
  text.split(escape).reduce((width, part, index) => width + part.length - (index === 0 ? 0 : part.indexOf("m") + 1), 0)

/** Returns colours for a terminal, and no colours for anything else. */
export const paintFor = (isTerminal: boolean): Paint =>
  isTerminal
    ? { strong: sgr(1), faint: sgr(2), good: sgr(32), bad: sgr(33) }
    : { strong: plain, faint: plain, good: plain, bad: plain }

type Row = ReadonlyArray<string>

/** Formats a table. The first column is aligned to the left, and the other columns, with figures, to the right. */
export const table = (paint: Paint, head: Row, rows: ReadonlyArray<Row>): string => {
  const widths = head.map((title, column) => Math.max(widthOf(title), ...rows.map((row) => widthOf(row[column] ?? ""))))
  const line = (row: Row) =>
    row.map((text, column) => {
      const padding = " ".repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text)))
      return column === 0 ? text + padding : padding + text
    }).join("  ").trimEnd()
  return [paint.faint(line(head)), ...rows.map(line)].map((text) => `  ${text}`).join("\n")
}

/** Writes a figure with `digits` decimals, or a dash if the figure was not measured. */
export const fixed = (value: number | undefined, digits: number): string =>
  value === undefined ? "-" : value.toFixed(digits)
const percent = (share: number): string => `${Math.round(share * 100)} %`

/** Returns the most important figure: the CPU of the service divided by the CPU of the floor. */
const ratioOf = ({ cpu, floor }: Cell): number | undefined =>
  floor === undefined ? undefined : cpu / (floor.total / 1000)

const goal = 2

const shownRatio = (paint: Paint, cell: Cell): string => {
  const ratio = ratioOf(cell)
  if (ratio === undefined) return "-"
  return paint.strong((ratio <= goal ? paint.good : paint.bad)(ratio.toFixed(2)))
}

const titles: { readonly [N in Measured["name"]]: string } = {
  sqlite: "acme-svc on SQLite",
  postgres: "acme-svc on PostgreSQL"
}

const summary = (paint: Paint, { cells, name }: Measured): string => {
  const isPostgres = name === "postgres"
  const head = [
    "clients",
    "issuances/s",
    "CPU ms",
    "user",
    "system",
    "floor ms",
    "ratio",
    ...isPostgres ? ["database ms", "its floor"] : [],
    "requests",
    "retries",
    "loop p50",
    "p99",
    "max ms",
    "log bytes",
    "RSS MiB",
    "load generator",
    "others"
  ]
  const rows = cells.map((cell) => {
    const { floor, loopDelay, window } = cell
    return [
      String(cell.concurrency),
      fixed(cell.perSecond, 1),
      paint.strong(fixed(cell.cpu, 2)),
      fixed(cell.cpuUser, 2),
      fixed(cell.cpuSystem, 2),
      fixed(floor === undefined ? undefined : floor.total / 1000, 2),
      shownRatio(paint, cell),
      ...isPostgres
        ? [fixed(cell.databaseCpu, 2), fixed(floor === undefined ? undefined : floor.databaseServer / 1000, 2)]
        : [],
      fixed(window.requests / window.issuances, 2),
      String(window.retries),
      fixed(loopDelay?.p50, 1),
      fixed(loopDelay?.p99, 1),
      fixed(loopDelay?.max, 1),
      fixed(cell.logBytes, 0),
      fixed(cell.rssMiB, 0),
      percent(cell.clientShare),
      percent(cell.otherShare)
    ]
  })
  return table(paint, head, rows)
}

const latencies = (paint: Paint, { cells }: Measured): string => {
  const head = ["ms: p50 / p95 / p99", ...cells.map(({ concurrency }) => `${concurrency} clients`)]
  const shown = ({ p50, p95, p99 }: Cell["window"]["everyRequest"]) =>
    [p50, p95, p99].map((ms) => ms.toFixed(1)).join(" / ")
  const rows = [
    ...kinds.map((kind: Kind) => [kind, ...cells.map(({ window }) => shown(window.latencies[kind]))]),
    ["every request", ...cells.map(({ window }) => shown(window.everyRequest))]
  ]
  return table(paint, head, rows)
}

const components: ReadonlyArray<readonly [keyof Floor, string]> = [
  ["verify", "7 ES256 signatures verified, key at hand"],
  ["importKey", "1 account key imported from its JWK"],
  ["csr", "1 CSR read, its signature verified"],
  ["leaf", "1 leaf built and signed"],
  ["lint", "1 leaf read again and linted, signature included, chain checked"],
  ["http", "7 requests and answers through bare node:http"],
  ["statements", `statements and commits, ${writingTransactions} writing transactions`],
  ["total", "floor of the service's process"],
  ["databaseServer", "the same statements in the database's processes"]
]

const floors = (paint: Paint, { cells, name }: Measured): string | undefined => {
  const measured = cells.flatMap(({ concurrency, floor }) => floor === undefined ? [] : [{ concurrency, floor }])
  if (measured.length === 0) return undefined
  const head = ["floor: CPU µs per issuance", ...measured.map(({ concurrency }) => `${concurrency} clients`)]
  const rows = components
    .filter(([key]) => key !== "databaseServer" || name === "postgres")
    .map(([key, label]) => [
      key === "total" ? paint.strong(label) : label,
      ...measured.map(({ floor }) => floor[key].toFixed(0))
    ])
  return table(paint, head, rows)
}

const cut = (text: string, length: number): string => text.length <= length ? text : `${text.slice(0, length - 1)}…`

/** Formats the statements that took most of PostgreSQL's time. */
export const dearestReport = (paint: Paint, { list, millis }: Dearest): string =>
  [
    `  ${paint.strong(millis.toFixed(2))} ms of PostgreSQL's execution time per issuance, without the commits. `
    + "The dearest statements, per issuance:",
    table(
      paint,
      ["", "share", "calls", "rows", "mean ms"],
      list.map(({ callsPerIssuance, meanMillis, rowsPerIssuance, share, text }) => [
        cut(text, 108),
        percent(share),
        fixed(callsPerIssuance, 2),
        fixed(rowsPerIssuance, 2),
        fixed(meanMillis, 3)
      ])
    )
  ].join("\n")

const statementsOf = (paint: Paint, { statements }: Measured, isListed: boolean): string | undefined => {
  if (statements === undefined) return undefined
  const line =
    `  ${paint.strong(statements.perIssuance.toFixed(1))} statements per issuance (BEGIN and COMMIT included), `
    + `${paint.strong(statements.writingTransactions.toFixed(1))} transactions that write, `
    + (statements.wal === undefined
      ? ""
      : `${statements.wal.syncs.toFixed(1)} syncs and ${(statements.wal.bytes / 1000).toFixed(1)} kB of WAL, `)
    + `at ${statements.concurrency} clients`
  if (!isListed) return line
  const rows = statements.list
    .filter(({ perIssuance }) => perIssuance >= 0.01)
    .map(({ perIssuance, text }) => [`${perIssuance.toFixed(2).padStart(6)}  ${cut(text, 108)}`])
  return [
    `${line}\n${rows.map(([text]) => `  ${text}`).join("\n")}`,
    ...statements.dearest === undefined ? [] : [dearestReport(paint, statements.dearest)]
  ].join("\n\n")
}

/** Warns about figures that the machine or the load generator may have distorted. */
const warnings = (measured: ReadonlyArray<Measured>): ReadonlyArray<string> =>
  measured.flatMap(({ cells, name }) =>
    cells.flatMap((cell) => {
      const at = `${name}, ${cell.concurrency} clients`
      return [
        ...cell.otherShare > 0.1
          ? [`${at}: other processes used ${percent(cell.otherShare)} of the machine; trust the ratio, not the figures`]
          : [],
        ...cell.clientShare > 0.8
          ? [`${at}: the load generator used ${percent(cell.clientShare)} of a core and may have been the limit`]
          : [],
        ...cell.window.madeInWindow > 0
          ? [`${at}: ${cell.window.madeInWindow} keys had to be made within the window`]
          : []
      ]
    })
  )

/** Prints the whole report of a run. */
export const report = (paint: Paint, measured: ReadonlyArray<Measured>, options: Options): string => {
  const sections = measured.map((one) =>
    [
      paint.strong(titles[one.name]),
      summary(paint, one),
      latencies(paint, one),
      floors(paint, one),
      statementsOf(paint, one, options.listStatements)
    ].filter((part) => part !== undefined).join("\n\n")
  )
  const notes = [
    ...options.profileDirectory === undefined ? [] : ["the CPU figures include the profiler"],
    ...warnings(measured)
  ].map((note) => `  ${paint.bad("note:")} ${note}`)
  return [...sections, notes.length === 0 ? undefined : notes.join("\n")]
    .filter((part) => part !== undefined).join("\n\n")
}
