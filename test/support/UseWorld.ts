import { it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { Scope } from "effect"
import type { Database } from "../../src/kernel/sql/Database.ts"
import type { Record } from "../../src/kernel/telemetry/EventLog.ts"
import type { Backend, TestDatabase } from "./Databases.ts"
import { useDatabase } from "./Databases.ts"
import type { Script, World } from "./Graph.ts"
import { world } from "./Graph.ts"

/** A test in a world over a database. */
export type WorldTest = Effect.Effect<void, unknown, Database | World | Scope.Scope>

/** What {@link useWorld} gives a describe block. */
export interface TestWorld {
  readonly database: TestDatabase
  /** Takes every log record of the test. */
  readonly records: Array<Record>
  /** A test by the name that seeds its chance; `script` is what its world does differently. */
  readonly test: (name: string, body: () => WorldTest, script?: Script) => void
}

/**
 * A describe block's database, and tests on it in worlds of their own. They begin at `startsAt`, in epoch seconds, and
 * are run as `around` says.
 */
export const useWorld = (
  backend: Backend,
  { around = (body) => body, startsAt = 0 }: {
    readonly around?: (body: WorldTest) => WorldTest
    readonly startsAt?: number
  } = {}
): TestWorld => {
  const database = useDatabase(backend)
  const records: Array<Record> = []
  const test: TestWorld["test"] = (name, body, script = {}) =>
    it.scoped(name, () =>
      Effect.suspend(() => {
        records.length = 0
        return Effect.zipRight(TestClock.setTime(startsAt * 1000), around(Effect.suspend(body)))
      }).pipe(Effect.provide(world({ records, seed: name, ...script })), (self) => database.use(self)))
  return { database, records, test }
}
