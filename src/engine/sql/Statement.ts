import type { Columns, Dialect, ValuesOf } from "./Column.ts"

/** The few places where the two engines' SQL differs, as fragments. */
export interface Fragments {
  readonly dialect: Dialect
  /** Lets PostgreSQL's workers skip each other's rows. SQLite needs nothing, because it has only one writer. */
  readonly skipLocked: string
  /** Returns a table of the elements of a `rows` parameter, each in a column `value`. */
  readonly each: (parameter: string) => string
  /** Returns the n-th member of such an element as text, integer, uuid or octets (hexadecimal digits in the element). */
  readonly at: (index: number, type: "text" | "int" | "uuid" | "bytes") => string
  /**
   * Returns the condition that a unique column has one of the elements of a `rows` parameter, each with one member.
   * PostgreSQL assumes a hundred elements, and would read the whole table to join them, so it gets them as an array.
   */
  readonly oneOf: (parameter: string, type: "text" | "uuid") => string
  /** Returns a uuid column as hyphenated text. */
  readonly idText: (column: string) => string
  /**
   * Tells SQLite, after the name of a table, to use this index. SQLite has no statistics, and would often use another
   * index and read nearly all rows. PostgreSQL has statistics, and chooses itself.
   */
  readonly indexedBy: (index: string) => string
  /**
   * Marks a column that only filters, because another column selects the index. Otherwise SQLite would use the index by
   * status and read nearly all rows.
   */
  readonly aside: (column: string) => string
  /**
   * Marks a column that is only checked in the row of a unique key: no index matches it. Otherwise PostgreSQL might use
   * another index and read nearly all rows: while a table is empty every index costs the same, and a connection keeps
   * the plan that it made then.
   */
  readonly checked: (column: string) => string
  /**
   * A condition on the first column of an index, for a list in the order of that index (see {@link Fragments.ledBy}).
   * PostgreSQL assumes that matching rows are spread evenly, and would search for them from the newest row in an index
   * by time alone. If no row has matched recently, it would read all rows that do not match.
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
    checked: (column) => `greatest(${column})`, // the greatest of one value is the value
    leads: (column, value) => `${column} >= ${value} AND ${column} <= ${value}`,
    ledBy: (column, order) => `${column} DESC, ${order}`,
    typed: (parameter, type) => `${parameter}::${type}`
  }
}

/** A statement in the form for one engine. */
export interface Compiled {
  readonly text: string
  /** Parameter names in the order of their placeholders. */
  readonly order: ReadonlyArray<string>
  /** Whether it is a SELECT, which changes nothing and needs no transaction. */
  readonly reads: boolean
}

/** A named statement: SQL written once, typed parameters (`:name`) and typed result columns. */
export interface Statement<P extends Columns, R extends Columns> {
  readonly name: string
  readonly params: P
  readonly row: R
  readonly compiled: { readonly [D in Dialect]: Compiled }
  /** The only engine that runs it, if the other one does not need it. */
  readonly only: Dialect | undefined
  /** `[name, decode]` of each result column. */
  readonly decoders: ReadonlyArray<readonly [string, Columns[string]]>
}

/**
 * A parameter of SQLite whose value the planner cannot see. Otherwise each new value of a join's parameter would make
 * it plan the statement again (docs/decisions/hot-path.md, "Statements of the embedded engine").
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

/** Compiles a statement when it is first used, because a process uses only some statements, on one engine. */
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

/** Every declared statement. Tests of the engines' query plans use the list. */
export const declared: Array<Statement<Columns, Columns>> = []

/**
 * Declares a statement. `sql` names parameters as `:name`; result columns are matched by name, so select them with
 * {@link select}.
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

/** Returns the select list of a row: `created_at AS "createdAt", …`, with a table alias if one is given. */
export const select = (row: Columns, alias?: string): string =>
  Object.keys(row).map((name) => `${alias === undefined ? "" : `${alias}.`}${snake(name)} AS "${name}"`).join(", ")

/** Encodes parameters in the order of the engine's placeholders. */
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

/** A column of a row that does not decode. The row has a substitute value for it, or cannot be shown. */
export interface Fault {
  readonly column: string
  readonly detail: string
  readonly isStoodIn: boolean
}

/**
 * Decodes one row of the driver, in place: nobody else uses it, and most of its values stay as they are. Answers what
 * does not decode, and `undefined` if everything does.
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

/** Text columns whose values help to identify a row. They are neither secret nor long texts from strangers. */
const telling = new Set(["kind", "owner"])

/**
 * Returns a text that identifies a row, such as `id 0190…, kind mail`. It uses the readable columns or, if there are
 * none, the parameters of the statement.
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
