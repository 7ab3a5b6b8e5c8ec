import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { rollback, StorageFailed } from "../../engine/sql/Database.ts"
import type { Connection, Driver } from "../../engine/sql/Driver.ts"
import { noTransactionLimit } from "../../engine/sql/LockWait.ts"
import { giveBackText, holdersText, takeText } from "../../engine/sql/ServedLock.ts"
import { SqlError } from "../../engine/sql/SqlError.ts"
import { tables } from "./Tables.ts"

/* The two databases of a copy, their transactions, and the locks that keep other processes away. */

/** The databases are not suitable for a copy, or the copy differs from what was read. `detail` is a sentence. */
export class TransferRefused extends Data.TaggedError("TransferRefused")<{
  readonly reason: "same" | "occupied" | "served" | "value" | "differs"
  readonly detail: string
}> {}

/** One of the two databases and its open transaction. */
export interface Side {
  readonly driver: Driver
  readonly connection: Connection
}

/** Why a copy fails. */
export type Failure = StorageFailed | TransferRefused

const storageFailed = (driver: Driver, statement: string) => (error: SqlError) =>
  new StorageFailed({ statement, ...driver.describe(error) })

/** Runs a statement on one side. */
export const query = (
  { connection, driver }: Side,
  statement: string,
  text: string,
  params: ReadonlyArray<unknown> = []
) => Effect.mapError(connection.execute(text, params), storageFailed(driver, statement))

/**
 * Runs `body` in a transaction on a separate connection. The transaction is committed when `body` succeeds. `around`
 * runs the whole transaction.
 */
export const within = <A>(
  driver: Driver,
  begin: (connection: Connection) => Effect.Effect<unknown, SqlError>,
  body: (side: Side) => Effect.Effect<A, Failure>,
  around = (_: Side, whole: Effect.Effect<A, Failure | SqlError>) => whole
): Effect.Effect<A, Failure> =>
  driver.exclusive((connection) =>
    around(
      { driver, connection },
      Effect.gen(function*() {
        yield* begin(connection)
        const exit = yield* Effect.exit(body({ driver, connection }))
        if (Exit.isFailure(exit)) yield* rollback(connection)
        else yield* Effect.tapError(driver.commit(connection), () => rollback(connection))
        return yield* exit
      })
    )
  ).pipe(Effect.mapError((error) => error instanceof SqlError ? storageFailed(driver, "transaction")(error) : error))

// The copy takes as long as it needs, and one side may wait for the other longer than a transaction may be idle.
const waits = `SET LOCAL idle_in_transaction_session_timeout = 0; ${noTransactionLimit}`

/** Begins a transaction that sees a snapshot of the database. */
export const beginReading = ({ dialect }: Driver) => (connection: Connection) =>
  dialect === "sqlite"
    ? connection.executeRaw("BEGIN", [])
    : Effect.andThen(
      connection.executeRaw("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", []),
      connection.executeRaw(waits, [])
    )

/** Begins a transaction that excludes all other writers. */
export const beginWriting = (driver: Driver) => (connection: Connection) =>
  driver.dialect === "sqlite"
    ? driver.begin(connection)
    : Effect.andThen(
      driver.begin(connection),
      connection.executeRaw(`${waits}; LOCK TABLE ${tables.map(({ name }) => name).join(", ")} IN EXCLUSIVE MODE`, [])
    )

const take = Effect.fnUntraced(function*(side: Side) {
  const [row] = yield* query(side, "served_lock", takeText(side.driver.keepsSession))
  if (row?.["taken"] === "true") return
  const holders = yield* query(side, "served_lock_holders", holdersText)
  const named = holders.map(({ address, pid }) => `from ${String(address)} (pid ${String(pid)} of PostgreSQL)`)
  return yield* new TransferRefused({
    reason: "served",
    detail: `Stop every server first: one is connected to the source${named.map((one) => `, ${one}`).join("")}.`
  })
})

/**
 * Keeps serving processes away from the source, from before its snapshot until the copy ends. On SQLite, and behind a
 * proxy that pools transactions, {@link keepAway} does this instead.
 */
export const alone = <A>(
  from: Side,
  whole: Effect.Effect<A, Failure | SqlError>
): Effect.Effect<A, Failure | SqlError> =>
  from.driver.dialect === "sqlite" || !from.driver.keepsSession
    ? whole
    : Effect.acquireUseRelease(
      take(from),
      () => whole,
      () => Effect.ignore(from.connection.executeRaw(giveBackText, []))
    )

/**
 * Excludes writers from an SQLite file, and begins a new snapshot. This is possible only after the files are known to
 * differ. Behind a proxy that pools transactions, keeps serving processes away.
 */
export const keepAway = (from: Side): Effect.Effect<void, Failure> =>
  from.driver.dialect === "sqlite"
    ? Effect.mapError(
      Effect.andThen(from.connection.executeRaw("ROLLBACK", []), from.driver.begin(from.connection)),
      storageFailed(from.driver, "transaction")
    )
    : from.driver.keepsSession
    ? Effect.void
    : take(from)
