import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { clocks } from "../../engine/queue/Clocks.ts"
import * as workers from "../../engine/queue/Workers.ts"
import { Database } from "../../engine/sql/Database.ts"
import type { Driver } from "../../engine/sql/Driver.ts"
import * as Migrations from "../../engine/sql/Migrations.ts"
import * as audit from "../../store/AuditRows.ts"
import type { Counted } from "../../store/transfer/RowTransfer.ts"
import * as Transfer from "../../store/transfer/RowTransfer.ts"
import type { AtKeyboard } from "../Operator.ts"

/** Processes were seen a moment ago, and may be writing to the source. */
export class StillServed extends Data.TaggedError("StillServed")<{ readonly owners: ReadonlyArray<string> }> {}

/**
 * The schemas differ, or one of the schemas has a migration that this build does not know. The error has the name of
 * each schema's last migration.
 */
export class SchemasDiffer extends Data.TaggedError("SchemasDiffer")<{
  readonly source: string
  readonly target: string
  readonly isBehind: boolean
}> {}

const seenWithinSeconds = 30

// The earlier of two clocks is used, because the clock of this host may be ahead. Processes that run on this host are
// found without a clock.
const refuseServed = Effect.gen(function*() {
  const since = (yield* clocks).earlier - seenWithinSeconds
  const isRunning = workers.isRunning(workers.here())
  const owners = (yield* workers.list).filter(({ lastSeenAt, owner }) => lastSeenAt >= since || isRunning(owner))
    .map(({ owner }) => owner)
  if (owners.length > 0) return yield* new StillServed({ owners })
})

const lastOf = (names: ReadonlyArray<string>): string => names.at(-1) ?? "no migration"

/**
 * Requires that both databases have exactly the migrations that this build knows, because columns that it does not know
 * would not be copied.
 */
const refuseSchemas = Effect.fnUntraced(function*(target: Driver, known: ReadonlyArray<string>) {
  const source = yield* Migrations.appliedNames
  const there = yield* Effect.provideService(Migrations.appliedNames, Database, target)
  const isKnown = (names: ReadonlyArray<string>) => names.join() === known.join()
  if (isKnown(source) && isKnown(there)) return
  return yield* new SchemasDiffer({
    source: lastOf(source),
    target: lastOf(there),
    isBehind: isKnown(source) && known.some((name) => !there.includes(name))
  })
})

const refuseUnfit = (target: Driver, known: ReadonlyArray<string>) =>
  Effect.andThen(refuseSchemas(target, known), refuseServed)

/** Counts the rows to copy. Fails if {@link run} would refuse to begin. `known` lists the migrations of this build. */
export const plan = Effect.fn("Transfer.plan")(function*(target: Driver, known: ReadonlyArray<string>) {
  yield* refuseUnfit(target, known)
  return yield* Transfer.plan(yield* Database, target)
})

/** Copies every row of every table to the target, and records the copy in the target's audit trail. */
export const run = Effect.fn("Transfer.run")(function*(
  operator: AtKeyboard,
  target: Driver,
  known: ReadonlyArray<string>,
  progress: (so: Counted) => Effect.Effect<void>
) {
  yield* refuseUnfit(target, known)
  const tables = yield* Transfer.copy(yield* Database, target, progress)
  const total = tables.reduce((sum, { rows }) => sum + rows, 0)
  yield* Effect.provideService(
    audit.record({
      event: "database_transferred",
      actorKind: operator.kind,
      actorId: operator.id,
      detail: { tables: tables.length, rows: total }
    }),
    Database,
    target
  )
  return { tables, total }
})
