import { Deferred, Effect } from "effect"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { currentAsker } from "../../../src/engine/sql/ReaderSemaphore.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Held } from "../../support/Asked.ts"
import { sqlite } from "../../support/Databases.ts"
import { column } from "../../support/Graph.ts"
import { entered, usePanel } from "../../support/Panel.ts"

/*
 * The share to which a request's reads on a separate connection count, and what happens to the reads when the client
 * leaves.
 */

/** The database, and the asker of each read on a separate connection. */
const heard = Effect.gen(function*() {
  const driver = yield* Database
  const askers = new Set<string>()
  const hearing: Driver = {
    ...driver,
    aside: (_, body) =>
      Effect.flatMap(currentAsker, (asker) => {
        askers.add(asker === undefined ? "the service" : `${asker.host} of ${asker.network}`)
        return body({ execute: (text, params) => driver.single({ text, order: [], reads: true }, params) })
      })
  }
  return { askers, hearing }
})

type Ask<R> = (target: string, held: Held) => Effect.Effect<{ readonly status: number }, unknown, R>

/** Requests each target, and returns the askers of the reads. */
const askersOf = Effect.fnUntraced(function*<R>(ask: Ask<R>, held: Held, targets: ReadonlyArray<string>) {
  const { askers, hearing } = yield* heard
  return yield* Effect.forEach(targets, (target) =>
    Effect.gen(function*() {
      askers.clear()
      const { status } = yield* Effect.provideService(ask(target, held), Database, hearing)
      return [target, status, ...askers]
    }))
})

/** Lets the client of each request leave during a read, and returns the targets whose read goes on. */
const notGivenUp = Effect.fnUntraced(function*<R>(ask: Ask<R>, held: Held, targets: ReadonlyArray<string>) {
  const driver = yield* Database
  return yield* Effect.filter(targets, (target) =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      let isUnderWay = true
      const waiting: Driver = {
        ...driver,
        aside: () =>
          Effect.onInterrupt(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never), () =>
            Effect.sync(() => {
              isUnderWay = false
            }))
      }
      const asked = yield* Effect.forkDetach(Effect.provideService(ask(target, held), Database, waiting))
      yield* Deferred.await(begun)
      // The listener interrupts in the same way. The test does not wait for a read that cannot be interrupted.
      asked.interruptUnsafe()
      yield* Effect.repeat(Effect.yieldNow, { times: 100 })
      return isUnderWay
    }))
})

const userId = Effect.map(
  column("SELECT lower(hex(id)) FROM admin_users"),
  ([id = ""]) => id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
)

describe("a read of the API on a separate connection", () => {
  const { test } = useApi(sqlite)

  test("counts towards the share of its operator, unless all callers share the read", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "viewer")
      const anna = yield* Effect.map(userId, (id) => `${id} of ${id}`)
      const own = [
        "orders",
        "orders/export",
        "audit/export",
        "expiring/export",
        "search?q=a.example",
        "trends?profile=none"
      ]
      const found = yield* askersOf(ask, held, [...own, "trends"].map((path) => `/api/${path}`))
      assert.deepStrictEqual(found, [
        ...own.map((path) => [`/api/${path}`, 200, anna]),
        ["/api/trends", 200, "activity of activity"]
      ])
    }))

  test("is stopped when its client leaves", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "viewer")
      const targets = ["orders", "search?q=a.example", "trends", "orders/export"].map((path) => `/api/${path}`)
      assert.deepStrictEqual(yield* notGivenUp(ask, held, targets), [])
    }))
})

describe("a read of the panel on a separate connection", () => {
  const { test } = usePanel(sqlite)

  test("counts towards the share of its operator, unless all callers share the read", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "anna", "viewer")
      const anna = yield* Effect.map(userId, (id) => `${id} of ${id}`)
      const own = ["orders", "orders/export", "audit/export", "search?q=a.example"]
      assert.deepStrictEqual(
        yield* askersOf(ask, held, own.map((path) => `/ui/${path}`)),
        own.map((path) => [`/ui/${path}`, 200, anna])
      )
    }))

  test("is stopped when its client leaves", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "anna", "viewer")
      const targets = ["orders", "search?q=a.example", "orders/export"].map((path) => `/ui/${path}`)
      assert.deepStrictEqual(yield* notGivenUp(ask, held, targets), [])
    }))
})
