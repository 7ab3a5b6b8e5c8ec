import * as Effect from "effect/Effect"
import { currentMillis } from "../Time.ts"
import type { StorageFailed } from "./Database.ts"
import { Database } from "./Database.ts"
import type { Driver } from "./Driver.ts"
import { eachSynced } from "./Synced.ts"

/*
 * Keeps totals for a while, because they are expensive to count (docs/contribute/decisions/readers.md, "Totals that are
 * kept"). Lists are requested again and again, and counting ten million rows takes about a second each time.
 */

interface Kept {
  readonly value: unknown
  readonly untilMillis: number
}

const mostKept = 1000
/** If there are at most this many rows, they are counted again each time. */
const freeRows = 100_000
const rowsPerSecondKept = 1000
const longestMillis = 900_000

const perDatabase = new WeakMap<Driver, Map<string, Kept>>()

const keptOf = (driver: Driver): Map<string, Kept> => {
  const known = perDatabase.get(driver)
  if (known !== undefined) return known
  const fresh = new Map<string, Kept>()
  perDatabase.set(driver, fresh)
  return fresh
}

/**
 * Returns the result of `count`, or a result that was counted a short time ago. `rowsOf` returns how many rows were
 * counted. The result is kept for one second per thousand rows. `key` names what is counted.
 */
export const kept = Effect.fnUntraced(function*<A, R>(
  key: string,
  rowsOf: (answer: A) => number,
  count: Effect.Effect<A, StorageFailed, R>
) {
  const known = keptOf(yield* Database)
  const now = yield* currentMillis
  const before = known.get(key)
  if (before !== undefined && now < before.untilMillis && before.untilMillis - now <= longestMillis) {
    return before.value as A
  }
  const value = yield* eachSynced(count) // other callers get this value without a read of their own
  known.delete(key)
  const rows = rowsOf(value)
  if (rows > freeRows) {
    const [oldest] = known.keys()
    if (known.size >= mostKept && oldest !== undefined) known.delete(oldest)
    known.set(key, { value, untilMillis: now + Math.min(longestMillis, rows / rowsPerSecondKept * 1000) })
  }
  return value
})

/** Drops the result that {@link kept} keeps for a key, because this result is known to be wrong. */
export const forget = (key: string): Effect.Effect<void, never, Database> =>
  Effect.map(Database, (driver) => void keptOf(driver).delete(key))

/** Does the same as {@link kept} for a total. */
export const keptTotal = <R>(key: string, filters: object, count: Effect.Effect<number, StorageFailed, R>) =>
  kept(`${key} ${JSON.stringify(filters)}`, (total: number) => total, count)
