import { Effect, Fiber } from "effect"
import { assert, describe } from "vitest"
import type { OrderId } from "../../../src/domain/Id.ts"
import { purgeObject, purgePreviewObject } from "../../../src/operations/operator/objects/PurgeObject.ts"
import * as removal from "../../../src/operations/operator/OrderRemoval.ts"
import * as purge from "../../../src/operations/operator/Purge.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, count, eventsOf, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { useWorld } from "../../support/UseWorld.ts"

const config = configOf()
const operator = { kind: "cli", id: "tester" } as const
const nobody = "01234567-89ab-7def-8123-456789abcdef"
const now = 1_800_000_000
const day = 86_400

describe.each(databases)("orders that operators delete on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: now })
  const literal = (id: string): string => idLiteral(backend.dialect, id)
  const set = (id: OrderId, what: string) => sql(`UPDATE orders SET ${what} WHERE id = ${literal(id)}`)
  const issued = (notAfter: string | number) => `status = 'valid', certificate = 'PEM', cert_not_after = ${notAfter}`

  const trail = Effect.map(
    sql("SELECT event, actor_kind, actor_id, profile, account_id, order_id, detail FROM audit_log ORDER BY id"),
    (rows) =>
      rows.map(({ account_id, actor_id, actor_kind, detail, event, order_id, profile }) => {
        const read = JSON.parse(String(detail)) as { readonly [member: string]: unknown }
        return { event, actor_kind, actor_id, profile, account_id, order_id, detail: read }
      })
  )

  describe("one by one", () => {
    test("are deleted with their authorizations and leave one row", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profileOf(config))
        const { id } = yield* orderOf(caller, "a.example", "b.example")
        yield* orderOf(caller, "c.example")
        yield* set(id, "status = 'invalid'")
        assert.deepInclude(yield* removal.preview(id), { authorizations: 2, status: "invalid", profile: "default" })
        assert.deepStrictEqual(yield* removal.remove(operator, id), { deleted: { authorizations: 2 } })
        assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 1)
        assert.strictEqual(yield* count("SELECT count(*) FROM authorizations"), 1)
        assert.deepStrictEqual(yield* trail, [{
          event: "order_deleted",
          actor_kind: "cli",
          actor_id: "tester",
          profile: "default",
          account_id: caller.accountId,
          order_id: id,
          detail: { authorizations: 2, status: "invalid" }
        }])
        for (const gone of [id, nobody, "x"]) {
          assert.strictEqual((yield* Effect.flip(removal.preview(gone)))._tag, "NoSuch")
          assert.strictEqual((yield* Effect.flip(removal.remove(operator, gone)))._tag, "NoSuch")
        }
      }))

    test("are kept if their certificate can still be used, even if the certificate was issued after the preview", () =>
      Effect.gen(function*() {
        const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
        for (const notAfter of [now, now + 1, "NULL", -1]) {
          yield* set(id, "status = 'processing', certificate = NULL, cert_not_after = NULL")
          yield* removal.preview(id)
          yield* set(id, issued(notAfter))
          const refusal = { _tag: "LiveCertificates", count: 1 } as const
          assert.deepInclude(yield* Effect.flip(removal.preview(id)), refusal)
          assert.deepInclude(yield* Effect.flip(removal.remove(operator, id)), refusal)
        }
        assert.isEmpty(yield* trail)
        yield* set(id, issued(now - 1))
        yield* removal.remove(operator, id)
        assert.deepStrictEqual((yield* trail).map(({ event }) => event), ["order_deleted"])
      }))

    test("leave one row for 20 requests at once", () =>
      Effect.gen(function*() {
        const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
        const ends = yield* Effect.all(
          Array.from({ length: 20 }, () => Effect.result(removal.remove(operator, id))),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(ends.filter(({ _tag }) => _tag === "Success").length, 1)
        assert.lengthOf(yield* trail, 1)
      }))
  })

  describe("whose certificate expired long ago", () => {
    /** Orders of every kind. The second value says whether a purge of 30 days deletes the order. */
    const kinds: ReadonlyArray<readonly [what: string, isTaken: boolean]> = [
      [issued(now - 30 * day), true],
      [issued(now - 31 * day), true],
      [`${issued(now - 400 * day)}, revoked_at = 5, revocation_reason = 1`, true],
      [issued(0), true],
      [issued(now - 30 * day + 1), false],
      [`${issued(now + day)}, revoked_at = 5`, false],
      [issued("NULL"), false],
      [`${issued(-1)}, revoked_at = 5`, false],
      ["status = 'pending'", false],
      ["status = 'invalid'", false]
    ]
    const peopled = Effect.gen(function*() {
      const callers = [yield* callerAt(profileOf(config)), yield* callerAt(profileOf(config, "other"))]
      for (const caller of callers) {
        for (const [what] of kinds) {
          const { id } = yield* orderOf(caller, "a.example", "b.example")
          yield* set(id, what)
        }
      }
      return kinds.filter(([, isTaken]) => isTaken).length
    })

    test("are counted by profile, and are counted separately if their expiry is unknown", () =>
      Effect.gen(function*() {
        const taken = yield* peopled
        const preview = purgePreviewObject(yield* purge.preview({ profile: undefined, expiredForDays: 30 }))
        const one = { orders: taken, oldest: "1970-01-01T00:00:00Z", newest: "2026-12-16T08:00:00Z" }
        assert.deepStrictEqual(preview, {
          ...one,
          orders: 2 * taken,
          profiles: [{ profile: "default", ...one }, { profile: "other", ...one }],
          left: 4,
          cutoff: "2026-12-16T08:00:00Z"
        })
        const other = yield* purge.preview({ profile: "other", expiredForDays: 30 })
        assert.deepStrictEqual([other.orders, other.left], [taken, 2])
        const none = purgePreviewObject(yield* purge.preview({ profile: "nobody", expiredForDays: 30 }))
        assert.deepStrictEqual(none, { orders: 0, profiles: [], left: 0, cutoff: "2026-12-16T08:00:00Z" })
      }))

    test("are deleted with their authorizations, and the trail has their number", () =>
      Effect.gen(function*() {
        const taken = yield* peopled
        const done = purgeObject(yield* purge.run(operator, { profile: "other", expiredForDays: 30 }))
        assert.deepStrictEqual(done, {
          orders: taken,
          authorizations: 2 * taken,
          left: 2,
          cutoff: "2026-12-16T08:00:00Z"
        })
        assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE profile = 'default'"), kinds.length)
        assert.strictEqual(
          yield* count("SELECT count(*) FROM orders WHERE profile = 'other'"),
          kinds.length - taken
        )
        // Revoked orders are deleted in a separate part.
        const row = (orders: number) => ({
          event: "orders_purged",
          actor_kind: "cli",
          actor_id: "tester",
          profile: "other",
          account_id: null,
          order_id: null,
          detail: { cutoff: done.cutoff, profile: "other", orders, authorizations: 2 * orders }
        })
        assert.deepStrictEqual(yield* trail, [row(taken - 1), row(1)])
        assert.include(eventsOf(records), "order_purge_completed")
        yield* purge.run(operator, { profile: "other", expiredForDays: 30 })
        assert.lengthOf(yield* trail, 2, "a run that removed nothing leaves no row")
        yield* purge.run(operator, { profile: undefined, expiredForDays: 30 })
        assert.deepStrictEqual((yield* trail).map(({ profile }) => profile), ["other", "other", "default", "default"])
      }))

    test("are deleted in parts of 500, each with a row, and the rest is kept if the purge is interrupted", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profileOf(config))
        const columns = "profile, account_id, status, identifiers, certificate, cert_not_after, created_at"
        const numbers = backend.dialect === "sqlite"
          ? "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) "
          : ""
        const ids = backend.dialect === "sqlite" ? "randomblob(16)" : "gen_random_uuid()"
        yield* sql(
          `INSERT INTO orders (id, ${columns}) ${numbers}
           SELECT ${ids}, 'default', ${literal(caller.accountId)}, 'valid', '[]', 'PEM', i, 1
           FROM ${backend.dialect === "sqlite" ? "n" : "generate_series(1, 1200) AS n(i)"}`
        )
        const wanted = { profile: undefined, expiredForDays: 1 }
        const heard: Array<number> = []
        const running = yield* Effect.forkChild(
          purge.run(
            operator,
            wanted,
            (gone) => Effect.andThen(Effect.sync(() => heard.push(gone)), gone < 1000 ? Effect.void : Effect.never)
          )
        )
        while (heard.length < 2) yield* Effect.yieldNow
        yield* Fiber.interrupt(running)
        assert.deepStrictEqual(heard, [500, 1000])
        assert.deepStrictEqual(yield* column("SELECT min(cert_not_after) FROM orders"), ["1001"])
        assert.deepStrictEqual((yield* trail).map(({ detail }) => detail["orders"]), [500, 500])
        assert.notInclude(eventsOf(records), "order_purge_completed")
        assert.deepInclude(yield* purge.run(operator, wanted), { orders: 200 })
      }))
  })
})
