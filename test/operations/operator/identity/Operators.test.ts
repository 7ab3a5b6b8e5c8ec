import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Operator } from "../../../../src/operations/Operator.ts"
import * as objects from "../../../../src/operations/operator/identity/OperatorObjects.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import { signIn } from "../../../../src/operations/operator/identity/SignIn.ts"
import { atOnce, tally } from "../../../support/AtOnce.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import {
  all,
  chosen,
  config,
  enrolled,
  enter,
  here,
  keyboard,
  made,
  password,
  tagOf,
  typed,
  useOperators
} from "../../../support/Operators.ts"

const { admin } = config
const everyone = { status: undefined, role: undefined }

describe.each(databases)("operators on $name", (backend) => {
  const { records, test } = useOperators(backend)

  const as = (id: string): Operator => ({ kind: "admin", id, client: here.client, surface: "ui" })
  const trail = Effect.map(
    sql("SELECT event, actor_kind, actor_id, detail FROM audit_log ORDER BY id"),
    (rows) =>
      rows.map(({ actor_id, actor_kind, detail, event }) => [event, actor_kind, actor_id, JSON.parse(String(detail))])
  )
  const rolesOf = column(
    "SELECT username || ' ' || coalesce(role, '-') || ' ' || status FROM admin_users ORDER BY username"
  )

  describe("creating an operator", () => {
    test("makes the first operator an admin and the others viewers, and requires an unused name", () =>
      Effect.gen(function*() {
        const make = (username: string, more: Partial<operators.NewOperator> = {}) =>
          operators.create(config, keyboard, {
            username,
            password: typed(password),
            role: undefined,
            contact: undefined,
            ...more
          })
        assert.deepStrictEqual(yield* make("root"), { username: "root", role: "admin" })
        assert.deepStrictEqual(yield* make("olga", { contact: "olga@example.org" }), {
          username: "olga",
          role: "viewer"
        })
        assert.deepStrictEqual(yield* make("otto", { role: "operator" }), { username: "otto", role: "operator" })
        assert.strictEqual(yield* tagOf(make("olga")), "NameTaken")
        assert.strictEqual(yield* tagOf(make("ivan", { password: typed("ivan and the wolf") })), "WeakPassword")
        assert.deepStrictEqual(yield* trail, [
          ["operator_created", "cli", "tester", { target: "root", role: "admin" }],
          ["operator_created", "cli", "tester", { target: "olga", role: "viewer" }],
          ["operator_created", "cli", "tester", { target: "otto", role: "operator" }]
        ])
        assert.include(eventsOf(records), "admin_operator_created")
      }))

    test("makes one operator if the same name is used several times at once", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(tally(yield* atOnce(5, made("olga"))), { done: 1, NameTaken: 4 })
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 1)
      }))
  })

  test("are listed by name and filtered by status and by effective role, without their secrets", () =>
    Effect.gen(function*() {
      for (
        const [name, role] of [["root", "admin"], ["olga", "viewer"], ["otto", "operator"], ["anna", "viewer"]] as const
      ) {
        yield* made(name, role)
      }
      yield* sql("UPDATE admin_users SET role = NULL WHERE username = 'otto'")
      yield* sql("UPDATE admin_users SET role = 'auditor' WHERE username = 'anna'")
      yield* operators.disable(keyboard, "olga")
      const names = (
        filters: Partial<typeof everyone> | { readonly role?: "admin" | "viewer"; readonly status?: "disabled" }
      ) =>
        Effect.map(
          operators.list({ ...everyone, ...filters }, all),
          ({ items }) => items.map(({ username }) => username)
        )
      assert.deepStrictEqual(yield* names({}), ["anna", "olga", "otto", "root"])
      assert.deepStrictEqual(yield* names({ role: "admin" }), ["otto", "root"])
      assert.deepStrictEqual(yield* names({ role: "viewer" }), ["anna", "olga"])
      assert.deepStrictEqual(yield* names({ role: "viewer", status: "disabled" }), ["olga"])
      const page = yield* operators.list(everyone, { limit: 2, offset: 1 })
      assert.deepStrictEqual([page.items.map(({ username }) => username), page.total], [["olga", "otto"], 4])
      const { identity } = yield* enter("root")
      const { secret } = yield* enrolled(identity)
      const shown = yield* operators.show(admin, "ROOT")
      const { id: _, ...object } = objects.operatorDetailObject(shown)
      assert.deepStrictEqual(object, {
        username: "root",
        status: "active",
        role: "admin",
        totpEnabled: true,
        createdAt: "2027-01-15T08:00:15Z",
        updatedAt: "2027-01-15T08:00:15Z",
        lastLoginAt: "2027-01-15T08:00:15Z",
        knownLoginIps: ["192.0.2.1"],
        enrolmentPending: false,
        recoveryCodesRemaining: 10,
        activeSessions: 1
      })
      const told = JSON.stringify([shown, yield* operators.list(everyone, all)])
      assert.notInclude(told, "pbkdf2")
      assert.notInclude(told, Buffer.from(secret).toString("hex"))
      assert.notInclude(told, JSON.stringify([...secret]).slice(1, -1))
      const [item] = (yield* operators.list({ ...everyone, role: "admin" }, { limit: 1, offset: 1 })).items
      assert.deepInclude(item && objects.operatorObject(item), { username: "root", totpEnabled: true })
      assert.deepInclude(yield* Effect.flip(operators.show(admin, "nobody")), { _tag: "NoSuch", noun: "operator" })
    }))

  test("are changed only by active admins, and each change is reported with its author and the address", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga", "operator")
      yield* made("otto")
      for (const nobody of ["olga", "otto", "gone"]) {
        assert.strictEqual(yield* tagOf(operators.disable(as(nobody), "root")), "InsufficientRole")
      }
      yield* operators.setRole(as("root"), "otto", "operator")
      yield* operators.setContact(as("root"), "otto", "otto@example.org")
      yield* operators.disable(as("root"), "otto")
      yield* operators.enable(as("root"), "otto")
      const [row] = yield* sql("SELECT * FROM audit_log WHERE event = 'operator_role_changed'")
      assert.deepInclude(row, {
        actor_kind: "admin",
        actor_id: "root",
        client_ip: "192.0.2.1",
        user_agent: "test/1",
        request_id: "request-1",
        detail: JSON.stringify({ target: "otto", before: "viewer", after: "operator", sessions_revoked: 0 })
      })
      assert.deepStrictEqual((yield* trail).slice(3).map(([event]) => event), [
        "operator_role_changed",
        "operator_contact_updated",
        "operator_disabled",
        "operator_enabled"
      ])
      assert.includeMembers([...eventsOf(records)], [
        "admin_operator_role_changed",
        "admin_operator_contact_changed",
        "admin_operator_disabled",
        "admin_operator_enabled"
      ])
      assert.strictEqual(yield* tagOf(operators.enable(as("root"), "nobody")), "NoSuch")
    }))

  test("are not changed by setting a present value again, and no row is left", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      yield* sql("UPDATE admin_users SET role = NULL WHERE username = 'root'")
      yield* operators.setRole(keyboard, "olga", "viewer")
      yield* operators.setRole(keyboard, "root", "admin")
      yield* operators.setContact(keyboard, "olga", undefined)
      yield* operators.enable(keyboard, "olga")
      yield* operators.disable(keyboard, "olga")
      yield* operators.disable(keyboard, "olga")
      assert.deepStrictEqual(yield* rolesOf, ["olga viewer disabled", "root - active"])
      assert.deepStrictEqual((yield* trail).slice(2), [
        ["operator_disabled", "cli", "tester", { target: "olga", sessions_revoked: 0 }]
      ])
      yield* sql("UPDATE admin_users SET role = 'auditor' WHERE username = 'olga'")
      yield* operators.setRole(keyboard, "olga", "viewer")
      assert.deepInclude((yield* trail).at(-1)?.[3], { before: "auditor", after: "viewer" })
      yield* operators.setRole(keyboard, "olga", "admin")
      assert.deepInclude((yield* trail).at(-1)?.[3], { before: "viewer", after: "admin" })
    }))

  test("cannot disable or demote themselves or reset their own factor over the API", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga", "admin")
      const tags = [
        yield* tagOf(operators.disable(as("root"), "ROOT")),
        yield* tagOf(operators.setRole(as("root"), "root", "viewer")),
        yield* tagOf(operators.resetTotp(as("root"), "root"))
      ]
      assert.deepStrictEqual(tags, ["SelfTarget", "SelfTarget", "SelfTarget"])
      assert.deepStrictEqual(yield* rolesOf, ["olga admin active", "root admin active"])
    }))

  describe("the last active admin", () => {
    test("stays an admin whatever is tried, and an admin without a role counts but a disabled admin does not", () =>
      Effect.gen(function*() {
        yield* made("root", "admin")
        yield* made("olga", "admin")
        yield* operators.disable(keyboard, "olga")
        const acts = [
          operators.disable(keyboard, "root"),
          operators.setRole(keyboard, "root", "operator"),
          operators.remove(keyboard, "root"),
          operators.previewRemoval(keyboard, "root")
        ]
        for (const act of acts) assert.strictEqual(yield* tagOf(act), "LastAdmin")
        yield* operators.enable(keyboard, "olga")
        yield* sql("UPDATE admin_users SET role = NULL WHERE username = 'olga'")
        yield* operators.setRole(keyboard, "root", "operator")
        assert.strictEqual(yield* tagOf(operators.remove(keyboard, "olga")), "LastAdmin")
        assert.deepStrictEqual(yield* rolesOf, ["olga - active", "root operator active"])
      }))

    test("remains if two admins demote, disable or delete each other at once", () =>
      Effect.gen(function*() {
        const pairs = [
          [operators.setRole(keyboard, "root", "viewer"), operators.setRole(keyboard, "olga", "viewer")],
          [operators.setRole(as("olga"), "root", "viewer"), operators.setRole(as("root"), "olga", "viewer")],
          [operators.disable(as("olga"), "root"), operators.disable(as("root"), "olga")],
          [operators.remove(keyboard, "root"), operators.setRole(keyboard, "olga", "operator")]
        ] as const
        for (const pair of pairs) {
          yield* sql("DELETE FROM admin_users")
          yield* made("root", "admin")
          yield* made("olga", "admin")
          const both = yield* Effect.all(pair.map((act) => Effect.result(act)), { concurrency: "unbounded" })
          assert.sameMembers(both.map(({ _tag }) => _tag), ["Failure", "Success"])
          assert.strictEqual(
            yield* count("SELECT count(*) FROM admin_users WHERE status = 'active' AND role = 'admin'"),
            1
          )
        }
      }))

    test("remains if twenty admins all demote one another at once", () =>
      Effect.gen(function*() {
        const names = Array.from({ length: 20 }, (_, at) => `admin-${at}`)
        yield* Effect.forEach(names, (name) => made(name, "admin"))
        yield* Effect.all(
          names.map((name, at) =>
            Effect.result(operators.setRole(as(name), names[(at + 1) % names.length] ?? "", "viewer"))
          ),
          { concurrency: "unbounded" }
        )
        assert.isAtLeast(yield* count("SELECT count(*) FROM admin_users WHERE role = 'admin'"), 1)
      }))
  })

  test("get a new password from the command line, and their sessions end", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* enter("olga")
      assert.strictEqual(yield* operators.setPassword(config, keyboard, "olga", typed(chosen)), 1)
      assert.deepStrictEqual((yield* trail).at(-1), ["operator_password_changed", "cli", "tester", {
        target: "olga",
        sessions_revoked: 1
      }])
      yield* signIn(admin, { username: "olga", password: typed(chosen) }, here)
      assert.strictEqual(
        yield* tagOf(operators.setPassword(config, keyboard, "olga", typed("olga, tramway 4"))),
        "WeakPassword"
      )
      assert.strictEqual(yield* tagOf(operators.setPassword(config, keyboard, "nobody", typed(chosen))), "NoSuch")
      assert.include(eventsOf(records), "admin_operator_password_changed")
    }))

  test("lose their factor together with its recovery codes and their sessions, even if the factor was not confirmed", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      assert.isFalse(yield* operators.resetTotp(as("root"), "olga"))
      assert.notInclude(eventsOf(records), "admin_operator_totp_reset")
      assert.strictEqual(yield* tagOf(operators.renewCodes(keyboard, "olga")), "MfaNotEnrolled")
      yield* enrolled((yield* enter("olga")).identity)
      assert.strictEqual((yield* operators.renewCodes(keyboard, "olga")).length, 10)
      assert.deepInclude(yield* operators.totpStatus("olga"), { totpEnabled: true, recoveryCodesRemaining: 10 })
      assert.isTrue(yield* operators.resetTotp(as("root"), "olga"))
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_recovery_codes"), 0)
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_sessions"), 0)
      assert.strictEqual((yield* enter("olga")).identity.totpEnabled, false)
      assert.include(eventsOf(records), "admin_operator_totp_reset")
    }))

  test("are deleted with everything that belongs to them, except their rows in the trail", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      yield* enrolled((yield* enter("olga")).identity)
      assert.strictEqual(yield* operators.previewRemoval(keyboard, "OLGA"), "olga")
      yield* operators.remove(keyboard, "olga")
      for (const table of ["admin_sessions", "admin_recovery_codes", "api_tokens"]) {
        assert.strictEqual(yield* count(`SELECT count(*) FROM ${table}`), 0, table)
      }
      assert.deepStrictEqual((yield* trail).at(-1), ["operator_deleted", "cli", "tester", {
        target: "olga",
        role: "viewer",
        sessions_revoked: 1
      }])
      assert.include((yield* trail).map(([event]) => event), "operator_totp_enrolled")
      assert.strictEqual(yield* tagOf(operators.remove(keyboard, "olga")), "NoSuch")
      assert.include(eventsOf(records), "admin_operator_deleted")
    }))
})
