import type { Columns, Dialect, ValuesOf } from "./Column.ts"

/** The fragments of SQL that differ between the two engines. */
export interface Fragments {
  readonly dialect: Dialect
  /**
   * Lets workers skip the rows of other workers on PostgreSQL. On SQLite this is empty, because SQLite has only one
   * writer.
   */
  readonly skipLocked: string
  /** Returns a table of the elements of a `rows` parameter, each in a column `value`. */
  readonly each: (parameter: string) => string
  /**
   * Returns the n-th member of such an element as text, integer, UUID or octets. In the element, octets are hexadecimal
   * digits.
   */
  readonly at: (index: number, type: "text" | "int" | "uuid" | "bytes") => string
  /**
   * Returns the condition that a unique column is equal to one of the elements of a `rows` parameter. Each element must
   * have one member. PostgreSQL would assume a hundred elements, and would read the whole table to join them. So on
   * PostgreSQL the elements become an array.
   */
  readonly oneOf: (parameter: string, type: "text" | "uuid") => string
  /** Returns a UUID column as a text with hyphens. */
  readonly idText: (column: string) => string
  /**
   * Tells SQLite to use this index. The text must follow the name of a table. SQLite has no statistics, so it would
   * often use a different index and read nearly all rows. PostgreSQL has statistics, and chooses by itself.
   */
  readonly indexedBy: (index: string) => string
  /**
   * Marks a column that is only used to filter, because another column selects the index. Otherwise SQLite would use
   * the index of the status, and would read nearly all rows.
   */
  readonly aside: (column: string) => string
  /**
   * Marks a column that is only checked in the row of a unique key, so that no index matches the condition. Otherwise
   * PostgreSQL might use a different index and read nearly all rows: while a table is empty, all indexes cost the same,
   * and a connection keeps the plan that it made at that time.
   */
  readonly checked: (column: string) => string
  /**
   * A condition on the first column of an index, for a list in the order of this index (see {@link Fragments.ledBy}).
   * PostgreSQL assumes that the matching rows are spread evenly, and would search for them in an index by time alone,
   * from the newest row. If no row has matched recently, it would read all rows that do not match.
   */
  readonly leads: (column: string, value: string) => string
  /** The order of a list that begins with the column of {@link Fragments.leads}. */
  readonly ledBy: (column: string, order: string) => string
  /** Gives a parameter a type that PostgreSQL cannot infer. */
  readonly typed: (parameter: string, type: "uuid" | "bigint" | "boolean" | "bytea") => string
}

const atSqlite: Fragments["at"] = (index, type) =>
  type === "uuid" || type === "bytes" ? `unhex(value ->> ${index})` : `value ->> ${index}`

const atPostgres: Fragments["at"] = (index, type) =>
  type === "bytes"
    ? `decode(value ->> ${index}, 'hex')`
    : `(value ->> ${index})${type === "uuid" ? "::uuid" : type === "int" ? "::bigint" : ""}`

const fragments: { readonly [D in Dialect]: Fragments } = {
  sqlite: {
    dialect: "sqlite",
    skipLocked: "",
    each: (parameter) => `json_each(${parameter})`,
    at: atSqlite,
    oneOf: (parameter, type) => `IN (SELECT ${atSqlite(0, type)} FROM json_each(${parameter}))`,
    idText: (column) =>
      [[1, 8], [9, 4], [13, 4], [17, 4], [21, 12]]
        .map(([from, length]) => `substr(lower(hex(${column})), ${from}, ${length})`).join(" || '-' || "),
    indexedBy: (index) => `INDEXED BY ${index}`,
    aside: (column) => `+${column}`,
    checked: (column) => `+${column}`,
    leads: (column, value) => `${column} = ${value}`,
    ledBy: (_, order) => order,
    typed: (parameter) => parameter
  },
  postgres: {
    dialect: "postgres",
    skipLocked: "FOR UPDATE SKIP LOCKED",
    each: (parameter) => `json_array_elements(${parameter}::json)`,
    at: atPostgres,
    oneOf: (parameter, type) =>
      `= ANY (ARRAY(SELECT ${atPostgres(0, type)} FROM json_array_elements(${parameter}::json)))`,
    idText: (column) => `${column}::text`,
    indexedBy: () => "",
    aside: (column) => column,
    checked: (column) => `greatest(${column})`, // the greatest of a single value is that value
    leads: (column, value) => `${column} >= ${value} AND ${column} <= ${value}`,
    ledBy: (column, order) => `${column} DESC, ${order}`,
    typed: (parameter, type) => `${parameter}::${type}`
  }
}

/** A statement in the form for one engine. */
export interface Compiled {
  readonly text: string
  /** The names of the parameters, in the order of their placeholders. */
  readonly order: ReadonlyArray<string>
  /** Whether the statement is a SELECT. A SELECT changes nothing and needs no transaction. */
  readonly reads: boolean
}

/** A named statement: SQL that is written once, typed parameters (`:name`) and typed columns of the result. */
export interface Statement<P extends Columns, R extends Columns> {
  readonly name: string
  readonly params: P
  readonly row: R
  readonly compiled: { readonly [D in Dialect]: Compiled }
  /** The only engine on which the statement runs, if the other engine does not need it. */
  readonly only: Dialect | undefined
  /** `[name, decode]` for each column of the result. */
  readonly decoders: ReadonlyArray<readonly [string, Columns[string]]>
}

/**
 * A parameter of SQLite whose value the planner cannot see. Otherwise SQLite would plan the statement again for each
 * new value of a parameter in a join (docs/contribute/decisions/hot-path.md, "Statements of the embedded engine").
 */
const unpeeked = "+?"

const compile = (sql: string, dialect: Dialect): Compiled => {
  const order: Array<string> = []
  const text = sql.replaceAll(/(?<![:\w]):([a-z]\w*)/g, (_, name: string) => {
    if (dialect === "sqlite") {
      order.push(name)
      return unpeeked
    }
    const known = order.indexOf(name)
    return `$${known >= 0 ? known + 1 : order.push(name)}`
  }).replaceAll(/\s+/g, " ").trim()
  return { text, order, reads: text.startsWith("SELECT") }
}

/**
 * Compiles a statement when it is used for the first time, because a process uses only some of the statements, and only
 * one engine.
 */
class CompiledWhenUsed implements Record<Dialect, Compiled> {
  readonly #sql: (f: Fragments) => string
  #sqlite: Compiled | undefined
  #postgres: Compiled | undefined

  constructor(sql: (f: Fragments) => string) {
    this.#sql = sql
  }

  get sqlite(): Compiled {
    return this.#sqlite ??= compile(this.#sql(fragments.sqlite), "sqlite")
  }

  get postgres(): Compiled {
    return this.#postgres ??= compile(this.#sql(fragments.postgres), "postgres")
  }
}

/** All declared statements. The tests of the engines' query plans use this list. */
export const declared: Array<Statement<Columns, Columns>> = []

/**
 * Declares a statement. In `sql`, a parameter is written as `:name`. The columns of the result are found by name, so
 * they must be selected with {@link select}.
 */
export const statement = <P extends Columns, R extends Columns>(definition: {
  readonly name: string
  readonly params: P
  readonly row: R
  readonly only?: Dialect
  readonly sql: (f: Fragments) => string
}): Statement<P, R> => {
  const made: Statement<P, R> = {
    name: definition.name,
    params: definition.params,
    row: definition.row,
    compiled: new CompiledWhenUsed(definition.sql),
    only: definition.only,
    decoders: Object.entries(definition.row) as ReadonlyArray<readonly [string, Columns[string]]>
  }
  declared.push(made)
  return made
}

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * Returns the select list of a row: `created_at AS "createdAt", …`. If an alias is given, the columns belong to the
 * table with this alias.
 */
export const select = (row: Columns, alias?: string): string =>
  Object.keys(row).map((name) => `${alias === undefined ? "" : `${alias}.`}${snake(name)} AS "${name}"`).join(", ")

/** Encodes parameters, in the order of the placeholders. */
export const encode = <P extends Columns, R extends Columns>(
  self: Statement<P, R>,
  values: ValuesOf<P>,
  dialect: Dialect
): Array<unknown> => {
  const encoded: Array<unknown> = []
  for (const name of self.compiled[dialect].order) {
    const column = self.params[name]
    if (column === undefined) throw new TypeError(`statement ${self.name} has no parameter ${name}`)
    encoded.push(column.encode(values[name], dialect))
  }
  return encoded
}

/**
 * A column of a row that cannot be decoded. Either the row has a substitute value for the column, or the row cannot be
 * shown.
 */
export interface Fault {
  readonly column: string
  readonly detail: string
  readonly isStoodIn: boolean
}

/**
 * Decodes one row of the driver in place, because nothing else uses the row, and most of its values stay as they are.
 * Returns which columns cannot be decoded, or `undefined` if all can.
 */
export const decode = (
  self: Pick<Statement<Columns, Columns>, "decoders">,
  row: { [column: string]: unknown },
  dialect: Dialect
): ReadonlyArray<Fault> | undefined => {
  let faults: Array<Fault> | undefined
  for (const [name, column] of self.decoders) {
    const raw = row[name]
    let value: unknown
    try {
      value = column.decode(raw, dialect)
    } catch (error) {
      value = column.standIn?.(raw)
      const detail = error instanceof Error ? error.message : String(error)
      ;(faults ??= []).push({ column: snake(name), detail, isStoodIn: value !== undefined })
    }
    if (value !== raw) row[name] = value
  }
  return faults
}

/** The text columns whose values help to identify a row. They are neither secret nor long texts from strangers. */
const telling = new Set(["kind", "owner"])

/**
 * Returns a text that identifies a row, such as `id 0190…, kind mail`. It is made from the readable columns or, if
 * there are none, from the parameters of the statement.
 */
export const nameOf = <P extends Columns, R extends Columns>(
  self: Statement<P, R>,
  row: { readonly [column: string]: unknown },
  params: ValuesOf<P>
): string => {
  const named = (columns: Columns, values: { readonly [column: string]: unknown }) =>
    Object.entries(columns).flatMap(([name, { isName }]) => {
      const value = values[name]
      return typeof value === "string" && (isName === true || telling.has(name)) ? [`${snake(name)} ${value}`] : []
    })
  const own = named(self.row, row)
  return (own.length > 0 ? own : named(self.params, params)).join(", ").slice(0, 200)
}
