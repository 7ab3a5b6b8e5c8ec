import type { Column, Dialect } from "../../engine/sql/Column.ts"
import { bool, bytes, nullable, text, uuid } from "../../engine/sql/Column.ts"

/** A value as a text that is the same for both engines. NULL is `undefined`. */
export type Canonical = string | undefined

const printed = <A>(column: Column<A>, print: (value: A) => string, parse: (text: string) => A): Column<string> => ({
  encode: (value, dialect) => column.encode(parse(value), dialect),
  decode: (raw, dialect) => print(column.decode(raw, dialect))
})

/**
 * The kinds of columns (docs/contribute/decisions/data-model.md, "Kinds of columns"), and how the values of each kind
 * are written as text.
 */
const codecs = {
  uuid: nullable(uuid()),
  text: nullable(text()),
  bytes: nullable(printed(bytes, (value) => Buffer.from(value).toString("hex"), (hex) => Buffer.from(hex, "hex"))),
  // Integers are read and written as decimal text, which both engines accept. So a copy never rounds an integer,
  // however large it is.
  int: nullable(text()),
  bool: nullable(printed(bool, String, (word) => word === "true"))
} satisfies { readonly [kind: string]: Column<Canonical> }

/** The kind of a column of a table. */
export type Kind = keyof typeof codecs

/** A table to copy: its key, and all its columns. */
export interface Table {
  readonly name: string
  /** The columns of the primary key, in the order of the key. */
  readonly key: ReadonlyArray<string>
  readonly columns: ReadonlyArray<readonly [name: string, kind: Kind]>
  /** Whether the engine assigns the numbers of the key. If so, the numbering must continue after the copied rows. */
  readonly isNumbered: boolean
}

const named = <A>({ name }: Table, column: string, convert: () => A): A => {
  try {
    return convert()
  } catch (cause) {
    throw new Error(`${name}.${column}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/**
 * Decodes a row from a driver. The columns of the row are `c0`, `c1`, …; the result has the values in the order of the
 * table's columns.
 */
export const decodeRow = (
  self: Table,
  raw: { readonly [column: string]: unknown },
  dialect: Dialect
): ReadonlyArray<Canonical> =>
  self.columns.map(([column, kind], index) => named(self, column, () => codecs[kind].decode(raw[`c${index}`], dialect)))

/** Returns the values of a row as parameters for a driver. */
export const encodeRow = (self: Table, row: ReadonlyArray<Canonical>, dialect: Dialect): ReadonlyArray<unknown> =>
  self.columns.map(([column, kind], index) => named(self, column, () => codecs[kind].encode(row[index], dialect)))

const placeholders = (count: number, dialect: Dialect, from = 0): string =>
  Array.from({ length: count }, (_, index) => dialect === "postgres" ? `$${from + index + 1}` : "?").join(", ")

/**
 * Returns the SQL that reads a page in the order of the key. The page begins at the start of the table, or after the
 * key that is passed as parameters.
 */
export const pageText = (self: Table, dialect: Dialect, limit: number, isFirst: boolean): string => {
  const columns = self.columns.map(([name, kind], index) =>
    `${kind === "int" ? `CAST(${name} AS TEXT)` : name} AS c${index}`
  )
  const key = self.key.join(", ")
  const after = isFirst ? "" : ` WHERE (${key}) > (${placeholders(self.key.length, dialect)})`
  return `SELECT ${columns.join(", ")} FROM ${self.name}${after} ORDER BY ${key} LIMIT ${limit}`
}

/** Returns the parameters with which {@link pageText} reads the rows after this row. */
export const keyOf = (self: Table, row: ReadonlyArray<Canonical>, dialect: Dialect): ReadonlyArray<unknown> => {
  const encoded = encodeRow(self, row, dialect)
  return self.key.map((name) => encoded[self.columns.findIndex(([column]) => column === name)])
}

/** Returns the SQL that inserts `rows` rows. All values of the rows are parameters. */
export const insertText = (self: Table, dialect: Dialect, rows: number): string => {
  const columns = self.columns.map(([name]) => name)
  const overriding = self.isNumbered && dialect === "postgres" ? " OVERRIDING SYSTEM VALUE" : ""
  const values = Array.from(
    { length: rows },
    (_, index) => `(${placeholders(columns.length, dialect, index * columns.length)})`
  )
  return `INSERT INTO ${self.name} (${columns.join(", ")})${overriding} VALUES ${values.join(", ")}`
}
