import * as Stream from "effect/Stream"

/* Writes objects as CSV or as JSON, piece by piece (docs/contribute/decisions/admin.md, "Exports"). */

/** The format of an export. */
export type Format = (typeof formats)[number]

/** All formats. */
export const formats = ["csv", "json"] as const

/** A row of an export: the object that a list shows. */
type Row = { readonly [member: string]: unknown }

const isNamed = (value: unknown): value is { readonly value: unknown } =>
  typeof value === "object" && value !== null && "value" in value

const itemText = (item: unknown): string => String(isNamed(item) ? item.value : item)

const plainText = (value: unknown): string => {
  if (value === undefined) return ""
  if (Array.isArray(value)) return value.map(itemText).join(" ")
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

// Blanks, quotes and invisible characters may precede a formula, and the first character of the formula may be
// full-width.
const formula = /(^|[;\t\r\n])(?=[\s"\p{Cc}\p{Cf}]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])|^(?=[\t\r])/gu
const needsQuotes = /[",;\t\r\n]/

/**
 * Returns a value as a CSV cell. A spreadsheet evaluates a cell that begins like a formula; an apostrophe before the
 * cell makes it text. Where the comma is the decimal mark, spreadsheets use semicolons or tabs as separators. They may
 * then split one cell into several cells, even if it is quoted. So each part that could become a cell is checked.
 */
const cell = (value: unknown): string => {
  const text = plainText(value).replaceAll(formula, "$1'")
  return needsQuotes.test(text) ? `"${text.replaceAll("\"", "\"\"")}"` : text
}

const csvLine = (cells: ReadonlyArray<unknown>): string => `${cells.map(cell).join(",")}\r\n`

const csv = <E, R>(columns: ReadonlyArray<string>, pages: Stream.Stream<ReadonlyArray<Row>, E, R>) =>
  Stream.concat(
    Stream.succeed(csvLine(columns)),
    Stream.map(pages, (page) => page.map((row) => csvLine(columns.map((name) => row[name]))).join(""))
  )

const json = <E, R>(pages: Stream.Stream<ReadonlyArray<Row>, E, R>) => {
  const items = pages.pipe(
    Stream.filter((page) => page.length > 0),
    Stream.zipWithIndex,
    Stream.map(([page, index]) => (index === 0 ? "" : ",") + page.map((row) => JSON.stringify(row)).join(","))
  )
  return Stream.succeed(`{"items":[`).pipe(Stream.concat(items), Stream.concat(Stream.succeed("]}\n")))
}

/**
 * Streams the text of an export, one page of rows at a time. `columns` are the names in the header of a CSV file. Each
 * is the name of a member.
 */
export const exportText = <E, R>(
  format: Format,
  columns: ReadonlyArray<string>,
  pages: Stream.Stream<ReadonlyArray<Row>, E, R>
): Stream.Stream<string, E, R> =>
  Stream.filter(format === "csv" ? csv(columns, pages) : json(pages), (text) => text !== "")
