import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import type { AccountsMode } from "../../../src/domain/Audit.ts"
import type { CredentialScope } from "../../../src/domain/CredentialScope.ts"
import { noScope } from "../../../src/domain/CredentialScope.ts"
import type { OrderId } from "../../../src/domain/Id.ts"
import { transaction } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import * as deletion from "../../../src/operations/operator/EabDeletion.ts"
import * as eabKeys from "../../../src/store/eab/EabKeys.ts"
import { databases } from "../../support/Databases.ts"
import {
  callerAt,
  column,
  configOf,
  count,
  idLiteral,
  orderOf,
  orderWith,
  profileOf,
  sql
} from "../../support/Graph.ts"
import { someoneWaits } from "../../support/Meanwhile.ts"
import { useWorld } from "../../support/UseWorld.ts"

const config = configOf()
const [here, elsewhere] = [profileOf(config), profileOf(config, "other")]
const operator = { kind: "cli", id: "tester" } as const
const nobody = "01234567-89ab-7def-8123-456789abcdef"
const now = 1_000_000

describe.each(databases)("credentials for external account binding on $name", (backend) => {
  const { database, records, test } = useWorld(backend, { startsAt: now })
  const isSqlite = backend.dialect === "sqlite"

  const made = (label: string, profile?: string) =>
    Effect.map(eab.create(operator, { label, profile }), ({ credential }) => credential.kid)

  const literal = (id: string): string => idLiteral(backend.dialect, id)
  const kidLiteral = (kid: string): string => {
    const hex = kid.replaceAll("-", "")
    return isSqlite ? `X'${hex}'` : `'\\x${hex}'`
  }

  /** Makes a new account that this credential has bound. */
  const boundBy = (kid: string, profile = here) =>
    Effect.tap(
      callerAt(profile),
      ({ accountId }) => sql(`UPDATE accounts SET eab_kid = ${kidLiteral(kid)} WHERE id = ${literal(accountId)}`)
    )

  const issued = "status = 'valid', certificate = 'PEM'"
  const live = `${issued}, cert_not_after = ${now + 1000}`
  const updateOf = (id: OrderId, set: string): string => `UPDATE orders SET ${set} WHERE id = ${literal(id)}`

  const rowsOf = Effect.map(
    sql("SELECT * FROM audit_log ORDER BY id"),
    (rows) =>
      rows.map(({ account_id, actor_id, actor_kind, created_at, detail, event, outcome, profile, ...rest }) => {
        assert.strictEqual(Number(created_at), now)
        assert.deepStrictEqual(
          { ...rest, id: 0 },
          {
            id: 0,
            order_id: null,
            cert_serial: null,
            identifiers: "[]",
            client_ip: null,
            client_ptr: null,
            user_agent: null,
            request_id: null,
            reason: null
          },
          "nothing is known of an operator but the name"
        )
        assert.deepStrictEqual([outcome, actor_kind, actor_id], ["success", "cli", "tester"])
        return [event, profile, account_id, JSON.parse(String(detail))] as const
      })
  )
  const forgetRows = Effect.suspend(() => isSqlite ? sql("DELETE FROM audit_log") : sql("TRUNCATE audit_log"))

  /** Everything that a deletion may change. */
  const everything = Effect.all([
    sql("SELECT * FROM eab_keys ORDER BY kid"),
    sql("SELECT * FROM accounts ORDER BY id"),
    sql("SELECT * FROM orders ORDER BY id"),
    sql("SELECT * FROM authorizations ORDER BY id"),
    sql("SELECT * FROM audit_log ORDER BY id")
  ])

  describe("creating a credential", () => {
    test("makes a kid and a secret of 32 random octets, which neither the trail nor the log contains", () =>
      Effect.gen(function*() {
        const one = yield* eab.create(operator, { label: "printers", profile: undefined })
        const two = yield* eab.create(operator, { label: "printers", profile: "other" })
        const { kid } = one.credential
        assert.deepStrictEqual(one.credential, {
          kid,
          label: "printers",
          profile: undefined,
          status: "active",
          createdAt: now,
          accounts: 0,
          externalKid: undefined,
          ...noScope
        })
        assert.match(kid, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        assert.deepStrictEqual([one.secret.length, two.secret.length], [32, 32])
        assert.notDeepEqual(one.secret, two.secret)
        assert.notStrictEqual(kid, two.credential.kid)
        assert.deepStrictEqual(yield* eab.find(kid), one.credential, "what is found later is the same, and no secret")
        assert.deepStrictEqual(yield* rowsOf, [
          ["eab_created", null, null, { kid, label: "printers" }],
          ["eab_created", "other", null, { kid: two.credential.kid, label: "printers", scope: "other" }]
        ])
        const told = JSON.stringify([records, yield* sql("SELECT * FROM audit_log"), yield* eab.list(all)])
        for (const { secret } of [one, two]) {
          for (const form of ["hex", "base64", "base64url"] as const) {
            assert.notInclude(told, Buffer.from(secret).toString(form))
          }
        }
      }))

    test("makes no secret that a client would read as an option of a command", () =>
      Effect.gen(function*() {
        const entropy = yield* Entropy
        const drawn = [0xf8, 0xfb, 0xfc].map((first) => new Uint8Array(32).fill(first))
        const given = { ...entropy, bytes: () => Effect.sync(() => drawn.shift() ?? new Uint8Array(32)) }
        const { secret } = yield* Effect.provideService(
          eab.create(operator, { label: "printers", profile: undefined }),
          Entropy,
          given
        )
        assert.strictEqual(secret[0], 0xfc)
        assert.strictEqual(Buffer.from([0xf8, 0xfb]).toString("base64url")[0], "-")
      }))

    test("is refused if its end has passed", () =>
      Effect.gen(function*() {
        const ending = (expiresAt: number) =>
          eab.create(operator, { label: "printers", profile: undefined, scope: { ...noScope, expiresAt } })
        assert.deepInclude(yield* Effect.flip(ending(now)), {
          _tag: "BadRequest",
          member: "expiresAt",
          detail: "takes a time in the future; 1970-01-12T13:46:40Z has passed."
        })
        assert.strictEqual((yield* eab.list(all)).total, 0)
        assert.strictEqual((yield* ending(now + 1)).credential.expiresAt, now + 1)
      }))

    test("makes no credential if its audit row cannot be written", () =>
      Effect.gen(function*() {
        yield* broken("INSERT", "audit_log")
        yield* Effect.ensuring(Effect.flip(made("printers")), mend)
        assert.strictEqual((yield* eab.list(all)).total, 0)
      }))
  })

  const all = { status: undefined, limit: 50, offset: 0 }

  describe("listing and finding credentials", () => {
    test("returns pages with the total, newest first and by kid within a second", () =>
      Effect.gen(function*() {
        const kids: Array<string> = []
        for (let at = 0; at < 5; at++) {
          kids.unshift(yield* made(`number ${at}`))
          if (at === 2) yield* TestClock.adjust("1 second")
        }
        const [, , , second = "", first = ""] = kids
        // The order of creation and the order of kids differ for one credential.
        yield* sql(`UPDATE eab_keys SET created_at = ${now + 1} WHERE kid = ${kidLiteral(first)}`)
        const expected = [kids[0], kids[1], first, kids[2], second]
        const page = (limit: number, offset: number) =>
          Effect.map(eab.list({ ...all, limit, offset }), ({ items, total }) => [items.map(({ kid }) => kid), total])
        assert.deepStrictEqual(yield* page(50, 0), [expected, 5])
        assert.deepStrictEqual(yield* page(2, 0), [expected.slice(0, 2), 5])
        assert.deepStrictEqual(yield* page(2, 4), [expected.slice(4), 5])
        assert.deepStrictEqual(yield* page(2, 5), [[], 5])
      }))

    test("returns only the credentials of a given status, with their number", () =>
      Effect.gen(function*() {
        const kids = [yield* made("a"), yield* made("b"), yield* made("c")] as const
        yield* eab.revoke(operator, kids[1])
        const listed = (status: "active" | "revoked") =>
          Effect.map(eab.list({ ...all, status }), ({ items, total }) => [items.map(({ label }) => label), total])
        assert.deepStrictEqual(yield* listed("active"), [["c", "a"], 2])
        assert.deepStrictEqual(yield* listed("revoked"), [["b"], 1])
        assert.deepStrictEqual((yield* eab.list({ ...all, limit: 1, status: "active" })).total, 2)
      }))

    test("returns an empty page if there are no credentials", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* eab.list(all), { items: [], total: 0 })
      }))

    test("counts the accounts that each credential has bound, at every profile and with every status", () =>
      Effect.gen(function*() {
        const [kid, other] = [yield* made("a"), yield* made("b")]
        yield* boundBy(kid)
        yield* boundBy(kid, elsewhere)
        yield* boundBy(kid)
        yield* callerAt(here)
        yield* sql("UPDATE accounts SET status = 'deactivated' WHERE profile = 'other'")
        assert.strictEqual((yield* eab.find(kid)).accounts, 3)
        assert.deepStrictEqual((yield* eab.list(all)).items.map(({ accounts, kid }) => [kid, accounts]), [
          [other, 0],
          [kid, 3]
        ])
      }))

    const spellings: ReadonlyArray<readonly [string, (kid: string) => string]> = [
      ["an unknown kid", () => nobody],
      ["an empty kid", () => ""],
      ["a word", () => "nothing"],
      ["the kid in upper case", (kid) => kid.toUpperCase()],
      ["the kid without hyphens", (kid) => kid.replaceAll("-", "")],
      ["the kid in braces", (kid) => `{${kid}}`],
      ["the kid with more characters after it", (kid) => `${kid}00`],
      ["the kid with U+0000 after it", (kid) => `${kid}\u0000`]
    ]
    for (const [name, spelled] of spellings) {
      test(`reports that there is no credential for ${name}`, () =>
        Effect.gen(function*() {
          const kid = spelled(yield* made("a"))
          yield* forgetRows
          for (
            const doing of [
              Effect.asVoid(eab.find(kid)),
              Effect.asVoid(eab.revoke(operator, kid)),
              Effect.asVoid(deletion.preview(kid, "keep")),
              Effect.asVoid(deletion.remove(operator, kid, "delete"))
            ]
          ) {
            const error = yield* Effect.flip(doing)
            assert.deepInclude(error, { _tag: "NoSuch", noun: "credential", id: kid })
          }
          assert.isEmpty(yield* rowsOf)
        }))
    }
  })

  describe("changing a credential", () => {
    test("is refused if the new end has passed, but not because the present end has passed", () =>
      Effect.gen(function*() {
        const kid = yield* made("printers")
        const change = (changes: Partial<CredentialScope>) => eab.setScope(operator, kid, { changes, cleared: [] })
        yield* change({ expiresAt: now + 1 })
        yield* TestClock.adjust("2 seconds")
        const ended = yield* change({ expiresAt: now + 1, maxAccounts: 1 })
        assert.deepInclude(ended, { expiresAt: now + 1, maxAccounts: 1 })
        assert.deepInclude(yield* Effect.flip(change({ expiresAt: now + 2 })), {
          _tag: "BadRequest",
          member: "expiresAt",
          detail: "takes a time in the future; 1970-01-12T13:46:42Z has passed."
        })
        assert.deepStrictEqual(yield* eab.find(kid), ended)
      }))
  })

  describe("revoking a credential", () => {
    test("changes nothing and leaves no further row the second time", () =>
      Effect.gen(function*() {
        const kid = yield* made("printers", "other")
        yield* boundBy(kid, elsewhere)
        yield* forgetRows
        const first = yield* eab.revoke(operator, kid)
        assert.deepInclude(first, { kid, status: "revoked", accounts: 1, label: "printers", profile: "other" })
        assert.deepStrictEqual(yield* eab.revoke(operator, kid), first)
        assert.deepStrictEqual(yield* rowsOf, [["eab_revoked", "other", null, {
          kid,
          label: "printers",
          scope: "other"
        }]])
        assert.deepStrictEqual(yield* column("SELECT status FROM accounts"), ["valid"])
      }))

    test("leaves one row for 20 requests at once", () =>
      Effect.gen(function*() {
        const kid = yield* made("printers")
        yield* forgetRows
        const revoked = yield* Effect.all(Array.from({ length: 20 }, () => eab.revoke(operator, kid)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual([...new Set(revoked.map(({ status }) => status))], ["revoked"])
        assert.strictEqual((yield* rowsOf).length, 1)
      }))

    test("works for a credential without a label, which older data may have", () =>
      Effect.gen(function*() {
        const kid = yield* made("a")
        yield* sql("UPDATE eab_keys SET label = NULL")
        yield* forgetRows
        yield* eab.revoke(operator, kid)
        yield* deletion.remove(operator, kid, "keep")
        assert.deepStrictEqual((yield* rowsOf).map(([event, , , detail]) => [event, detail]), [
          ["eab_revoked", { kid }],
          ["eab_deleted", { kid, accounts: "keep", kept: 0, deactivated: 0, deleted: 0 }]
        ])
      }))
  })

  describe("deleting a credential", () => {
    /**
     * Makes a credential with two valid accounts and a deactivated one, and another credential with one account. The
     * first account has two orders.
     */
    const peopled = Effect.gen(function*() {
      const [kid, other] = [yield* made("printers"), yield* made("other")]
      const [one, two, gone] = [yield* boundBy(kid), yield* boundBy(kid, elsewhere), yield* boundBy(kid)]
      const stranger = yield* boundBy(other)
      yield* orderOf(one, "a.example", "b.example")
      yield* orderOf(one, "c.example")
      yield* orderOf(stranger, "d.example")
      yield* sql(`UPDATE accounts SET status = 'deactivated' WHERE id = ${literal(gone.accountId)}`)
      yield* forgetRows
      return { kid, one, two, gone, stranger }
    })
    const left = Effect.all({
      keys: column("SELECT label FROM eab_keys"),
      statuses: column("SELECT status FROM accounts ORDER BY id"),
      orders: count("SELECT count(*) FROM orders"),
      authorizations: count("SELECT count(*) FROM authorizations")
    })

    test("keeps the accounts unchanged if requested", () =>
      Effect.gen(function*() {
        const { kid } = yield* peopled
        assert.deepInclude(yield* deletion.preview(kid, "keep"), { accounts: 3, orders: 2 })
        assert.deepStrictEqual(yield* deletion.remove(operator, kid, "keep"), {
          deleted: { accounts: 0, orders: 0 },
          deactivatedAccounts: 0,
          keptAccounts: 3
        })
        assert.deepStrictEqual(yield* left, {
          keys: ["other"],
          statuses: ["valid", "valid", "deactivated", "valid"],
          orders: 3,
          authorizations: 4
        })
        assert.strictEqual(yield* count(`SELECT count(*) FROM accounts WHERE eab_kid = ${kidLiteral(kid)}`), 3)
        assert.deepStrictEqual(yield* rowsOf, [
          ["eab_deleted", null, null, {
            kid,
            label: "printers",
            accounts: "keep",
            kept: 3,
            deactivated: 0,
            deleted: 0
          }]
        ])
      }))

    test("deactivates each valid account if requested, with one row for each", () =>
      Effect.gen(function*() {
        const { kid, one, two } = yield* peopled
        assert.deepInclude(yield* deletion.preview(kid, "deactivate"), { accounts: 3, orders: 2 })
        assert.deepStrictEqual(yield* deletion.remove(operator, kid, "deactivate"), {
          deleted: { accounts: 0, orders: 0 },
          deactivatedAccounts: 2,
          keptAccounts: 1
        })
        assert.deepStrictEqual(yield* left, {
          keys: ["other"],
          statuses: ["deactivated", "deactivated", "deactivated", "valid"],
          orders: 3,
          authorizations: 4
        })
        const [head, ...each] = yield* rowsOf
        assert.deepStrictEqual(head, [
          "eab_deleted",
          null,
          null,
          { kid, label: "printers", accounts: "deactivate", kept: 1, deactivated: 2, deleted: 0 }
        ])
        assert.sameDeepMembers(each, [
          ["account_deactivated", "default", one.accountId, { via: "eab_delete" }],
          ["account_deactivated", "other", two.accountId, { via: "eab_delete" }]
        ])
      }))

    test("deletes the accounts with their orders if requested, with one row for each account", () =>
      Effect.gen(function*() {
        const { gone, kid, one, two } = yield* peopled
        assert.deepInclude(yield* deletion.preview(kid, "delete"), { accounts: 3, orders: 2 })
        assert.deepStrictEqual(yield* deletion.remove(operator, kid, "delete"), {
          deleted: { accounts: 3, orders: 2 },
          deactivatedAccounts: 0,
          keptAccounts: 0
        })
        assert.deepStrictEqual(yield* left, { keys: ["other"], statuses: ["valid"], orders: 1, authorizations: 1 })
        const [head, ...each] = yield* rowsOf
        assert.deepStrictEqual(head, [
          "eab_deleted",
          null,
          null,
          { kid, label: "printers", accounts: "delete", kept: 0, deactivated: 0, deleted: 3 }
        ])
        assert.sameDeepMembers(each, [
          ["account_deleted", "default", one.accountId, { orders: 2, authorizations: 3, via: "eab_delete" }],
          ["account_deleted", "other", two.accountId, { orders: 0, authorizations: 0, via: "eab_delete" }],
          ["account_deleted", "default", gone.accountId, { orders: 0, authorizations: 0, via: "eab_delete" }]
        ])
      }))

    test("changes nothing as long as it is only previewed", () =>
      Effect.gen(function*() {
        const { kid } = yield* peopled
        const before = yield* everything
        for (const mode of ["keep", "deactivate", "delete"] as const) yield* deletion.preview(kid, mode)
        assert.deepStrictEqual(yield* everything, before)
      }))

    test("succeeds for one of several simultaneous requests, and the others find no credential", () =>
      Effect.gen(function*() {
        const { kid } = yield* peopled
        const ends = yield* Effect.all([1, 2, 3].map(() => Effect.result(deletion.remove(operator, kid, "delete"))), {
          concurrency: "unbounded"
        })
        const tags = ends.map((end) => end._tag === "Success" ? "done" : end.failure._tag)
        assert.sameMembers(tags, ["done", "NoSuch", "NoSuch"])
        assert.strictEqual((yield* rowsOf).length, 4)
      }))

    for (const mode of ["deactivate", "delete"] as const) {
      test(`changes nothing if the credential cannot be deleted (${mode})`, () =>
        Effect.gen(function*() {
          const { kid } = yield* peopled
          const before = yield* everything
          yield* broken("DELETE", "eab_keys")
          const error = yield* Effect.ensuring(Effect.flip(deletion.remove(operator, kid, mode)), mend)
          assert.strictEqual(error._tag, "StorageFailed")
          assert.deepStrictEqual(yield* everything, before)
        }))
    }

    interface Held {
      readonly name: string
      readonly set: string
      readonly live: boolean
    }
    const held: ReadonlyArray<Held> = [
      { name: "a certificate in force", set: live, live: true },
      { name: "a certificate that expires in this second", set: `${issued}, cert_not_after = ${now}`, live: true },
      { name: "a certificate of unknown expiry", set: `${issued}, cert_not_after = NULL`, live: true },
      { name: "a certificate of a negative expiry", set: `${issued}, cert_not_after = -1`, live: true },
      { name: "a certificate that expired", set: `${issued}, cert_not_after = ${now - 1}`, live: false },
      { name: "a certificate that was revoked", set: `${live}, revoked_at = ${now - 5}`, live: false },
      {
        name: "a certificate of unknown expiry that was revoked",
        set: `${issued}, cert_not_after = NULL, revoked_at = ${now - 5}`,
        live: false
      },
      { name: "no certificate, but an issuance in progress", set: "status = 'processing'", live: false },
      { name: "no certificate after a failure", set: "status = 'invalid'", live: false }
    ]
    for (const { live, name, set } of held) {
      test(`${live ? "keeps the accounts" : "deletes the accounts"} depending on the certificate of one account (${name})`, () =>
        Effect.gen(function*() {
          const { kid, two } = yield* peopled
          yield* orderWith(two, set)
          const before = yield* everything
          const ends = [
            yield* Effect.result(deletion.preview(kid, "delete")),
            yield* Effect.result(deletion.remove(operator, kid, "delete"))
          ]
          for (const end of ends) {
            if (live) {
              assert.deepInclude(end._tag === "Failure" ? end.failure : {}, { _tag: "LiveCertificates", count: 1 })
            } else assert.strictEqual(end._tag, "Success")
          }
          if (live) assert.deepStrictEqual(yield* everything, before)
          else assert.strictEqual((yield* left).orders, 1)
        }))
    }

    test("succeeds if the accounts are kept or only deactivated, even if an account has a valid certificate", () =>
      Effect.gen(function*() {
        for (const mode of ["keep", "deactivate"] as const) {
          const kid = yield* made(mode)
          yield* orderWith(yield* boundBy(kid), live)
          yield* deletion.preview(kid, mode)
          yield* deletion.remove(operator, kid, mode)
          assert.strictEqual(yield* count("SELECT count(*) FROM eab_keys"), 0)
        }
        assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 2)
      }))

    test("ignores a valid certificate of an account of another credential", () =>
      Effect.gen(function*() {
        const { kid, stranger } = yield* peopled
        yield* orderWith(stranger, live)
        assert.strictEqual((yield* deletion.remove(operator, kid, "delete")).deleted.accounts, 3)
      }))

    test("is refused and changes nothing if a certificate is issued after the preview", () =>
      Effect.gen(function*() {
        const { kid, two } = yield* peopled
        const id = yield* orderWith(two, "status = 'processing'")
        yield* deletion.preview(kid, "delete")
        yield* sql(updateOf(id, live))
        const before = yield* everything
        const error = yield* Effect.flip(deletion.remove(operator, kid, "delete"))
        assert.deepInclude(error, { _tag: "LiveCertificates", count: 1 })
        assert.deepStrictEqual(yield* everything, before)
      }))

    if (!isSqlite) {
      /**
       * Deletes the credential while another connection has a transaction open that begins with `opens`. `ends` is the
       * last statement of that transaction.
       */
      const removeAgainst = Effect.fnUntraced(function*(
        { ends, kid, mode, opens }: {
          readonly kid: string
          readonly mode: AccountsMode
          readonly opens: string
          readonly ends: string
        }
      ) {
        const other: Driver = yield* database.another
        const begun = yield* Deferred.make<void>()
        const holding = yield* Effect.forkChild(other.exclusive((connection) =>
          Effect.gen(function*() {
            yield* other.begin(connection)
            yield* connection.executeRaw(opens, [])
            yield* Deferred.succeed(begun, undefined)
            // Waits until the deletion waits for the rows that are locked here.
            yield* someoneWaits(connection)
            yield* connection.executeRaw(ends, [])
            yield* other.commit(connection)
          })
        ))
        yield* Deferred.await(begun)
        const end = yield* Effect.result(deletion.remove(operator, kid, mode))
        yield* Fiber.join(holding)
        return end
      })
      const stolen = (id: OrderId) => `SELECT 1 FROM orders WHERE id = ${literal(id)} FOR UPDATE`

      for (const status of ["processing", "ready", "pending"]) {
        test(`is refused if the issuance of an order that is ${status} commits meanwhile, and deletes nothing`, () =>
          Effect.gen(function*() {
            const { kid, two } = yield* peopled
            const id = yield* orderWith(two, `status = '${status}'`)
            const end = yield* removeAgainst({ kid, mode: "delete", opens: stolen(id), ends: updateOf(id, live) })
            assert.deepInclude(end._tag === "Failure" ? end.failure : {}, { _tag: "LiveCertificates", count: 1 })
            assert.deepStrictEqual(yield* left, {
              keys: ["printers", "other"],
              statuses: ["valid", "valid", "deactivated", "valid"],
              orders: 4,
              authorizations: 5
            })
            assert.isEmpty(yield* rowsOf)
          }))
      }

      test("deletes the account with the order if an issuance fails meanwhile", () =>
        Effect.gen(function*() {
          const { kid, two } = yield* peopled
          const id = yield* orderWith(two, "status = 'processing'")
          const ends = updateOf(id, "status = 'invalid'")
          const end = yield* removeAgainst({ kid, mode: "delete", opens: stolen(id), ends })
          assert.strictEqual(end._tag, "Success")
          assert.strictEqual((yield* left).orders, 1)
        }))

      test("also deletes and counts the new order of an account that orders meanwhile", () =>
        Effect.gen(function*() {
          const { kid, two } = yield* peopled
          const id = nobody
          const end = yield* removeAgainst({
            kid,
            mode: "delete",
            opens: `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at)
                    VALUES ('${id}', 'other', '${two.accountId}', 'pending', '[]', ${now})`,
            ends: "SELECT 1"
          })
          assert.deepInclude(end._tag === "Success" ? end.success.deleted : {}, { accounts: 3, orders: 3 })
          assert.strictEqual((yield* left).orders, 1)
        }))

      test("waits for an account that is being bound, and treats this account like the others", () =>
        Effect.gen(function*() {
          const { kid } = yield* peopled
          const end = yield* removeAgainst({
            kid,
            mode: "deactivate",
            opens: `SELECT pg_advisory_xact_lock_shared(hashtextextended(encode(${kidLiteral(kid)}, 'hex'), 0))`,
            ends: `INSERT INTO accounts (id, profile, pubkey, status, eab_kid, created_at)
                   VALUES ('${nobody}', 'default', '\\x00', 'valid', ${kidLiteral(kid)}, ${now})`
          })
          assert.deepInclude(end._tag === "Success" ? end.success : {}, { deactivatedAccounts: 3, keptAccounts: 1 })
          assert.deepStrictEqual(yield* column(`SELECT status FROM accounts WHERE id = '${nobody}'`), ["deactivated"])
        }))

      test("lets an account that is bound meanwhile wait, and then refuses the account", () =>
        Effect.gen(function*() {
          const kid = yield* made("printers")
          const other: Driver = yield* database.another
          const isHeld = yield* other.exclusive((connection) =>
            Effect.gen(function*() {
              yield* other.begin(connection)
              const hold = `SELECT pg_advisory_xact_lock(hashtextextended(encode(${kidLiteral(kid)}, 'hex'), 0))`
              yield* connection.executeRaw(hold, [])
              yield* connection.executeRaw(`DELETE FROM eab_keys WHERE kid = ${kidLiteral(kid)}`, [])
              const binding = yield* Effect.forkChild(transaction(eabKeys.holdActive(kid)))
              yield* Effect.raceFirst(someoneWaits(connection), Fiber.await(binding))
              yield* other.commit(connection)
              return yield* Fiber.join(binding)
            })
          )
          assert.isFalse(isHeld)
        }))

      for (const mode of ["deactivate", "delete"] as const) {
        test(`neither changes nor counts an account that is bound meanwhile (${mode})`, () =>
          Effect.gen(function*() {
            const { kid } = yield* peopled
            // With this lock, other transactions can lock rows of the table, but cannot change them.
            const end = yield* removeAgainst({
              kid,
              mode,
              opens: "LOCK TABLE accounts IN SHARE MODE",
              ends: `INSERT INTO accounts (id, profile, pubkey, status, eab_kid, created_at)
                     VALUES ('${nobody}', 'default', '\\x00', 'valid', ${kidLiteral(kid)}, ${now})`
            })
            assert.deepStrictEqual(end._tag === "Success" ? end.success : end.failure._tag, {
              deleted: mode === "delete" ? { accounts: 3, orders: 2 } : { accounts: 0, orders: 0 },
              deactivatedAccounts: mode === "delete" ? 0 : 2,
              keptAccounts: mode === "delete" ? 0 : 1
            })
            const rows = yield* rowsOf
            assert.deepStrictEqual(
              yield* column(`SELECT status FROM accounts WHERE id = '${nobody}'`),
              ["valid"]
            )
            assert.strictEqual(rows.length, mode === "delete" ? 4 : 3)
          }))
      }
    }
  })

  test("takes an identifier of another server once, even if two operators import it at the same time", () =>
    Effect.gen(function*() {
      const external = { kid: "old-1", secret: new Uint8Array(32).fill(7) }
      const imported = Effect.result(eab.create(operator, { external, label: "old", profile: undefined }))
      const ends = yield* Effect.all([imported, imported, imported], { concurrency: "unbounded" })
      const refusals = ends.flatMap((end) => end._tag === "Failure" ? [end.failure] : [])
      assert.deepStrictEqual(refusals.map(({ _tag }) => _tag), ["BadRequest", "BadRequest"])
      assert.strictEqual((yield* rowsOf).length, 1, "only what was imported is in the trail")
    }))

  const broken = (verb: "INSERT" | "DELETE", table: string) =>
    isSqlite
      ? sql(`CREATE TRIGGER broken BEFORE ${verb} ON ${table} BEGIN SELECT RAISE(ABORT, 'planted'); END`)
      : Effect.andThen(
        sql("CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$"),
        sql(`CREATE TRIGGER broken BEFORE ${verb} ON ${table} FOR EACH ROW EXECUTE FUNCTION broken()`)
      )
  const mend = Effect.suspend(() => sql(isSqlite ? "DROP TRIGGER broken" : "DROP FUNCTION broken CASCADE"))
})
