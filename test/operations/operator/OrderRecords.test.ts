import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { knownKinds } from "../../../src/domain/words/JobKind.ts"
import * as jobRecords from "../../../src/engine/queue/JobRecords.ts"
import { settledJob } from "../../../src/engine/queue/Waits.ts"
import * as crls from "../../../src/operations/operator/CrlRecords.ts"
import * as orders from "../../../src/operations/operator/OrderRecords.ts"
import * as crl from "../../../src/operations/work/crl/ListPublication.ts"
import { Signers } from "../../../src/services/signing/Signer.ts"
import { asleep, wakened } from "../../support/Asleep.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, count, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa, work } from "../../support/Issued.ts"
import { madeAt } from "../../support/LocalCa.ts"

const config = configOf()
const operator = { kind: "cli", id: "tester" } as const

describe.each(databases)("orders as operators see them on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

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

  test("are not revoked a second time, and the refusal is in the audit trail", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      yield* revoke(orderId, 4)
      const told = records.find(({ event }) => event === "admin_order_revoked")
      assert.deepInclude(told?.fields, { username: "tester", surface: "cli", order_id: orderId })
      assert.strictEqual((yield* Effect.flip(revoke(orderId, 1)))._tag, "AlreadyRevoked")
      assert.deepStrictEqual(yield* failures, [refusal("alreadyRevoked", "already_revoked")])
      assert.deepStrictEqual(yield* column("SELECT revocation_reason FROM orders"), ["4"])
    }))

  test("are revoked without a configuration by the list of their CA, or by the worker that runs the job if they have another signer", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const [listed, unlisted] = [yield* issueTo(caller, ["a.example"]), yield* issueTo(caller, ["b.example"])]
      assert.isTrue((yield* orders.revoke(undefined, operator, listed.orderId, 4)).isRevoked)
      yield* sql("DELETE FROM revocations")
      yield* sql("DELETE FROM crls")
      const { isRevoked, job } = yield* orders.revoke(undefined, operator, unlisted.orderId, 4)
      assert.isFalse(isRevoked)
      assert.strictEqual((yield* jobRecords.find(job))?.kind, "signer_revoke")
    }))

  test("are not revoked if no worker has seen the CA of their certificate, and the refusal is in the audit trail", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
      yield* sql("DELETE FROM crls")
      assert.strictEqual((yield* Effect.flip(revoke(orderId)))._tag, "IssuerUnknown")
      assert.deepStrictEqual(yield* failures, [refusal("serverInternal", "issuer_mismatch")])
      assert.strictEqual(yield* count("SELECT count(*) FROM revocations"), 0)
    }))

  test("of an account are found by their time, even if the clock was ahead when their ids were made", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE orders SET created_at = created_at - 86400")
      const { accountId, createdAt } = (yield* orders.detail(config, id)).order
      const idsOf = (filters: orders.ListFilters) =>
        Effect.map(
          orders.list({ accountId, ...filters }, { limit: 10, offset: 0 }),
          ({ items, total }) => [total, ...items.map((one) => one.id)]
        )
      for (const status of [undefined, "pending"] as const) {
        assert.deepStrictEqual(yield* idsOf({ status, until: createdAt + 1 }), [1, id])
        assert.deepStrictEqual(yield* idsOf({ status, since: createdAt }), [1, id])
        assert.deepStrictEqual(yield* idsOf({ status, until: createdAt }), [0])
        assert.deepStrictEqual(yield* idsOf({ status, since: createdAt + 1 }), [0])
      }
    }))

  test("can be filtered by their kind of certificate, together with every other filter", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE orders SET kind = 'mutual'")
      yield* orderOf(caller, "b.example")
      const { accountId, createdAt, profile } = (yield* orders.detail(config, id)).order
      const idsOf = (filters: orders.ListFilters) =>
        Effect.map(
          orders.list(filters, { limit: 10, offset: 0 }),
          ({ items, total }) => [total, ...items.map((one) => `${one.kind ?? "default"} ${one.identifiers[0]?.value}`)]
        )
      for (
        const filters of [
          {},
          { profile },
          { accountId },
          { status: "pending" },
          { profile, status: "pending" },
          { accountId, status: "pending" },
          { identifierSuffix: "example" },
          { identifierContains: "example" },
          { identifierContains: "example", accountId, since: createdAt },
          { since: createdAt },
          { until: createdAt + 1 }
        ] as const
      ) {
        const what = JSON.stringify(filters)
        assert.deepStrictEqual(yield* idsOf({ ...filters, kind: "mutual" }), [1, "mutual a.example"], what)
        assert.deepStrictEqual(yield* idsOf({ ...filters, kind: "default" }), [1, "default b.example"], what)
        assert.deepStrictEqual(yield* idsOf({ ...filters, kind: "gone" }), [0], what)
      }
      assert.deepStrictEqual(yield* idsOf({ identifier: "a.example", kind: "default" }), [0])
      assert.deepStrictEqual(yield* idsOf({ status: "revoked", kind: "mutual" }), [0])
    }))

  test("are not searched for a kind of certificate that no profile and no order has", () =>
    Effect.gen(function*() {
      const of = configOf("[certificates.kinds]\nserver.description = \"A\"\ndefault.description = \"B\"\n")
      assert.isUndefined(yield* orders.checkKind(of, undefined))
      for (const kind of ["default", "server"]) yield* orders.checkKind(of, kind)
      const refused = yield* Effect.flip(orders.checkKind(of, "gone"))
      assert.deepInclude(refused, { _tag: "UnknownWord", name: "kind", word: "gone", known: ["default", "server"] })
      // A reload has removed the kind of this order, so an operator must still be able to find the order.
      yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
      yield* sql("UPDATE orders SET kind = 'gone'")
      yield* orders.checkKind(of, "gone")
    }))

  test("can be filtered by their revocation, together with every other filter", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const [one, two] = [yield* issueTo(caller, ["a.example"]), yield* issueTo(caller, ["b.example"])]
      yield* orderOf(caller, "c.example")
      yield* revoke(one.orderId, 4)
      const { accountId, certSerial, profile } = (yield* orders.detail(config, one.orderId)).order
      const { createdAt } = (yield* orders.detail(config, two.orderId)).order
      const idsOf = (filters: orders.ListFilters) =>
        Effect.map(
          orders.list({ ...filters, status: "revoked" }, { limit: 10, offset: 0 }),
          ({ items, total }) => [total, ...items.map(({ id }) => id)]
        )
      for (
        const filters of [
          {},
          { profile },
          { accountId },
          { certSerial },
          { identifier: "a.example" },
          { identifierSuffix: "example" },
          { identifierContains: "a.e" },
          { since: createdAt },
          { profile, accountId, certSerial, identifier: "a.example", until: createdAt + 1 }
        ] satisfies ReadonlyArray<orders.ListFilters>
      ) {
        assert.deepStrictEqual(yield* idsOf(filters), [1, one.orderId], JSON.stringify(filters))
      }
      for (const filters of [{ profile: "other" }, { identifier: "b.example" }, { until: createdAt }]) {
        assert.deepStrictEqual(yield* idsOf(filters), [0], JSON.stringify(filters))
      }
    }))

  test("cannot be revoked without a certificate, and the audit trail gets no row", () =>
    Effect.gen(function*() {
      const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
      assert.strictEqual((yield* Effect.flip(revoke(id)))._tag, "OrderNotIssued")
      const elsewhere = orders.revoke({ profiles: [] }, operator, id, undefined)
      assert.strictEqual((yield* Effect.flip(elsewhere))._tag, "ProfileNotMounted", "with a certificate or without")
      assert.strictEqual((yield* Effect.flip(revoke("no-id")))._tag, "NoSuch")
      assert.deepStrictEqual(yield* failures, [])
    }))

  test("wait for the list that contains their revocation if the revocation is requested while another list is being signed", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const [one, two] = [yield* issueTo(caller, ["a.example"]), yield* issueTo(caller, ["b.example"])]
      const { job: first } = yield* revoke(one.orderId)
      yield* knownKinds.claim({
        now: madeAt,
        owner: "w",
        until: madeAt + 60,
        limit: 1,
        kinds: ["local_ca_crl_regenerate"]
      })
      const [issuer = { id: "" }] = (yield* Signers).crlIssuers
      const outcome = yield* crl.regenerate({ issuer: issuer.id })
      const { job: joined } = yield* revoke(two.orderId)
      assert.strictEqual(joined, first)
      // The job ends and leaves the rest of the work to a successor.
      yield* sql("UPDATE jobs SET status = 'done' WHERE status = 'running'")
      if (outcome._tag === "Done") yield* outcome.ifJoined ?? Effect.void
      const waiting = yield* Effect.forkChild(settledJob(joined, 30_000))
      yield* asleep
      yield* TestClock.adjust("1 second")
      assert.isUndefined(waiting.pollUnsafe())
      yield* work("local_ca_crl_regenerate")
      assert.strictEqual((yield* wakened(waiting))?.status, "done")
      assert.deepStrictEqual(
        (yield* crls.list(["default"])).map(({ entries, unlisted }) => [entries, unlisted]),
        [[2, 0]]
      )
    }))
})
