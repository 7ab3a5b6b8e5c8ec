import * as Effect from "effect/Effect"
import { isTracedWithin, traced } from "../telemetry/Tracing.ts"
import { sendAhead } from "./Ahead.ts"
import type { Columns, ValuesOf } from "./Column.ts"
import type { Database } from "./Database.ts"
import { driverOf, failed, openTransaction, slow, slowAfterMillis, StorageFailed } from "./Database.ts"
import type { Row } from "./Driver.ts"
import type { Fault, Statement } from "./Statement.ts"
import { decode, encode, nameOf } from "./Statement.ts"
import type { Unreadable } from "./Unreadable.ts"

/* Runs statements and reads their rows. */

/** The columns that cannot be decoded, by row. */
type Faults<Row> = ReadonlyMap<Row, ReadonlyArray<Fault>>

const noFaults: Faults<never> = new Map<never, never>()

const errorOf = (faults: ReadonlyArray<Fault>): string =>
  faults.map(({ column, detail }) => `${column}: ${detail}`).join("; ").slice(0, 500)

/** Makes the failure of a statement that has found an unreadable row. No decision may be based on such a result. */
const unreadable = (statement: string, found: ReadonlyArray<Unreadable>): StorageFailed =>
  new StorageFailed({
    statement,
    detail: `a row cannot be read: ${found.map(({ error, row }) => `${row}: ${error}`).join("; ").slice(0, 500)}`,
    transient: false,
    isUnreadable: true
  })

/**
 * Runs a statement. `answer` makes the result from the decoded rows. If a row cannot be read, this fails, unless
 * `toleratesFaults` leaves the decision to `answer`. With `isAhead` the rows are not needed.
 */
const query = <P extends Columns, R extends Columns, A>(
  statement: Statement<P, R>,
  params: ValuesOf<P>,
  answer: (rows: ReadonlyArray<ValuesOf<R>>, faults: Faults<ValuesOf<R>>) => A,
  { isAhead = false, toleratesFaults = false }: { readonly isAhead?: boolean; readonly toleratesFaults?: boolean } = {}
): Effect.Effect<A, StorageFailed, Database> =>
  Effect.withFiber((fiber) => {
    const driver = driverOf(fiber)
    const within = fiber.getRef(openTransaction)
    const compiled = statement.compiled[driver.dialect]
    const values = encode(statement, params, driver.dialect)
    const started = performance.now()
    const answered = (raw: ReadonlyArray<Row>): Effect.Effect<A, StorageFailed> => {
      const rows = raw as ReadonlyArray<ValuesOf<R>> // each row is decoded in place
      let faults: Map<ValuesOf<R>, ReadonlyArray<Fault>> | undefined
      for (const row of rows) {
        const found = decode(statement, row, driver.dialect)
        if (found !== undefined) (faults ??= new Map()).set(row, found)
      }
      const elapsed = performance.now() - Math.max(started, within?.plans.answered ?? 0)
      if (faults === undefined && elapsed < slowAfterMillis) return Effect.succeed(answer(rows, noFaults))
      const found = [...faults ?? noFaults].map(([row, own]): Unreadable => ({
        statement: statement.name,
        row: nameOf(statement, row, params),
        error: errorOf(own)
      }))
      return Effect.forEach(found, driver.unreadable, { discard: true }).pipe(
        Effect.andThen(
          elapsed < slowAfterMillis ? Effect.void : slow(statement.name, elapsed)
        ),
        Effect.andThen(
          faults === undefined || toleratesFaults
            ? Effect.succeed(answer(rows, faults ?? noFaults))
            : Effect.fail(unreadable(statement.name, found))
        )
      )
    }
    const isTraced = isTracedWithin(fiber)
    if (isAhead && within !== undefined && !isTraced && sendAhead(within, statement.name, compiled.text, values)) {
      return Effect.succeed(answer([], noFaults))
    }
    const whole = Effect.matchEffect(
      within === undefined
        ? driver.single(compiled, values)
        : within.connection.execute(compiled.text, values),
      { onFailure: (error) => failed(driver, statement.name, error, within?.plans), onSuccess: answered }
    )
    return isTraced ? traced(statement.name, () => ({ "db.system": driver.dialect }), whole) : whole
  })

/**
 * Logs, at most once a minute, a row that can be decoded although the service never writes such a row. This is for
 * lists. If a decision depends on the row, {@link refuseUnreadable} must be used instead.
 */
export const tellUnreadable = (found: Unreadable): Effect.Effect<void, never, Database> =>
  Effect.withFiber((fiber) => driverOf(fiber).unreadable(found))

/** Logs a row that the service never writes, and fails like a statement that finds an unreadable row. */
export const refuseUnreadable = (found: Unreadable): Effect.Effect<never, StorageFailed, Database> =>
  Effect.andThen(tellUnreadable(found), Effect.fail(unreadable(found.statement, [found])))

/**
 * Runs a statement and decodes every row. Fails if a row cannot be read. This is for results on which a decision
 * depends.
 */
export const all = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<ReadonlyArray<ValuesOf<R>>, StorageFailed, Database> => query(statement, params, (rows) => rows)

/**
 * Returns the rows of a list. A value that cannot be read is replaced by a substitute. If there is no substitute, the
 * row is left out. In both cases the row is logged. If a caller collects such rows with `noted`, the row is also passed
 * to that caller. No decision may be based on these rows.
 */
export const lenient = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<ReadonlyArray<ValuesOf<R>>, StorageFailed, Database> =>
  query(
    statement,
    params,
    (rows, faults) =>
      faults.size === 0 ? rows : rows.filter((row) => faults.get(row)?.every(({ isStoodIn }) => isStoodIn) !== false),
    { toleratesFaults: true }
  )

/** Returns the first row of {@link lenient}, or `undefined`. */
export const lenientFirst = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<ValuesOf<R> | undefined, StorageFailed, Database> =>
  Effect.map(lenient(statement, params), ([row]) => row)

/**
 * Returns the rows that can be read, and separately those that cannot, each with substitutes and the reason. Rows that
 * cannot be read are logged.
 */
export const partitioned = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<
  {
    readonly readable: ReadonlyArray<ValuesOf<R>>
    readonly unreadable: ReadonlyArray<readonly [row: ValuesOf<R>, error: string]>
  },
  StorageFailed,
  Database
> =>
  query(
    statement,
    params,
    (rows, faults) => ({
      readable: faults.size === 0 ? rows : rows.filter((row) => !faults.has(row)),
      unreadable: [...faults].map(([row, own]) => [row, errorOf(own)] as const)
    }),
    { toleratesFaults: true }
  )

/** Returns the first row, or `undefined`. Fails if the row cannot be read. */
export const first = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<ValuesOf<R> | undefined, StorageFailed, Database> => query(statement, params, ([row]) => row)

/**
 * Runs a statement for its effect. In a transaction, this does not wait for PostgreSQL's answer. If the statement
 * fails, the next statement or the commit fails with the name of this statement.
 */
export const run = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<void, StorageFailed, Database> => query(statement, params, () => undefined, { isAhead: true })
