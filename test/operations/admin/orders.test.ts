import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as orders from "../../../src/operations/admin/orders.ts"
import type { Database } from "../../../src/subsystems/db/Database.ts"
import { databases } from "../../support/Databases.ts"
import type { World } from "../../support/Graph.ts"
import { callerAt, column, configOf, count, orderOf, profileOf, sql, useDatabase } from "../../support/Graph.ts"
import { issueTo, withOwnCa } from "../../support/Issued.ts"

const config = configOf()
const operator = { kind: "cli", id: "tester" } as const

describe.each(databases)("orders in the operator's hands on $name", (backend) => {
  const database = useDatabase(backend)
  const test = (name: string, body: () => Effect.Effect<void, unknown, Database | World>) =>
    it.effect(name, () => database.use(withOwnCa(name, body)))

  const revoke = (id: string, reason?: number) => orders.revoke(config, operator, id, reason)
  const failures = Effect.map(
    sql(
      "SELECT actor_kind, actor_id, outcome, reason, detail FROM audit_log WHERE event = 'certificate_revoke_failed'"
    ),
    (rows) =>
      rows.map(({ detail, ...rest }) => {
        const read: unknown = typeof detail === "string" ? JSON.parse(detail) : detail
        return { ...rest, detail: read }
      })
  )
  const refusal = (reason: string, cause: string) => ({
    actor_kind: "cli",
    actor_id: "tester",
    outcome: "failure",
    reason,
    detail: { cause }
  })

  test("a second revocation is refused, and the refusal is in the audit trail", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      yield* revoke(orderId, 4)
      assert.strictEqual((yield* Effect.flip(revoke(orderId, 1)))._tag, "WasRevoked")
      assert.deepStrictEqual(yield* failures, [refusal("alreadyRevoked", "already_revoked")])
      assert.deepStrictEqual(yield* column("SELECT revocation_reason FROM orders"), ["4"])
    }))

  test("the certificate of a CA that no worker has met is not revoked, and the refusal is in the audit trail", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      yield* sql("DELETE FROM crls")
      assert.strictEqual((yield* Effect.flip(revoke(orderId)))._tag, "IssuerUnknown")
      assert.deepStrictEqual(yield* failures, [refusal("serverInternal", "issuer_mismatch")])
      assert.strictEqual(yield* count("SELECT count(*) FROM revocations"), 0)
    }))

  test("what has no certificate cannot be revoked, and leaves nothing behind", () =>
    Effect.gen(function*() {
      const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
      assert.strictEqual((yield* Effect.flip(revoke(id)))._tag, "NotIssued")
      assert.strictEqual((yield* Effect.flip(revoke("no-id")))._tag, "NoSuchOrder")
      assert.deepStrictEqual(yield* failures, [])
    }))
})
