/** The two storage engines. */
export type Dialect = "sqlite" | "postgres"

/**
 * How a value is written to a column, and read from it, on each engine. The types of values differ between the engines
 * only here (docs/contribute/decisions/data-model.md, "Kinds of columns"). `decode` throws its own error for a value
 * that this service never writes. A restored, copied or hand-edited database may contain such values
 * (docs/contribute/decisions/unreadable-rows.md).
 */
export interface Column<A> {
  readonly encode: (value: A, dialect: Dialect) => unknown
  readonly decode: (raw: unknown, dialect: Dialect) => A
  /**
   * Returns what a list shows instead of a value that cannot be decoded. Returns undefined if the row cannot be shown.
   */
  readonly standIn?: (raw: unknown) => A | undefined
  /** Whether the value helps to identify its row. */
  readonly isName?: true
}

/** The value of a column cannot be decoded. The message names the type, and never contains the value. */
class ColumnUnreadable extends TypeError {}

export type Columns = { readonly [name: string]: Column<any> } // oxlint-disable-line typescript/no-explicit-any
export type ValuesOf<C extends Columns> = { readonly [K in keyof C]: C[K] extends Column<infer A> ? A : never }

const undecodable = (expected: string, raw: unknown): never => {
  throw new ColumnUnreadable(`holds ${raw === null ? "NULL" : typeof raw} where ${expected} belongs`)
}

/**
 * A text column. A text with U+0000 is refused before the statement runs, because one engine would store it, and on the
 * other the statement would fail.
 */
const plainText = {
  encode: (value: string): string => {
    if (value.includes("\u0000")) throw new TypeError("text with U+0000 cannot be stored")
    return value
  },
  decode: (raw: unknown): any => typeof raw === "string" ? raw : undecodable("text", raw) // oxlint-disable-line typescript/no-explicit-any
}

/**
 * A text whose type is narrower (a brand or a closed set). The type is trusted, because either a CHECK of the schema
 * guards the values, or this code has written them.
 */
export const text = <A extends string = string>(): Column<A> => plainText

/** A text that helps to identify its row, such as a name. It is neither secret nor a long text from a stranger. */
export const name = <A extends string = string>(): Column<A> => plainName

const plainName = { ...plainText, isName: true as const }

const beyond = (value: number): number | undefined =>
  Number.isNaN(value) ? undefined : Math.sign(value) * Number.MAX_SAFE_INTEGER

/**
 * A 64-bit integer in the safe range. A value outside the range is refused, not rounded. A list shows the nearest end
 * of the range instead.
 */
export const int: Column<number> = {
  standIn: (raw) => beyond(Number(raw)),
  encode: (value) => Number.isSafeInteger(value) ? value : undecodable("a safe integer", value),
  decode: (raw) => {
    const value = typeof raw === "string" ? Number(raw) : raw
    return typeof value === "number" && Number.isSafeInteger(value) ? value : undecodable("a safe integer", raw)
  }
}

/** Returns an SQL condition: the column has an integer that {@link int} cannot read. */
export const beyondSafe = (column: string): string =>
  `(${column} > ${Number.MAX_SAFE_INTEGER} OR ${column} < ${Number.MIN_SAFE_INTEGER})`

/** BOOLEAN on PostgreSQL, 0 or 1 on SQLite. */
export const bool: Column<boolean> = {
  encode: (value, dialect) => dialect === "postgres" ? value : value ? 1 : 0,
  decode: (raw) => raw === true || raw === 1 ? true : raw === false || raw === 0 ? false : undecodable("a boolean", raw)
}

/** BYTEA or BLOB. */
export const bytes: Column<Uint8Array> = {
  encode: (value) => Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength),
  decode: (raw) => raw instanceof Uint8Array ? raw : undecodable("bytes", raw)
}

const hyphenate = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`

/** If a text is not a UUID, its octets match no row, so nothing is found. */
const octetsOf = (id: string): Buffer => Buffer.from(id.replaceAll("-", ""), "hex")

const plainUuid: Column<string> = {
  isName: true,
  encode: (value, dialect) => dialect === "postgres" ? value : octetsOf(value),
  decode: (raw) =>
    typeof raw === "string" ? raw : Buffer.isBuffer(raw) ? hyphenate(raw.toString("hex")) : undecodable("a uuid", raw)
}

/** UUID or BLOB(16). In memory, the value is a text with hyphens, in lower case. */
export const uuid = <A extends string = string>(): Column<A> => plainUuid as unknown as Column<A>

/** The 16 octets of a UUID on both engines. In memory, the value is a text with hyphens, in lower case. */
export const uuidBytes: Column<string> = {
  isName: true,
  encode: octetsOf,
  decode: (raw) => Buffer.isBuffer(raw) ? hyphenate(raw.toString("hex")) : undecodable("a uuid", raw)
}

const parsed = (raw: unknown): unknown => {
  try {
    return typeof raw === "string" ? JSON.parse(raw) : undefined
  } catch {
    return undefined
  }
}

/** How a valid value of a JSON column is recognised, and what a list shows instead of an invalid value. */
export interface JsonForm<A extends object> {
  readonly fits: (value: object) => boolean
  readonly standIn: A
}

/**
 * A column with the JSON text of a value. The text is canonical: the members are in the order in which they were built,
 * and there is no white space.
 */
export const json = <A extends object>({ fits, standIn }: JsonForm<A>): Column<A> => ({
  encode: (value) => JSON.stringify(value),
  decode: (raw) => {
    const value = parsed(raw)
    return typeof value === "object" && value !== null && fits(value)
      ? value as A
      : undecodable("JSON of its form", raw)
  },
  standIn: () => standIn
})

/** A list of texts. */
export const texts: Column<ReadonlyArray<string>> = json<ReadonlyArray<string>>({
  fits: (value) => Array.isArray(value) && value.every((one) => typeof one === "string"),
  standIn: []
})

/** An object with any members. */
export const members = <A extends { readonly [name: string]: unknown }>(): Column<A> =>
  json<A>({ fits: (value) => !Array.isArray(value), standIn: {} as A }) // every member of these objects is optional

/** Makes a column nullable. `undefined` stands for NULL. */
export const nullable = <A>(column: Column<A>): Column<A | undefined> => ({
  ...column,
  encode: (value, dialect) => value === undefined ? null : column.encode(value, dialect),
  decode: (raw, dialect) => raw === null ? undefined : column.decode(raw, dialect)
})

/**
 * Several rows in one parameter: a JSON array of arrays. The SQL reads the rows with `each` and `at` of its dialect. A
 * UUID in a row is 32 hexadecimal digits.
 */
export const rows: Column<ReadonlyArray<ReadonlyArray<string | number>>> = {
  encode: (value) => {
    // JSON would escape the character that a text column refuses.
    for (const row of value) for (const one of row) if (typeof one === "string") plainText.encode(one)
    return JSON.stringify(value)
  },
  decode: (raw) => undecodable("nothing: row sets are parameters only", raw)
}

/** Returns a UUID in the form for {@link rows}. */
export const packedUuid = (id: string): string => id.replaceAll("-", "")
