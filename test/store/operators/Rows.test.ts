import { Effect } from "effect"
import { assert, describe } from "vitest"
import { transaction } from "../../../src/engine/sql/Database.ts"
import * as apiTokens from "../../../src/store/operators/ApiTokens.ts"
import * as factors from "../../../src/store/operators/SecondFactors.ts"
import * as sessions from "../../../src/store/operators/SessionRows.ts"
import * as users from "../../../src/store/operators/Users.ts"
import { databases } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"
import { ann, ben, idOf, is, person, secret, session, token } from "../../support/OperatorRows.ts"
import { useStore } from "../../support/UseTests.ts"

/* Tests what the statements about operators find, list, lock and write. */

const whole = { limit: 10, offset: 0 }
const second = { limit: 1, offset: 1 }

describe.each(databases)("rows of operators on $name", (backend) => {
  const { database, test } = useStore(backend)

  test("are found with the name and the second factor of the operator", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* person(ben, "ben")
      yield* factors.pend({ id: ben, pending: secret, inForce: undefined, now: 2 })
      yield* factors.confirm({ id: ben, pending: secret, inForce: undefined, step: 1, now: 2 })
      yield* session("s", "active")
      yield* session("t", "pending_mfa", ben)
      yield* apiTokens.insert({ ...token, now: 1, expiresAt: 1000 })
      yield* apiTokens.insert({ ...token, id: idOf(8), userId: ben, tokenHash: "i", now: 1, expiresAt: 1000 })
      for (
        const [username, userId, isEnrolled, ofSession, ofToken, id] of [
          ["ann", ann, 0, "s", "h", idOf(9)],
          ["ben", ben, 1, "t", "i", idOf(8)]
        ] as const
      ) {
        assert.deepInclude(yield* sessions.find(ofSession), { username, userId, isEnrolled })
        assert.deepInclude(yield* apiTokens.findByHash(ofToken), { username, userId, id })
        assert.deepInclude(yield* apiTokens.find(id), { username, userId })
        for (const found of [users.find(username), users.findById(userId), users.lock(username)]) {
          assert.deepInclude(yield* found, { id: userId, username })
        }
      }
      for (const none of [sessions.find("u"), apiTokens.findByHash("j"), apiTokens.find(idOf(7)), users.find("eve")]) {
        assert.isUndefined(yield* none)
      }
    }))

  test("are listed in pages, newest first", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      yield* person(ben, "ben")
      yield* apiTokens.insert({ ...token, now: 1, expiresAt: 1000 })
      yield* apiTokens.insert({ ...token, id: idOf(8), userId: ben, tokenHash: "i", now: 1, expiresAt: 1000 })
      yield* apiTokens.insert({ ...token, id: idOf(10), name: "u", tokenHash: "j", now: 1, expiresAt: 1000 })
      for (
        const [userId, ids] of [[undefined, [10, 9, 8]], [ann, [10, 9]], [ben, [8]]] as const
      ) {
        const listed = Effect.map(apiTokens.list({ userId, ...whole }), (rows) => rows.map(({ id }) => id))
        assert.deepStrictEqual(yield* listed, ids.map(idOf))
        assert.strictEqual(yield* apiTokens.count(userId), ids.length)
      }
      assert.deepStrictEqual((yield* apiTokens.list({ userId: undefined, ...second })).map(({ id }) => id), [idOf(9)])

      yield* session("b", "active")
      yield* session("c", "active", ann, { now: 50, expiresAt: 500 })
      yield* session("a", "active", ann, { now: 101, expiresAt: 500 })
      yield* session("d", "active")
      yield* session("e", "active", ben)
      const live = { now: 110, idleSince: 0 }
      const own = (paging: typeof whole) => sessions.list({ ...live, userId: ann, ...paging })
      const everyone = (paging: typeof whole) => sessions.listEvery({ ...live, ...paging })
      for (const [list, hashes] of [[own, ["a", "d", "b", "c"]], [everyone, ["a", "e", "d", "b", "c"]]] as const) {
        assert.deepStrictEqual((yield* list(whole)).map(({ tokenHash }) => tokenHash), [...hashes])
        assert.deepStrictEqual((yield* list(second)).map(({ tokenHash }) => tokenHash), hashes.slice(1, 2))
      }
      assert.deepStrictEqual((yield* everyone(whole)).map(({ username }) => username).slice(0, 2), ["ann", "ben"])
      assert.strictEqual(sessions.nameOf({ tokenHash: "0123456789abcdef0" }), "0123456789abcdef")
    }))

  test("are listed by name, and can be filtered by status and effective role", () =>
    Effect.gen(function*() {
      for (const [at, username] of ["eve", "dan", "cem", "ben", "ann"].entries()) yield* person(idOf(at), username)
      yield* sql("UPDATE admin_users SET role = NULL WHERE username = 'ann'")
      yield* sql("UPDATE admin_users SET role = 'operator', status = 'disabled' WHERE username = 'ben'")
      yield* sql("UPDATE admin_users SET role = 'viewer' WHERE username = 'cem'")
      yield* sql("UPDATE admin_users SET role = 'auditor' WHERE username = 'dan'")
      const none = { status: undefined, role: undefined }
      for (
        const [filters, names] of [
          [none, ["ann", "ben", "cem", "dan", "eve"]],
          [{ ...none, status: "disabled" }, ["ben"]],
          [{ ...none, status: "active" }, ["ann", "cem", "dan", "eve"]],
          [{ ...none, role: "admin" }, ["ann", "eve"]],
          [{ ...none, role: "operator" }, ["ben"]],
          [{ ...none, role: "viewer" }, ["cem", "dan"]],
          [{ status: "active", role: "operator" }, []]
        ] as const
      ) {
        assert.deepStrictEqual((yield* users.list({ ...filters, ...whole })).map(({ username }) => username), [
          ...names
        ])
        assert.strictEqual(yield* users.count(filters), names.length)
      }
      assert.deepStrictEqual((yield* users.list({ ...none, ...second })).map(({ username }) => username), ["ben"])
    }))

  if (backend.dialect === "postgres") {
    test("stay locked until the end of the transaction, for all active admins or for one operator", () =>
      Effect.gen(function*() {
        const elsewhere = yield* database.another
        const text = "SELECT username FROM admin_users ORDER BY username FOR UPDATE SKIP LOCKED"
        /** The operators whose rows another process could change at this time. */
        const free = Effect.map(
          elsewhere.exclusive((connection) => connection.execute(text, [])),
          (rows) => rows.map((row) => Object.values(row).join())
        )
        yield* person(idOf(3), "cem")
        yield* person(ben, "ben")
        yield* person(ann, "ann")
        yield* users.setRole(idOf(3), "viewer", 2)
        const ofAdmins = Effect.zip(users.lockAdmins, free)
        const [admins, others] = yield* transaction(Effect.orDie(ofAdmins))
        assert.deepStrictEqual(admins, [{ id: ann, username: "ann" }, { id: ben, username: "ben" }], "in one order")
        assert.deepStrictEqual(others, ["cem"])
        assert.deepStrictEqual(yield* transaction(Effect.orDie(Effect.andThen(users.lock("ben"), free))), [
          "ann",
          "cem"
        ])
        assert.deepStrictEqual(yield* free, ["ann", "ben", "cem"])
      }))
  }

  test("contain the values that were written, and the time of the change", () =>
    Effect.gen(function*() {
      yield* person(ann, "ann")
      const facts = (columns: string, table = "admin_users") => column(`SELECT ${columns} FROM ${table}`)
      const at = facts("updated_at")
      yield* users.setPassword(ann, "new", 2)
      assert.deepStrictEqual(yield* at, ["2"])
      yield* users.setRole(ann, "viewer", 3)
      assert.deepStrictEqual(yield* at, ["3"])
      yield* users.setContact(ann, "a@example.org", 4)
      assert.deepStrictEqual(yield* at, ["4"])
      yield* users.setStatus(ann, "disabled", 5)
      assert.deepStrictEqual(yield* at, ["5"])
      yield* users.setStatus(ann, "active", 6)
      yield* users.verified({ id: ann, verified: "new", renewed: "renewed", totpSecret: undefined })
      yield* users.signedIn(ann, ["192.0.2.1"], 7)
      assert.deepStrictEqual(
        yield* facts("password_hash || ' ' || role || ' ' || contact_email || ' ' || last_login_at || known_login_ips"),
        ["renewed viewer a@example.org 7[\"192.0.2.1\"]"]
      )

      yield* session("s", "active")
      yield* session("t", "active")
      yield* sessions.correct({ tokenHash: "s", lastSeenAt: 90, expiresAt: 400 })
      assert.deepStrictEqual((yield* facts("last_seen_at || ' ' || expires_at", "admin_sessions")).toSorted(), [
        "100 500",
        "90 400"
      ])

      assert.isTrue(is(yield* apiTokens.insert({ ...token, now: 1, expiresAt: 1000 })))
      const again = { ...token, id: idOf(8), tokenHash: "i", expiresAt: 2000 }
      assert.isFalse(is(yield* apiTokens.insert({ ...again, now: 999 })))
      assert.isTrue(is(yield* apiTokens.insert({ ...again, now: 1000 })), "the name of one that has ended")
      yield* apiTokens.touch({ id: token.id, now: 100, seconds: 60, ip: "192.0.2.1" })
      assert.deepStrictEqual(yield* facts("COALESCE(last_used_ip, '') || name", "api_tokens ORDER BY id"), [
        "t",
        "192.0.2.1t"
      ])
    }))
})
