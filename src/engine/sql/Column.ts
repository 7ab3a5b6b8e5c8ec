/** The two storage engines. */
export type Dialect = "sqlite" | "postgres"

/**
 * How a value is written to and read from a column on either engine. The engines' value types differ only here
 * (docs/decisions/data-model.md, "Kinds of columns"). `decode` throws its own error for a value that this service never
 * writes. A restored, copied or hand-edited database may hold such values (docs/decisions/unreadable-rows.md).
 */
export interface Column<A> {
  readonly encode: (value: A, dialect: Dialect) => unknown
  readonly decode: (raw: unknown, dialect: Dialect) => A
  /**
   * Returns what a list shows instead of a value that does not decode. Returns undefined if the row cannot be shown.
   */
  readonly standIn?: (raw: unknown) => A | undefined
  /** Whether the value helps to identify the row. */
  readonly isName?: true
}

/** A column's value does not decode. The message names the type, never the value. */
class ColumnUnreadable extends TypeError {}

export type Columns = { readonly [name: string]: Column<any> } // oxlint-disable-line typescript/no-explicit-any
export type ValuesOf<C extends Columns> = { readonly [K in keyof C]: C[K] extends Column<infer A> ? A : never }

const undecodable = (expected: string, raw: unknown): never => {
  throw new ColumnUnreadable(`holds ${raw === null ? "NULL" : typeof raw} where ${expected} belongs`)
}

/**
 * A text column. U+0000 is refused before the statement runs, because one engine stores it and the other fails the
 * statement.
 */
const plainText = {
  encode: (value: string): string => {
    if (value.includes("\u0000")) throw new TypeError("text with U+0000 cannot be stored")
    return value
  },
  decode: (raw: unknown): any => typeof raw === "string" ? raw : undecodable("text", raw) // oxlint-disable-line typescript/no-explicit-any
}

/**
 * Text of a narrower type (a brand or a closed set). The type is trusted, because a CHECK of the schema guards it or
 * this code wrote it.
 */
export const text = <A extends string = string>(): Column<A> => plainText

/** Text that helps to identify a row, such as a name. It is neither secret nor a long text from a stranger. */
export const name = <A extends string = string>(): Column<A> => plainName

const plainName = { ...plainText, isName: true as const }

const beyond = (value: number): number | undefined =>
  Number.isNaN(value) ? undefined : Math.sign(value) * Number.MAX_SAFE_INTEGER

/**
 * A 64-bit integer within the safe range. A value beyond that range is refused, not rounded; a list shows the nearest
 * end of the range.
 */
export const int: Column<number> = {
  standIn: (raw) => beyond(Number(raw)),
  encode: (value) => Number.isSafeInteger(value) ? value : undecodable("a safe integer", value),
  decode: (raw) => {
    const value = typeof raw === "string" ? Number(raw) : raw
    return typeof value === "number" && Number.isSafeInteger(value) ? value : undecodable("a safe integer", raw)
  }
}

/** Returns an SQL condition: the column has an integer that {@link int} does not read. */
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

/** Text that is no uuid has other octets, so that a row with such an id is not found. */
const octetsOf = (id: string): Buffer => Buffer.from(id.replaceAll("-", ""), "hex")

const plainUuid: Column<string> = {
  isName: true,
  encode: (value, dialect) => dialect === "postgres" ? value : octetsOf(value),
  decode: (raw) =>
    typeof raw === "string" ? raw : Buffer.isBuffer(raw) ? hyphenate(raw.toString("hex")) : undecodable("a uuid", raw)
}

/** UUID or BLOB(16); hyphenated lower-case text in memory. */
export const uuid = <A extends string = string>(): Column<A> => plainUuid as unknown as Column<A>

/** The 16 octets of a UUID in both engines; hyphenated lower-case text in memory. */
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

/** How valid values of a JSON column are recognised, and what a list shows instead of an invalid value. */
export interface JsonForm<A extends object> {
  readonly fits: (value: object) => boolean
  readonly standIn: A
}

/** A column with the canonical JSON text of a form (members in the order in which they were built, no white space). */
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

/** Makes a column nullable. NULL is `undefined`. */
export const nullable = <A>(column: Column<A>): Column<A | undefined> => ({
  ...column,
  encode: (value, dialect) => value === undefined ? null : column.encode(value, dialect),
  decode: (raw, dialect) => raw === null ? undefined : column.decode(raw, dialect)
})

/**
 * Several rows in one parameter: a JSON array of arrays. The SQL reads it with `each` and `at` of the statement's
 * dialect. Uuids in it are 32 hexadecimal digits.
 */
export const rows: Column<ReadonlyArray<ReadonlyArray<string | number>>> = {
  encode: (value) => plainText.encode(JSON.stringify(value)),
  decode: (raw) => undecodable("nothing: row sets are parameters only", raw)
}

/** Returns a uuid in the form that it has inside {@link rows}. */
export const packedUuid = (id: string): string => id.replaceAll("-", "")
