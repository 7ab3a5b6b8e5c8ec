import { Effect, Exit, Fiber, Scope } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import type { SqliteOptions } from "../../src/engine/sql/SqliteConnection.ts"
import { sql } from "../support/OpenDatabase.ts"
import { syncsCommits } from "./Disk.ts"
import { Machine } from "./Machine.ts"
import { Random } from "./Random.ts"
import { openStore } from "./Store.ts"

const mishaps = {
  statement: () => false,
  defect: () => false,
  commit: () => undefined,
  arrange: <A>(rows: ReadonlyArray<A>) => rows
}

describe("the disk of a simulation", () => {
  let scope: Scope.Closeable | undefined
  afterEach(() => scope && Effect.runPromise(Scope.close(scope, Exit.void)))

  /**
   * Commits the nonces of three accounts separately, and then cuts the power. Returns how many commits were lost, and
   * what is left.
   */
  const afterCut = async (synchronous: SqliteOptions["synchronous"], syncs = Number.POSITIVE_INFINITY) => {
    scope = await Effect.runPromise(Scope.make())
    let left = syncs
    const sync = (_: unknown, ended: () => void) => void (left-- > 0 && ended())
    const store = await Effect.runPromise(Scope.provide(openStore(synchronous, mishaps, () => {}, sync), scope))
    const machine = new Machine({ now: 0, random: new Random("disk", "order") })
    const process = machine.spawn("only", 3000)
    const writing = process.fork(Effect.scoped(Effect.flatMap(store.driverOf(process), (driver) =>
      Effect.forEach(
        ["a", "b", "c"],
        (value) => sql(`INSERT INTO nonces (value, created_at) VALUES ('${value}', 0)`),
        { discard: true }
      ).pipe(Effect.provideService(Database, driver)))))
    const isOver = () => writing.pollUnsafe() !== undefined
    const hasEnded = await machine.run(() => isOver() || left < 0, () => {})
    expect(hasEnded).toBe(true)
    if (isOver()) expect(Exit.isSuccess(await Effect.runPromise(Fiber.await(writing)))).toBe(true)
    process.kill()
    const gone = store.cut((limit) => Math.min(1, limit - 1))
    return { gone, left: store.rows("SELECT value FROM nonces ORDER BY value").map(({ value }) => value) }
  }

  it("keeps every commit if the setting is full", async () => {
    expect(await afterCut("full")).toEqual({ gone: 0, left: ["a", "b", "c"] })
  })

  it("loses the last commits if the setting is normal", async () => {
    expect(await afterCut("normal")).toEqual({ gone: 2, left: ["a"] })
  })

  it("keeps every commit whose sync has ended with the setting grouped", async () => {
    expect(await afterCut("grouped")).toEqual({ gone: 0, left: ["a", "b", "c"] })
  })

  it("loses a commit whose sync has not ended with the setting grouped", async () => {
    expect(await afterCut("grouped", 1)).toEqual({ gone: 1, left: ["a"] })
  })

  it("asks the service's own layer how it commits", async () => {
    const asked = Effect.forEach(["full", "grouped", "normal"] as const, syncsCommits)
    expect(await Effect.runPromise(asked)).toEqual([true, false, false])
  })
})
