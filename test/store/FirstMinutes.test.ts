import { it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../src/engine/http/Message.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import * as crl from "../../src/operations/work/crl/ListPublication.ts"
import type { AuthorizationBody, OrderBody } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { freshDirectory, freshPostgresUrl } from "../support/Databases.ts"
import { configOf, count, migrated, newPrivateKey, openDriver, sql, world } from "../support/Graph.ts"
import { fillTables } from "../support/Grown.ts"
import { headerOf, newClient, surfaceOf } from "../support/Handle.ts"
import { profilesIn, work } from "../support/Issued.ts"
import { madeAt } from "../support/LocalCa.ts"

/*
 * Tests a new PostgreSQL database that has not gathered statistics yet. When the clients of an installation begin to
 * send requests, the connections of the service still use the plans that were made while every table was empty.
 */

const config = configOf()

const bodyOf = <A>({ body }: Answer): A => JSON.parse(String(body)) as A

/** Issues a certificate to a new account. */
const issueOne = Effect.gen(function*() {
  const app = yield* surfaceOf(config)
  const { send } = yield* newClient(app)
  const names = ["host.example"]
  const asked = yield* send("/profile/default/newOrder", { identifiers: [{ type: "dns", value: names[0] }] })
  const order = headerOf(asked, "location")
  const [authorization = ""] = bodyOf<OrderBody>(asked).authorizations
  const [challenge] = bodyOf<AuthorizationBody>(yield* send(authorization)).challenges
  yield* send(challenge?.url ?? "", {})
  yield* work("challenge_validate")
  yield* send(authorization)
  yield* send(order)
  const csr = makeCsr({ names, key: newPrivateKey() }).csr.toString("base64url")
  yield* send(`${order}/finalize`, { csr })
  yield* work("signer_issue")
  const issued = bodyOf<OrderBody>(yield* send(order))
  assert.strictEqual(issued.status, "valid")
  assert.strictEqual((yield* send(issued.certificate ?? "")).status, 200)
})

/** The number of table rows that the session has read. */
const rowsRead = Effect.andThen(
  sql("SELECT pg_stat_force_next_flush()"),
  count("SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables")
)

/** Returns how many rows `self` reads. */
const reads = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const before = yield* rowsRead
    yield* self
    return (yield* rowsRead) - before
  })

describe("the first minutes of a PostgreSQL database", () => {
  it.effect("need at most twice as many row reads for an issuance once there are 10,000 orders", () =>
    Effect.scoped(Effect.gen(function*() {
      const url = yield* Effect.promise(freshPostgresUrl)
      // All statements share the plans of this one connection.
      const driver = yield* openDriver(url, 1)
      yield* TestClock.setTime(madeAt * 1000)
      yield* Effect.provideService(migrated, Database, driver)
      // Servers before PostgreSQL 15 update the counters of the rows that were read only after some time.
      const version = yield* Effect.provideService(count("SHOW server_version_num"), Database, driver)
      if (version < 150_000) return
      yield* Effect.gen(function*() {
        yield* crl.initialize
        // PostgreSQL fixes the plan of a statement at the sixth use.
        yield* Effect.repeat(issueOne, { times: 6 })
        const few = yield* reads(issueOne)
        yield* fillTables(10_000)
        // Removes the other work, so that only this issuance is counted.
        yield* sql("DELETE FROM jobs WHERE status IN ('ready', 'running')")
        yield* sql("UPDATE challenges SET status = 'valid' WHERE status = 'processing'")
        assert.isAtMost(yield* reads(issueOne), 2 * few)
        // Sessions of a busy server may lose their plans.
        yield* sql("DISCARD PLANS")
        assert.isAtMost(yield* reads(issueOne), 2 * few, "with new plans")
      }).pipe(
        Effect.provide(world({ profiles: profilesIn(freshDirectory()) })),
        Effect.provideService(Database, driver)
      )
    })))
})
