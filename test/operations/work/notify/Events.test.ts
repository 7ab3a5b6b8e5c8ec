import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Account } from "../../../../src/domain/Account.ts"
import { ChallengeId, OrderId } from "../../../../src/domain/Id.ts"
import type { Payload } from "../../../../src/domain/Notification.ts"
import type { Database } from "../../../../src/engine/sql/Database.ts"
import { transaction } from "../../../../src/engine/sql/Database.ts"
import * as accounts from "../../../../src/operations/acme/Accounts.ts"
import { trigger } from "../../../../src/operations/acme/Challenges.ts"
import type { Caller } from "../../../../src/operations/Caller.ts"
import * as accountRecords from "../../../../src/operations/operator/AccountRecords.ts"
import * as eab from "../../../../src/operations/operator/Eab.ts"
import * as deletion from "../../../../src/operations/operator/EabDeletion.ts"
import * as orderRecords from "../../../../src/operations/operator/OrderRecords.ts"
import { Notifier, notify } from "../../../../src/services/notify/Notifier.ts"
import { unreachable } from "../../../../src/services/validation/Attempt.ts"
import * as authorizations from "../../../../src/store/AuthorizationRows.ts"
import { databases } from "../../../support/Databases.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  configOf,
  count,
  orderOf,
  profileOf,
  registerKey,
  sender,
  sql
} from "../../../support/Graph.ts"
import { issueTo, useOwnCa, work } from "../../../support/Issued.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/*
 * Tests that every event of a profile is queued once for every backend in the transaction of its change, whatever
 * causes the change (docs/contribute/decisions/notifications.md). operator/identity/NotifiedOperators.test.ts tests the
 * events of operators.
 */

const toml = `[notify]
enabled = ["email", "webhook", "custom"]
webhook_enabled = ["chat", "pager"]
custom_enabled = ["tell"]
[notify.email]
smtp_host = "localhost"
from = "a@example.org"
to = ["b@example.org"]
[notify.webhook.chat]
url = "https://chat.example/secret"
[notify.webhook.pager]
url = "https://pager.example/secret"
events = ["certificate_revoked"]
[notify.custom.tell]
script_path = "tell"
`
const config = configOf(toml)
const silent = configOf()
const cli = { kind: "cli", id: "tester" } as const
const admin = { kind: "admin", id: "jane", client: sender, surface: "api" } as const
const everybody = ["custom/tell", "email/-", "webhook/chat"]

interface Row {
  readonly scope: string
  readonly backend: string
  readonly entry: string
  readonly event: string
  readonly fields: Payload
}

const queued = Effect.map(
  column("SELECT payload FROM jobs WHERE kind = 'notify_deliver' ORDER BY dedup_key"),
  (rows) => rows.map((row) => JSON.parse(row) as Row)
)

/** Runs an act, and returns the receivers for which it queues the event and the members of the message. */
const told = <A, E, R>(event: string, act: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    yield* sql("DELETE FROM jobs WHERE kind = 'notify_deliver'")
    yield* act
    const rows = (yield* queued).filter((row) => row.event === event)
    const [first] = rows
    if (first === undefined) return { to: [], fields: undefined }
    for (const { fields, scope } of rows) {
      assert.deepStrictEqual(fields, first.fields, "one payload for all")
      assert.strictEqual(scope, "default")
    }
    // The accounts take turns at each receiver.
    const account = typeof first.fields["account_id"] === "string" ? first.fields["account_id"] : "-"
    assert.sameMembers(
      [...yield* column(`SELECT share FROM jobs WHERE payload LIKE '%"${event}"%'`)],
      rows.map(({ backend, entry, scope }) => `${scope}/${backend}/${entry}#${account}`)
    )
    const { at, delivery_id, hook, profile, ...members } = first.fields
    assert.deepStrictEqual([hook, profile], [event, "default"])
    assert.isNumber(at)
    assert.match(delivery_id, /^[0-9a-f-]{36}$/)
    return { to: rows.map(({ backend, entry }) => `${backend}/${entry}`).toSorted(), fields: members }
  })

describe.each(databases)("the events of accounts and certificates on $name", (backend) => {
  const { test } = useOwnCa(backend)
  const telling = <A, E, R>(body: Effect.Effect<A, E, R>) => Effect.provide(body, Notifier.layer(() => config))

  test("are queued for a new account, but not for an existing account that is found", () =>
    telling(Effect.gen(function*() {
      const key = accountKeyOf()
      const made = yield* told("account_created", registerKey(profileOf(config), key))
      const [id] = yield* column("SELECT id FROM accounts")
      assert.deepStrictEqual(made.to, everybody)
      assert.deepStrictEqual(Object.keys(made.fields ?? {}), ["account_id", "client_ip"])
      assert.strictEqual(made.fields?.["client_ip"], sender.ip)
      assert.lengthOf(String(made.fields?.["account_id"]), 36, id)
      assert.deepStrictEqual((yield* told("account_created", registerKey(profileOf(config), key))).to, [])
    })))

  test("are queued once for an account that is deactivated by its client, by an operator or with its credential", () =>
    telling(Effect.gen(function*() {
      type Made = { readonly caller: Caller; readonly account: Account }
      const ways: { readonly [way: string]: (made: Made) => Effect.Effect<void, unknown, Database | Notifier> } = {
        client: ({ account, caller }: Made) => Effect.asVoid(accounts.deactivate(caller, account)),
        api: ({ account: { id } }: Made) => Effect.asVoid(accountRecords.deactivate(admin, id)),
        cli: ({ account: { id } }: Made) => Effect.asVoid(accountRecords.deactivate(cli, id))
      }
      for (const [way, deactivate] of Object.entries(ways)) {
        const key = accountKeyOf()
        const caller = yield* callerAt(profileOf(config), key)
        const { account } = yield* registerKey(profileOf(config), key)
        const { fields, to } = yield* told("account_deactivated", deactivate({ account, caller }))
        assert.deepStrictEqual(to, everybody, way)
        assert.strictEqual(fields?.["account_id"], account.id, way)
        assert.strictEqual(fields?.["client_ip"], way === "cli" ? undefined : sender.ip, way)
        const again = yield* told("account_deactivated", Effect.ignore(deactivate({ account, caller })))
        assert.deepStrictEqual(again.to, [], way)
      }
      const { credential } = yield* eab.create(cli, { label: "l", profile: undefined })
      const { accountId } = yield* callerAt(profileOf(config))
      yield* sql(`UPDATE accounts SET eab_kid = (SELECT kid FROM eab_keys) WHERE status = 'valid'`)
      const gone = yield* told("account_deactivated", deletion.remove(cli, credential.kid, "deactivate"))
      assert.deepStrictEqual([gone.to, gone.fields?.["account_id"]], [everybody, accountId])
    })))

  test("are queued for a certificate and for its revocation by an operator, but not for a second revocation", () =>
    telling(Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      let serial = ""
      const issued = yield* told(
        "certificate_issued",
        Effect.tap(issueTo(caller, ["a.example", "b.example"]), (one) => Effect.sync(() => void (serial = one.serial)))
      )
      const { not_after, order_id, ...members } = issued.fields ?? {}
      assert.deepStrictEqual(issued.to, everybody)
      assert.isNumber(not_after)
      assert.deepStrictEqual(members, {
        account_id: caller.accountId,
        cert_serial: serial,
        identifiers: ["a.example", "b.example"],
        kind: "default",
        client_ip: sender.ip
      })
      const revoke = orderRecords.revoke(config, admin, String(order_id), 4)
      const revoked = yield* told("certificate_revoked", revoke)
      assert.deepStrictEqual(revoked.to, [...everybody, "webhook/pager"])
      assert.deepStrictEqual(revoked.fields, {
        order_id,
        account_id: caller.accountId,
        cert_serial: serial,
        identifiers: ["a.example", "b.example"],
        reason: 4,
        client_ip: sender.ip
      })
      assert.deepStrictEqual((yield* told("certificate_revoked", Effect.flip(revoke))).to, [])
    })))

  test("are not queued for a change that is rolled back, or if no receiver wants them", () =>
    Effect.gen(function*() {
      const occurrence = { event: "account_deactivated", scope: "default", fields: { account_id: "a" } } as const
      yield* Effect.ignore(telling(transaction(Effect.andThen(notify(occurrence), Effect.fail("undone")))))
      assert.deepStrictEqual(yield* queued, [])
      yield* Effect.provide(registerKey(profileOf(silent), accountKeyOf()), Notifier.layer(() => silent))
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'notify_deliver'"), 0)
      yield* telling(transaction(notify({ ...occurrence, scope: "unknown" })))
      yield* telling(transaction(notify({ ...occurrence, scope: "__admin__" })))
      assert.deepStrictEqual(yield* queued, [])
    }))
})

describe.each(databases)("a challenge that failed on $name", (backend) => {
  const { test } = useWorld(backend, { script: () => ({ validate: () => unreachable("connect_failed", "no route") }) })

  test("is reported with its identifier and type, but without the text of the reason", () =>
    Effect.provide(
      Effect.gen(function*() {
        const caller = yield* callerAt(profileOf(config))
        const order = yield* orderOf(caller, "a.example")
        const shown = backend.dialect === "sqlite" ? "lower(hex(id))" : "id::text"
        const [hex = ""] = yield* column(`SELECT ${shown} FROM challenges WHERE type = 'http-01'`)
        const parts = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(hex.replaceAll("-", ""))
        const id = ChallengeId(parts?.slice(1).join("-") ?? assert.fail(hex))
        const found = yield* authorizations.findForValidation(id, "default")
        const { fields, to } = yield* told(
          "challenge_failed",
          Effect.andThen(trigger(caller, id), work("challenge_validate"))
        )
        assert.deepStrictEqual(to, everybody)
        assert.deepStrictEqual(fields, {
          order_id: OrderId(order.id),
          account_id: caller.accountId,
          authz_id: found?.authzId,
          challenge_id: found?.id,
          challenge_type: "http-01",
          identifier: "a.example",
          error: "connection",
          client_ip: sender.ip
        })
      }),
      Notifier.layer(() => config)
    ))
})
