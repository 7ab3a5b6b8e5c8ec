import { Deferred, Effect, Exit, Fiber } from "effect"
import { assert, describe } from "vitest"
import { importSpki } from "../../../src/crypto/jose/Jwk.ts"
import { fingerprint } from "../../../src/crypto/jose/Jws.ts"
import { problemOf } from "../../../src/domain/Problem.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as accounts from "../../../src/operations/acme/Accounts.ts"
import * as stored from "../../../src/store/AccountRows.ts"
import * as burntKeys from "../../../src/store/revocation/BurntKeys.ts"
import { rsaSpki } from "../../crypto/Pki.ts"
import { databases } from "../../support/Databases.ts"
import { blindOnce } from "../../support/Faults.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  configOf,
  count,
  eventsOf,
  profileOf,
  sender,
  sql
} from "../../support/Graph.ts"
import { useWorld } from "../../support/UseWorld.ts"

const profile = profileOf(configOf())
const other = profileOf(configOf(), "other")
const terms = "https://terms.example/1"
const withTerms = profileOf(configOf(`[meta]\nterms_of_service = "${terms}"`))

const registration = (more: Partial<accounts.Registration> = {}): accounts.Registration => ({
  profile,
  key: accountKeyOf(),
  contact: [],
  termsOfServiceAgreed: false,
  onlyReturnExisting: false,
  binding: undefined,
  url: "",
  client: sender,
  ...more
})

describe.each(databases)("accounts on $name", (backend) => {
  const { database, records, test } = useWorld(backend)

  test("are not created for a weak or blocked key, but an account that already has such a key keeps it", () =>
    Effect.gen(function*() {
      const weak = importSpki(rsaSpki(3n * 2n ** 2050n + 3n, 65537n))
      const burnt = accountKeyOf()
      const known = accountKeyOf()
      const { account } = yield* accounts.register(registration({ key: known }))
      for (const { spki } of [burnt, known]) {
        yield* burntKeys.insert({ pubkey: spki, accountId: burntKeys.everybody, now: 1 })
      }
      const elsewhere = accountKeyOf()
      yield* burntKeys.insert({ pubkey: elsewhere.spki, accountId: account.id, now: 1 })
      for (const [key, said] of [[weak, "below 65536"], [burnt, "key compromise"]] as const) {
        const error = yield* Effect.flip(accounts.register(registration({ key })))
        assert.strictEqual(error._tag, "BadPublicKey")
        assert.include(JSON.stringify(error), said)
      }
      assert.strictEqual(eventsOf(records).filter((event) => event === "account_key_refused").length, 2)
      assert.strictEqual((yield* accounts.register(registration({ key: known }))).account.id, account.id)
      assert.isTrue((yield* accounts.register(registration({ key: elsewhere }))).created, "what one account said of it")
    }))

  test("are registered once for a key, and later requests find the same account unchanged", () =>
    Effect.gen(function*() {
      const key = accountKeyOf()
      const first = yield* accounts.register(registration({ key, contact: ["mailto:a@example.com"] }))
      const again = yield* accounts.register(registration({ key, contact: ["mailto:b@example.com"] }))
      assert.deepStrictEqual([first.created, again.created], [true, false])
      assert.strictEqual(again.account.id, first.account.id)
      assert.deepStrictEqual(again.account.contact, ["mailto:a@example.com"])
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 1)
      assert.deepStrictEqual(yield* column("SELECT created_ip FROM accounts"), ["192.0.2.1"])
      assert.deepStrictEqual(eventsOf(records), ["account_created", "account_found"])
    }))

  test("are created only once by 20 simultaneous registrations of one key, and the other requests find the account", () =>
    Effect.gen(function*() {
      const key = accountKeyOf()
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => accounts.register(registration({ key }))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(answers.filter(({ created }) => created).length, 1)
      assert.strictEqual(new Set(answers.map(({ account }) => account.id)).size, 1)
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 1)
    }))

  test("are returned to a request that loses the race to insert the account", () =>
    Effect.gen(function*() {
      const key = accountKeyOf()
      const racing = blindOnce(database.driver(), "FROM accounts WHERE profile")
      const winner = yield* accounts.register(registration({ key }))
      const loser = yield* Effect.provideService(accounts.register(registration({ key })), Database, racing.driver)
      assert.isTrue(racing.wasBlind())
      assert.deepStrictEqual([loser.created, loser.account.id], [false, winner.account.id])
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      const again = blindOnce(database.driver(), "FROM accounts WHERE profile")
      const refused = yield* Effect.flip(
        Effect.provideService(accounts.register(registration({ key })), Database, again.driver)
      )
      assert.strictEqual(refused._tag, "Unauthorized", "the status counts on this branch too")
    }))

  test("can have the same key at different profiles", () =>
    Effect.gen(function*() {
      const key = accountKeyOf()
      const here = yield* accounts.register(registration({ key }))
      const there = yield* accounts.register(registration({ key, profile: other }))
      assert.isTrue(there.created)
      assert.notStrictEqual(there.account.id, here.account.id)
    }))

  test("are found or reported as absent by onlyReturnExisting before terms and contacts are checked", () =>
    Effect.gen(function*() {
      const key = accountKeyOf()
      const only = { key, onlyReturnExisting: true, profile: withTerms, contact: ["tel:1"] }
      assert.strictEqual((yield* Effect.flip(accounts.register(registration(only))))._tag, "AccountDoesNotExist")
      const made = yield* accounts.register(registration({ key, profile: withTerms, termsOfServiceAgreed: true }))
      const found = yield* accounts.register(registration(only))
      assert.strictEqual(found.account.id, made.account.id)
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 1)
    }))

  test("must agree to the terms if there are any, and a later agreement is recorded", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(accounts.register(registration({ profile: withTerms })))
      assert.deepInclude(refused, { _tag: "UserActionRequired", terms })
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
      const agreed = yield* accounts.register(registration({ profile: withTerms, termsOfServiceAgreed: true }))
      assert.isTrue(agreed.account.termsOfServiceAgreed)
      const key = accountKeyOf()
      const before = yield* accounts.register(registration({ key }))
      assert.isUndefined(before.account.termsOfServiceAgreed)
      const after = yield* accounts.register(registration({ key, profile: withTerms, termsOfServiceAgreed: true }))
      assert.isTrue(after.account.termsOfServiceAgreed)
      assert.isTrue((yield* stored.find("default", after.account.id))?.termsOfServiceAgreed)
    }))

  test("have their contacts checked before anything is stored", () =>
    Effect.gen(function*() {
      const bad = ["a@b?cc=x", "a@b,c@d", "a@b%2Cc@d", "a@b%0D%0Acc: x", "a@b%", "%00@b", "a", "@b", "a@", ""]
      for (
        const [contact, tag] of [
          ["tel:1", "UnsupportedContact"],
          ...bad.map((address) => [`mailto:${address}`, "InvalidContact"] as const)
        ] as const
      ) {
        const refused = yield* Effect.flip(accounts.register(registration({ contact: [contact] })))
        assert.strictEqual(refused._tag, tag)
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
    }))

  test("are refused in every case if they are deactivated or revoked", () =>
    Effect.gen(function*() {
      for (const status of ["deactivated", "revoked"]) {
        const key = accountKeyOf()
        yield* accounts.register(registration({ key }))
        yield* sql(`UPDATE accounts SET status = '${status}'`)
        for (const onlyReturnExisting of [true, false]) {
          const refused = yield* Effect.flip(accounts.register(registration({ key, onlyReturnExisting })))
          assert.strictEqual(
            problemOf(refused as Exclude<typeof refused, { readonly _tag: "StorageFailed" }>).status,
            401
          )
        }
      }
      assert.include(eventsOf(records), "account_request_refused")
    }))

  test("have their contacts replaced, or cleared by an empty list, with an audit row that lists the added and removed contacts", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      const account = yield* Effect.flatMap(stored.find("default", caller.accountId), Effect.fromNullishOr)
      const updated = yield* accounts.updateContact(caller, account, ["mailto:b@example.com", "mailto:c@example.com"])
      assert.deepStrictEqual(updated.contact, ["mailto:b@example.com", "mailto:c@example.com"])
      assert.deepStrictEqual((yield* accounts.updateContact(caller, updated, [])).contact, [])
      const told = records.filter(({ event }) => event === "account_updated").map(({ fields }) => fields)
      const key_fp = fingerprint(caller.pubkey)
      assert.deepStrictEqual(told, Array.from({ length: 2 }, () => ({ account_id: caller.accountId, key_fp })))
      const rows = yield* sql(
        "SELECT event, actor_id, account_id, detail, client_ip, request_id FROM audit_log ORDER BY id"
      )
      assert.deepStrictEqual(rows.map(({ detail }) => detail), [
        `{"contacts_before":0,"contacts_after":2,"removed":[],"added":["mailto:b@example.com","mailto:c@example.com"]}`,
        `{"contacts_before":2,"contacts_after":0,"removed":["mailto:b@example.com","mailto:c@example.com"],"added":[]}`
      ])
      assert.deepInclude(rows[0] ?? {}, {
        event: "account_contact_updated",
        actor_id: caller.accountId,
        account_id: caller.accountId,
        client_ip: "192.0.2.1",
        request_id: "request-1"
      })
      const refused = yield* Effect.flip(accounts.updateContact(caller, account, ["tel:1"]))
      assert.strictEqual(refused._tag, "UnsupportedContact")
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 2)
    }))

  test("are deactivated once, with one audit row, and never change afterwards", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      const account = yield* Effect.flatMap(stored.find("default", caller.accountId), Effect.fromNullishOr)
      const exits = yield* Effect.all(
        Array.from({ length: 5 }, () => Effect.exit(accounts.deactivate(caller, account))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
      assert.strictEqual(
        (yield* Effect.flip(accounts.updateContact(caller, account, ["mailto:a@b.example"])))._tag,
        "Unauthorized"
      )
      assert.deepStrictEqual(yield* column("SELECT event FROM audit_log"), ["account_deactivated"])
      assert.deepStrictEqual(yield* column("SELECT status FROM accounts"), ["deactivated"])
    }))

  test("get an audit row for a stored change even if the client disconnects", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      const account = yield* Effect.flatMap(stored.find("default", caller.accountId), Effect.fromNullishOr)
      for (
        const operation of [
          accounts.updateContact(caller, account, ["mailto:new@example.org"]),
          accounts.deactivate(caller, account)
        ]
      ) {
        yield* sql("DELETE FROM audit_log")
        const driver = database.driver()
        const [written, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const slow: Driver = {
          ...driver,
          transact: (body) =>
            driver.transact((connection) =>
              Effect.tap(
                body(connection),
                () => Effect.andThen(Deferred.succeed(written, undefined), Deferred.await(go))
              )
            )
        }
        const running = yield* Effect.forkChild(Effect.provideService(Effect.asVoid(operation), Database, slow))
        yield* Deferred.await(written)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(running))
        yield* Effect.yieldNow
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(interrupting)
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 1)
      }
    }))
})
