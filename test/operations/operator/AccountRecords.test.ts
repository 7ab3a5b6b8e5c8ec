import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { sha256 } from "../../../src/crypto/Digest.ts"
import type { OrderId } from "../../../src/domain/Id.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as accounts from "../../../src/operations/operator/AccountRecords.ts"
import { accountDetailObject, accountObject } from "../../../src/operations/operator/objects/AccountObjects.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, count, idLiteral, orderWith, profileOf, sql } from "../../support/Graph.ts"
import { someoneWaits } from "../../support/Meanwhile.ts"
import { useWorld } from "../../support/UseWorld.ts"

const config = configOf()
const [here, elsewhere] = [profileOf(config), profileOf(config, "other")]
const operator = { kind: "admin", id: "olga" } as const
const nobody = "01234567-89ab-7def-8123-456789abcdef"
const now = 1_000_000
const page = { limit: 50, offset: 0 }

describe.each(databases)("accounts as operators see them on $name", (backend) => {
  const { database, test } = useWorld(backend, { startsAt: now })
  const isSqlite = backend.dialect === "sqlite"
  const literal = (id: string): string => idLiteral(backend.dialect, id)
  const set = (id: OrderId, what: string) => `UPDATE orders SET ${what} WHERE id = ${literal(id)}`
  const live = `status = 'valid', certificate = 'PEM', cert_not_after = ${now + 1000}`

  const trail = Effect.map(
    sql("SELECT event, outcome, actor_kind, actor_id, profile, account_id, detail FROM audit_log ORDER BY id"),
    (rows) =>
      rows.map(({ account_id, actor_id, actor_kind, detail, event, outcome, profile }) => {
        assert.deepStrictEqual([outcome, actor_kind, actor_id], ["success", "admin", "olga"])
        return [event, profile, account_id, JSON.parse(String(detail))] as const
      })
  )

  test("are listed newest first and by id within a second, and can be filtered by profile, status and credential", () =>
    Effect.gen(function*() {
      const ids: Array<string> = []
      for (const [at, profile] of [here, elsewhere, here, here].entries()) {
        ids.push((yield* callerAt(profile)).accountId)
        if (at === 1) yield* TestClock.adjust("1 second")
      }
      const [one = "", two = "", three = "", four = ""] = ids
      const kid = `${isSqlite ? "X'" : "'\\x"}${nobody.replaceAll("-", "")}'`
      yield* sql(`UPDATE accounts SET status = 'deactivated' WHERE id = ${literal(one)}`)
      yield* sql(`UPDATE accounts SET eab_kid = ${kid} WHERE id = ${literal(three)}`)
      const found = (filters: Parameters<typeof accounts.list>[0], wanted = page) =>
        Effect.map(accounts.list(filters, wanted), ({ items, total }) => [items.map(({ id }) => id), total])
      const late = [three, four].toSorted().toReversed()
      assert.deepStrictEqual(yield* found({}), [[...late, ...[one, two].toSorted().toReversed()], 4])
      assert.deepStrictEqual(yield* found({ profile: "default" }), [[...late, one], 3])
      assert.deepStrictEqual(yield* found({ profile: "default", status: "valid" }), [late, 2])
      assert.deepStrictEqual(yield* found({ status: "deactivated" }), [[one], 1])
      assert.deepStrictEqual(yield* found({ eabKid: nobody }), [[three], 1])
      assert.deepStrictEqual(yield* found({ eabKid: nobody, profile: "other" }), [[], 0])
      assert.deepStrictEqual(yield* found({}, { limit: 1, offset: 1 }), [[late[1]], 4])
    }))

  test("are shown with their key, their orders and the certificates that can still be used", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(here)
      yield* orderWith(caller, live)
      yield* orderWith(caller, "status = 'valid', certificate = 'PEM', cert_not_after = NULL")
      yield* orderWith(caller, `status = 'valid', certificate = 'PEM', cert_not_after = ${now - 1}`)
      const found = yield* accounts.detail(caller.accountId)
      assert.deepStrictEqual([found.orderCount, found.liveCertificates], [3, 2])
      assert.deepStrictEqual(accountDetailObject(found), {
        id: caller.accountId,
        profile: "default",
        status: "valid",
        termsOfServiceAgreed: true,
        pubkeyFingerprint: sha256(caller.pubkey),
        keyType: "ecdsa-p256",
        createdAt: "1970-01-12T13:46:40Z",
        createdIp: "192.0.2.1",
        lastSeenAt: "1970-01-12T13:46:40Z",
        lastSeenIp: "192.0.2.1",
        orderCount: 3,
        liveCertificates: 2,
        ordersInDay: 3,
        ordersInWeek: 3,
        topNames: [{ name: "a.example", orders: 3 }]
      })
      const { items } = yield* accounts.list({}, page)
      assert.notProperty(items.map(accountObject)[0], "orderCount")
      const listed = yield* accounts.ordersOf(caller.accountId, { limit: 2, offset: 0 })
      assert.deepStrictEqual([listed.items.length, listed.total], [2, 3])
    }))

  for (const [name, id] of [["an unknown id", nobody], ["an empty id", ""], ["a word", "nothing"]]) {
    test(`are reported as absent by every action that gets ${name}`, () =>
      Effect.gen(function*() {
        const given = id ?? ""
        assert.deepInclude(yield* Effect.flip(accounts.detail(given)), { _tag: "NoSuch", noun: "account", id: given })
        assert.strictEqual((yield* Effect.flip(accounts.ordersOf(given, page)))._tag, "NoSuch")
        assert.strictEqual((yield* Effect.flip(accounts.updateContact(operator, given, [])))._tag, "NoSuch")
        assert.strictEqual((yield* Effect.flip(accounts.deactivate(operator, given)))._tag, "NoSuch")
        assert.strictEqual((yield* Effect.flip(accounts.preview(given)))._tag, "NoSuch")
        assert.strictEqual((yield* Effect.flip(accounts.remove(operator, given)))._tag, "NoSuch")
        assert.isEmpty(yield* trail)
      }))
  }

  describe("contacts", () => {
    test("are replaced and cleared with an audit row for each change, and setting the same contacts changes nothing", () =>
      Effect.gen(function*() {
        const { accountId } = yield* callerAt(here)
        const two = ["mailto:a@example.org", "mailto:b@example.org"]
        assert.deepStrictEqual((yield* accounts.updateContact(operator, accountId, two)).account.contact, two)
        yield* accounts.updateContact(operator, accountId, two)
        assert.deepStrictEqual((yield* accounts.updateContact(operator, accountId, [])).account.contact, [])
        assert.deepStrictEqual(yield* trail, [
          ["account_contact_updated", "default", accountId, {
            contacts_before: 0,
            contacts_after: 2,
            removed: [],
            added: two
          }],
          ["account_contact_updated", "default", accountId, {
            contacts_before: 2,
            contacts_after: 0,
            removed: two,
            added: []
          }]
        ])
      }))

    test("are refused if a client could not have them, or if the account is not valid", () =>
      Effect.gen(function*() {
        const { accountId } = yield* callerAt(here)
        for (const contact of ["tel:+1", "mailto:", "mailto:a@b,c@d", "mailto:a@b?subject=x"]) {
          const error = yield* Effect.flip(accounts.updateContact(operator, accountId, [contact]))
          assert.strictEqual(error._tag, "BadRequest")
        }
        yield* accounts.deactivate(operator, accountId)
        const error = yield* Effect.flip(accounts.updateContact(operator, accountId, ["mailto:a@example.org"]))
        assert.deepInclude(error, {
          _tag: "BadRequest",
          detail: "The account is deactivated; contacts can be changed only while it is valid."
        })
        assert.deepStrictEqual((yield* trail).map(([event]) => event), ["account_deactivated"])
      }))
  })

  test("are deactivated permanently, with one row for 20 simultaneous requests", () =>
    Effect.gen(function*() {
      const { accountId } = yield* callerAt(elsewhere)
      const done = yield* Effect.all(Array.from({ length: 20 }, () => accounts.deactivate(operator, accountId)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([...new Set(done.map(({ account }) => account.status))], ["deactivated"])
      assert.deepStrictEqual(yield* trail, [["account_deactivated", "other", accountId, { via: "account" }]])
    }))

  describe("deletion", () => {
    test("removes the account's orders with their authorizations, and nothing of any other account", () =>
      Effect.gen(function*() {
        const [one, other] = [yield* callerAt(here), yield* callerAt(here)]
        yield* orderWith(one, "status = 'invalid'", "a.example", "b.example")
        yield* orderWith(one, `${live}, revoked_at = ${now}`)
        yield* orderWith(other, live)
        assert.deepInclude(yield* accounts.preview(one.accountId), { orderCount: 2, liveCertificates: 0 })
        assert.deepStrictEqual(yield* accounts.remove(operator, one.accountId), {
          deleted: { orders: 2, authorizations: 3 }
        })
        assert.deepStrictEqual(yield* column("SELECT count(*) FROM accounts"), ["1"])
        assert.deepStrictEqual(yield* column("SELECT count(*) FROM orders"), ["1"])
        assert.deepStrictEqual(yield* trail, [
          ["account_deleted", "default", one.accountId, { orders: 2, authorizations: 3, via: "account" }]
        ])
        assert.strictEqual((yield* Effect.flip(accounts.remove(operator, one.accountId)))._tag, "NoSuch")
      }))

    for (
      const [name, what] of [
        ["in force", live],
        ["of unknown expiry", "status = 'valid', certificate = 'PEM', cert_not_after = NULL"],
        ["of a negative expiry", "status = 'valid', certificate = 'PEM', cert_not_after = -1"],
        ["that ends this very second", `status = 'valid', certificate = 'PEM', cert_not_after = ${now}`]
      ] as const
    ) {
      test(`is refused for a certificate ${name}, both in the preview and in the deletion`, () =>
        Effect.gen(function*() {
          const { accountId, ...caller } = yield* callerAt(here)
          const id = yield* orderWith({ accountId, ...caller }, "status = 'processing'")
          yield* accounts.preview(accountId)
          yield* sql(set(id, what))
          const refusal = { _tag: "LiveCertificates", count: 1 } as const
          assert.deepInclude(yield* Effect.flip(accounts.preview(accountId)), refusal)
          assert.deepInclude(yield* Effect.flip(accounts.remove(operator, accountId)), refusal)
          assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 1)
          assert.isEmpty(yield* trail)
        }))
    }

    if (!isSqlite) {
      test("waits for an issuance in progress, and is refused if the issuance has produced a certificate", () =>
        Effect.gen(function*() {
          const caller = yield* callerAt(here)
          const id = yield* orderWith(caller, "status = 'processing'")
          const other: Driver = yield* database.another
          const begun = yield* Deferred.make<void>()
          const holding = yield* Effect.forkChild(other.exclusive((connection) =>
            Effect.gen(function*() {
              yield* other.begin(connection)
              yield* connection.executeRaw(`SELECT 1 FROM orders WHERE id = '${id}' FOR UPDATE`, [])
              yield* Deferred.succeed(begun, undefined)
              yield* someoneWaits(connection)
              yield* connection.executeRaw(set(id, live), [])
              yield* other.commit(connection)
            })
          ))
          yield* Deferred.await(begun)
          assert.deepInclude(yield* Effect.flip(accounts.remove(operator, caller.accountId)), {
            _tag: "LiveCertificates"
          })
          yield* Fiber.join(holding)
          assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 1)
        }))
    }

    test("fails if its row in the trail cannot be written", () =>
      Effect.gen(function*() {
        const { accountId } = yield* callerAt(here)
        yield* sql(
          isSqlite
            ? "CREATE TRIGGER planted BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'planted'); END"
            : "ALTER TABLE audit_log ADD CONSTRAINT planted CHECK (FALSE) NOT VALID"
        )
        yield* Effect.ensuring(
          Effect.gen(function*() {
            yield* Effect.flip(accounts.remove(operator, accountId))
            yield* Effect.flip(accounts.deactivate(operator, accountId))
            yield* Effect.flip(accounts.updateContact(operator, accountId, ["mailto:a@example.org"]))
          }),
          sql(isSqlite ? "DROP TRIGGER planted" : "ALTER TABLE audit_log DROP CONSTRAINT planted")
        )
        assert.deepStrictEqual(yield* column("SELECT status FROM accounts"), ["valid"])
        assert.deepStrictEqual(yield* column("SELECT contact FROM accounts"), ["[]"])
      }))
  })
})
