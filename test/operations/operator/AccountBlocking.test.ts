import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { isOperatorError, operatorProblemOf } from "../../../src/domain/OperatorProblem.ts"
import { clocks } from "../../../src/engine/queue/Clocks.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { knownWords } from "../../../src/operations/OlderProcesses.ts"
import * as blocking from "../../../src/operations/operator/AccountBlocking.ts"
import * as accounts from "../../../src/operations/operator/AccountRecords.ts"
import { accountObject } from "../../../src/operations/operator/objects/AccountObjects.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, eventsOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The block of an account (docs/configure/policy.md, "Blocked accounts"). */

const config = configOf()
const [here, elsewhere] = [profileOf(config), profileOf(config, "other")]
const operator = { kind: "admin", id: "olga" } as const
const nobody = "01234567-89ab-7def-8123-456789abcdef"
const now = 1_000_000
const at = "1970-01-12T13:46:40Z"

describe.each(databases)("the block of an account on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: now })

  const trail = Effect.map(
    sql("SELECT event, actor_id, profile, account_id, detail FROM audit_log ORDER BY id"),
    (rows) => rows.map((row) => [row["event"], row["actor_id"], row["profile"], JSON.parse(String(row["detail"]))])
  )

  const messageOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.flip(effect), (error) => {
      const { code, message, status } = isOperatorError(error) ? operatorProblemOf(error) : assert.fail(String(error))
      return [status, code, message]
    })

  test("is shown with its time and its reason, and is in the trail and in the log", () =>
    Effect.gen(function*() {
      const { accountId } = yield* callerAt(elsewhere)
      records.length = 0
      const { account } = yield* blocking.block(operator, accountId, "a loop")
      assert.deepInclude(accountObject(account), { status: "valid", blockedAt: at, blockReason: "a loop" })
      yield* TestClock.adjust("1 hour")
      const after = accountObject((yield* blocking.unblock(operator, accountId)).account)
      assert.notProperty(after, "blockedAt")
      assert.notProperty(after, "blockReason")
      assert.deepStrictEqual(yield* trail, [
        ["account_blocked", "olga", "other", { reason: "a loop" }],
        ["account_unblocked", "olga", "other", { reason: "a loop", blocked_at: at }]
      ])
      assert.deepStrictEqual(eventsOf(records), ["admin_account_blocked", "admin_account_unblocked"])
    }))

  test("is set once by several operators at once, and removed once", () =>
    Effect.gen(function*() {
      const { accountId } = yield* callerAt(here)
      for (const act of [blocking.block(operator, accountId, "r"), blocking.unblock(operator, accountId)]) {
        const done = yield* Effect.all(Array.from({ length: 10 }, () => Effect.result(act)), {
          concurrency: "unbounded"
        })
        assert.strictEqual(done.filter(({ _tag }) => _tag === "Success").length, 1)
      }
      assert.lengthOf(yield* trail, 2)
    }))

  test("is refused for an unknown, a deactivated and a blocked account, and its removal for one without a block", () =>
    Effect.gen(function*() {
      const { accountId: id } = yield* callerAt(here)
      const [block, unblock] = [blocking.block(operator, id, "second"), blocking.unblock(operator, id)]
      for (const act of [blocking.block(operator, nobody, "r"), blocking.unblock(operator, nobody)]) {
        assert.deepStrictEqual(yield* messageOf(act), [404, "not_found", `There is no account ${nobody}.`])
      }
      assert.deepStrictEqual(yield* messageOf(unblock), [409, "account_state", `Account ${id} is not blocked.`])
      yield* blocking.block(operator, id, "first")
      const twice = [409, "account_state", `Account ${id} is blocked already, since ${at}.`]
      assert.deepStrictEqual(yield* messageOf(block), twice)
      assert.strictEqual((yield* accounts.detail(id)).account.blockReason, "first")
      yield* accounts.deactivate(operator, id)
      const ended = [409, "account_state", `Account ${id} is deactivated, and can order nothing.`]
      assert.deepStrictEqual(yield* messageOf(unblock), ended)
      assert.deepStrictEqual(yield* messageOf(block), ended)
      assert.deepStrictEqual((yield* trail).map(([event]) => event), ["account_blocked", "account_deactivated"])
      const { accountId: other } = yield* callerAt(here)
      yield* accounts.deactivate(operator, other)
      assert.strictEqual((yield* messageOf(blocking.block(operator, other, "r")))[1], "account_state")
    }))

  test("is a filter of the list, with the number of matches", () =>
    Effect.gen(function*() {
      const [one, two, three, other] = [
        yield* callerAt(here),
        yield* callerAt(here),
        yield* callerAt(here),
        yield* callerAt(elsewhere)
      ]
      for (const { accountId } of [one, two, other]) yield* blocking.block(operator, accountId, "r")
      yield* accounts.deactivate(operator, two.accountId)
      const found = (filters: Parameters<typeof accounts.list>[0]) =>
        Effect.map(accounts.list(filters, { limit: 50, offset: 0 }), ({ items, total }) => [
          items.map(({ id }) => id).toSorted(),
          total
        ])
      assert.deepStrictEqual(yield* found({ status: "blocked", profile: "default" }), [[one.accountId], 1])
      assert.deepStrictEqual(yield* found({ status: "blocked" }), [[one.accountId, other.accountId].toSorted(), 2])
      assert.deepStrictEqual(
        yield* found({ status: "valid", profile: "default" }),
        [[one.accountId, three.accountId].toSorted(), 2]
      )
    }))

  test("is not set while a process of an older version runs", () =>
    Effect.gen(function*() {
      const { accountId } = yield* callerAt(here)
      const { later } = yield* clocks
      const knows = "kinds scopes"
      yield* workers.present({
        owner: "elsewhere:1:b",
        roles: "acme",
        version: "1",
        startedAt: later,
        now: later,
        knows
      })
      const [status, , message] = yield* messageOf(blocking.block(operator, accountId, "r"))
      assert.strictEqual(status, 400)
      assert.include(message, "The process elsewhere:1:b runs an older version, which does not know blocks")
      assert.deepStrictEqual(yield* column("SELECT count(*) FROM accounts WHERE blocked_at IS NOT NULL"), ["0"])
      assert.deepStrictEqual(yield* trail, [])
    }))

  test("keeps a process of an older version from starting, until no valid account is blocked", () =>
    Effect.gen(function*() {
      const { accountId } = yield* callerAt(here)
      const { later } = yield* clocks
      const starting = (owner: string, knows: string) =>
        workers.present({ owner, roles: "acme", version: "1", startedAt: later, now: later, knows })
      yield* blocking.block(operator, accountId, "r")
      const refused = yield* Effect.flip(starting("elsewhere:1:b", "kinds scopes"))
      assert.include(refused.message, "an account is blocked, which this version of acme-svc does not know")
      yield* starting("here:1:c", knownWords.join(" "))
      yield* accounts.deactivate(operator, accountId)
      yield* starting("elsewhere:1:b", "kinds scopes")
    }))

  test("leaves what the account has ordered lately to be seen", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* callerAt(here), yield* callerAt(here)]
      const recent = Effect.map(accounts.detail(one.accountId), (found) => found.recent)
      assert.deepStrictEqual(yield* recent, { day: 0, week: 0, names: [] })
      yield* orderOf(one, "old.example")
      yield* TestClock.adjust("3 days")
      yield* orderOf(one, "old.example", "b.example")
      yield* TestClock.adjust("5 days")
      yield* orderOf(one, "c.example", "b.example")
      yield* orderOf(other, "c.example")
      assert.deepStrictEqual(yield* recent, {
        day: 1,
        week: 2,
        names: [
          { name: "b.example", orders: 2 },
          { name: "c.example", orders: 1 },
          { name: "old.example", orders: 1 }
        ]
      })
    }))
})
