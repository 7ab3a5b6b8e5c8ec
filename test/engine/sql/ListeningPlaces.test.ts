import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { assert, describe } from "vitest"
import { listen } from "../../../src/engine/sql/PostgresListen.ts"
import { Pool } from "../../../src/engine/sql/PostgresPool.ts"
import { Connector, readUrl } from "../../../src/engine/sql/PostgresServer.ts"
import { postgres, useDatabase } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"

/* The number of sessions that listen is limited, because every commit that notifies wakes each of them. */

describe("sessions that listen on PostgreSQL", () => {
  const database = useDatabase(postgres)

  it.live("are as many as there are places, and one more session waits until a place is free", () =>
    database.use(Effect.gen(function*() {
      const options = { url: Redacted.make(database.url()), pool_max: 1, acquire_timeout_ms: 5000 }
      const connector = new Connector(yield* readUrl(options))
      const pool = yield* Effect.acquireRelease(
        Effect.sync(() => new Pool({ max: 1, acquireMillis: 5000, connect: () => connector.connect() })),
        (made) => Effect.promise(() => made.end())
      )
      const heard: Array<string> = []
      const begin = Effect.fnUntraced(function*(name: string) {
        const isListening = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          listen(connector, pool, Effect.void, { most: 2, retryMillis: 20 })("test_channel", {
            heard: (text) => void heard.push(`${name} ${text}`),
            listening: Deferred.succeed(isListening, undefined)
          })
        )
        return { fiber, isListening: Deferred.await(isListening) }
      })
      const [one, two] = [yield* begin("one"), yield* begin("two")]
      yield* one.isListening
      yield* two.isListening
      const three = yield* begin("three")
      const sessions = column(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN test_channel%'"
      )
      const notified = (text: string, count: number) =>
        Effect.andThen(
          sql(`SELECT pg_notify('test_channel', '${text}')`),
          Effect.repeat(Effect.delay(Effect.void, 10), {
            until: () => heard.filter((line) => line.endsWith(text)).length === count
          })
        )
      yield* notified("a", 2)
      assert.lengthOf(yield* sessions, 2)
      yield* Fiber.interrupt(one.fiber)
      yield* three.isListening
      yield* notified("b", 2)
      assert.sameMembers(heard, ["one a", "two a", "two b", "three b"])
    })))
})
