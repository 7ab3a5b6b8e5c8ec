import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { printApiToken } from "../../../../src/domain/ApiToken.ts"
import { Database } from "../../../../src/engine/sql/Database.ts"
import type { Operator } from "../../../../src/operations/Operator.ts"
import * as eab from "../../../../src/operations/operator/Eab.ts"
import { authenticateToken } from "../../../../src/operations/operator/identity/Bearer.ts"
import type { Identity } from "../../../../src/operations/operator/identity/Identity.ts"
import { operatorOf } from "../../../../src/operations/operator/identity/Identity.ts"
import { tokenObject } from "../../../../src/operations/operator/identity/OperatorObjects.ts"
import * as operators from "../../../../src/operations/operator/identity/Operators.ts"
import * as tokens from "../../../../src/operations/operator/identity/Tokens.ts"
import { atOnce, tally } from "../../../support/AtOnce.ts"
import { databases } from "../../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../../support/Graph.ts"
import {
  all,
  config,
  enter,
  from,
  here,
  keyboard,
  made,
  password,
  startsAt,
  tagOf,
  typed,
  useOperators
} from "../../../support/Operators.ts"

describe.each(databases)("tokens of programs on $name", (backend) => {
  const { fieldsOf, records, test } = useOperators(backend)

  const as = (id: string): Operator => ({ kind: "admin", id, client: here.client, surface: "api" })
  const asked = (username: string, more: Partial<tokens.NewToken> = {}): tokens.NewToken => ({
    username,
    name: "backup",
    role: "viewer",
    expiresInDays: 30,
    allowedAddresses: [],
    ...more
  })
  const mint = (username: string, more: Partial<tokens.NewToken> = {}, operator: Operator = keyboard) =>
    tokens.create(operator, asked(username, more))
  const use = (token: string, requester = here) => authenticateToken(typed(token), requester)
  const reasons = () => fieldsOf("admin_token_refused").map(({ reason }) => reason)

  test("begin with their first use and have their intended lifetime if a clock that was ahead made them", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* TestClock.adjust("100 days")
      const { record, token } = yield* mint("olga")
      yield* use(token)
      yield* TestClock.setTime(startsAt * 1000)
      yield* use(token)
      const { createdAt, expiresAt, lastUsedAt } = yield* tokens.find(record.id)
      const next = yield* mint("olga", { name: "next" })
      yield* TestClock.setTime((startsAt - 60) * 1000)
      yield* use(next.token)
      assert.strictEqual((yield* tokens.find(next.record.id)).createdAt, startsAt, "clocks may be a minute apart")
      yield* TestClock.setTime(startsAt * 1000)
      assert.deepStrictEqual([createdAt, expiresAt, lastUsedAt], [startsAt, startsAt + 30 * 86_400, startsAt])
      yield* TestClock.adjust("30 days")
      assert.strictEqual(yield* tagOf(use(token)), "SessionInvalid")
    }))

  test("are shown once, and are stored as hashes", () =>
    Effect.gen(function*() {
      yield* made("olga", "operator")
      const { record, token } = yield* mint("OLGA", { role: "operator", allowedAddresses: ["192.0.2.0/24"] })
      assert.match(token, /^acme_svc_[A-Za-z0-9_-]{43}_[a-z2-7]{6}$/)
      assert.deepStrictEqual(tokenObject(record), {
        id: record.id,
        name: "backup",
        user: "olga",
        role: "operator",
        createdAt: "2027-01-15T08:00:15Z",
        expiresAt: "2027-02-14T08:00:15Z",
        allowedAddresses: ["192.0.2.0/24"]
      })
      const identity = yield* use(token)
      assert.deepStrictEqual(identity, {
        kind: "token",
        userId: record.userId,
        username: "olga",
        role: "operator",
        id: record.id,
        name: "backup"
      })
      const told = JSON.stringify([
        records,
        yield* sql("SELECT * FROM audit_log"),
        yield* sql("SELECT * FROM api_tokens")
      ])
      assert.notInclude(told, token)
      assert.notInclude(told, token.slice(9, 52))
      assert.deepStrictEqual(
        (yield* column("SELECT detail FROM audit_log WHERE event = 'token_created'")).map((text) => JSON.parse(text)),
        [{ target: "olga", name: "backup", role: "operator", expires_at: "2027-02-14T08:00:15Z" }]
      )
      assert.include(eventsOf(records), "admin_token_created")
    }))

  test("are named in the audit rows of their actions", () =>
    Effect.gen(function*() {
      yield* made("olga", "operator")
      const { token } = yield* mint("olga", { role: "operator" })
      yield* eab.create(operatorOf(yield* use(token), here), { label: "printers", profile: undefined })
      const [row] = yield* sql("SELECT * FROM audit_log WHERE event = 'eab_created'")
      assert.deepInclude(row, {
        actor_kind: "admin",
        actor_id: "olga",
        client_ip: "192.0.2.1",
        request_id: "request-1"
      })
      assert.deepInclude(JSON.parse(String(row?.detail)), { label: "printers", token: "backup" })
    }))

  test("are made only for an active operator and with a role that the operator has", () =>
    Effect.gen(function*() {
      yield* made("olga", "operator")
      assert.strictEqual(yield* tagOf(mint("olga", { role: "admin" })), "BadRequest")
      assert.strictEqual(yield* tagOf(mint("nobody")), "NoSuch")
      yield* made("root", "admin")
      yield* operators.disable(keyboard, "olga")
      assert.strictEqual(yield* tagOf(mint("olga")), "BadRequest")
      assert.strictEqual(yield* count("SELECT count(*) FROM api_tokens"), 0)
    }))

  test("have a name that is unique for their owner while they live, so only one of ten simultaneous requests makes a token", () =>
    Effect.gen(function*() {
      yield* made("olga")
      yield* made("otto")
      // The test is repeated, because the first time connections to a server are still being made.
      for (const name of ["one", "two", "three", "four", "backup"]) {
        const tags = yield* atOnce(10, mint("olga", { name, expiresInDays: 1 }))
        assert.deepStrictEqual(tally(tags), { done: 1, NameTaken: 9 }, name)
      }
      yield* mint("otto")
      const [first = ""] = (yield* tokens.list("olga", all)).items.map(({ id }) => id)
      yield* tokens.revoke(keyboard, first)
      yield* mint("olga", { expiresInDays: 1 })
      yield* TestClock.adjust("86399 seconds")
      assert.strictEqual(yield* tagOf(mint("olga")), "NameTaken")
      yield* TestClock.adjust("1 second")
      yield* mint("olga")
    }))

  test("are made by their owner or by an admin, but not with another token", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("ruth", "admin")
      yield* made("olga", "operator")
      yield* made("otto")
      yield* mint("olga", {}, as("olga"))
      yield* mint("olga", { name: "by an admin" }, as("root"))
      assert.strictEqual(yield* tagOf(mint("olga", { name: "other" }, as("otto"))), "InsufficientRole")
      assert.strictEqual(yield* tagOf(mint("root", { name: "other" }, as("olga"))), "InsufficientRole")
      const program: Operator = { ...as("root"), token: "backup" }
      assert.strictEqual(yield* tagOf(mint("root", { name: "other" }, program)), "InsufficientRole")
      const [mine = ""] = (yield* tokens.list("olga", all)).items.map(({ id }) => id)
      assert.strictEqual(yield* tagOf(tokens.revoke(program, mine)), "NoSuch")
      assert.strictEqual(yield* tagOf(tokens.revoke(as("otto"), mine)), "NoSuch", "who may not see one hears of none")
      yield* tokens.revoke(as("olga"), mine)
      yield* tokens.revoke(as("olga"), mine)
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'token_revoked'"), 1)
      assert.include(eventsOf(records), "admin_token_revoked")
    }))

  test("are refused after they were revoked or have expired, or after their owner was disabled or deleted", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      const one = yield* mint("olga", { name: "one" })
      const two = yield* mint("olga", { name: "two", expiresInDays: 1 })
      yield* tokens.revoke(keyboard, one.record.id)
      assert.strictEqual(yield* tagOf(use(one.token)), "SessionInvalid")
      yield* TestClock.adjust("86399 seconds")
      yield* use(two.token)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* tagOf(use(two.token)), "SessionInvalid")
      const three = yield* mint("olga", { name: "three" })
      yield* operators.setPassword(config, keyboard, "olga", typed(password))
      yield* use(three.token)
      yield* operators.disable(keyboard, "olga")
      assert.strictEqual(yield* tagOf(use(three.token)), "SessionInvalid")
      yield* operators.enable(keyboard, "olga")
      yield* use(three.token)
      yield* operators.remove(keyboard, "olga")
      assert.strictEqual(yield* tagOf(use(three.token)), "SessionInvalid")
      assert.deepStrictEqual(reasons(), ["revoked", "expired", "owner_disabled", "unknown"])
    }))

  test("are accepted only from their allowed addresses", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* mint("olga", { allowedAddresses: ["192.0.2.0/25", "2001:db8::/32"] })
      for (const ip of ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8:5::1"]) yield* use(token, from(ip))
      for (const ip of ["192.0.2.129", "2001:db9::1", "nowhere"]) {
        assert.strictEqual(yield* tagOf(use(token, from(ip))), "SessionInvalid", ip)
      }
      const { ip: _, ...unknown } = here.client
      assert.strictEqual(yield* tagOf(use(token, { ...here, client: unknown })), "SessionInvalid")
      assert.deepStrictEqual([...new Set(reasons())], ["address"])
    }))

  test("have the lower of their own role and the present role of their owner", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga", "admin")
      const strong = yield* mint("olga", { name: "strong", role: "admin" })
      const weak = yield* mint("olga", { name: "weak", role: "viewer" })
      const roles = Effect.map(Effect.all([use(strong.token), use(weak.token)]), (both) => both.map(({ role }) => role))
      assert.deepStrictEqual(yield* roles, ["admin", "viewer"])
      yield* operators.setRole(keyboard, "olga", "operator")
      assert.deepStrictEqual(yield* roles, ["operator", "viewer"])
      yield* sql("UPDATE admin_users SET role = 'auditor' WHERE username = 'olga'")
      assert.deepStrictEqual(yield* roles, ["viewer", "viewer"])
    }))

  test("are refused by their checksum and without a query if they have a typing error", () =>
    Effect.gen(function*() {
      const blind = {
        ...yield* Database,
        single: () => Effect.die(new Error("asked")),
        transact: () => Effect.die(new Error("asked"))
      }
      const whole = printApiToken("A".repeat(43))
      const odd = ["", "acme_svc_", whole.slice(0, -1), `${whole}a`, `${whole.slice(0, -1)}!`, whole.toUpperCase()]
      const typo = whole.replace("AAAA", "AABA")
      for (const text of [...odd, typo]) {
        assert.strictEqual(yield* tagOf(Effect.provideService(use(text), Database, blind)), "SessionInvalid")
      }
      assert.deepStrictEqual([...new Set(reasons())], ["malformed"])
      assert.strictEqual(yield* tagOf(use(whole)), "SessionInvalid")
      assert.include(reasons(), "unknown")
    }))

  test("do not count as sign-ins of their address when they fail, so a program with an expired token locks nobody out", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { token } = yield* mint("olga", { expiresInDays: 1 })
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(tally(yield* atOnce(20, use(token))), { SessionInvalid: 20 })
      assert.deepStrictEqual(tally(yield* atOnce(20, use(printApiToken("B".repeat(43))))), { SessionInvalid: 20 })
      assert.strictEqual((yield* enter("olga"))._tag, "Active")
    }))

  test("store the time of their use at most once a minute, but at once if the address is new", () =>
    Effect.gen(function*() {
      yield* made("olga")
      const { record, token } = yield* mint("olga")
      const stamp = Effect.map(tokens.find(record.id), ({ lastUsedAt, lastUsedIp }) => [lastUsedAt, lastUsedIp])
      const begin = 1_800_000_015
      assert.deepStrictEqual(yield* stamp, [undefined, undefined])
      yield* use(token)
      assert.deepStrictEqual(yield* stamp, [begin, "192.0.2.1"])
      yield* TestClock.adjust("59 seconds")
      yield* use(token)
      assert.deepStrictEqual(yield* stamp, [begin, "192.0.2.1"])
      yield* TestClock.adjust("1 second")
      yield* use(token)
      assert.deepStrictEqual(yield* stamp, [begin + 60, "192.0.2.1"])
      yield* TestClock.adjust("1 second")
      yield* use(token, from("192.0.2.8"))
      assert.deepStrictEqual(yield* stamp, [begin + 61, "192.0.2.8"])
    }))

  test("are listed newest first for one operator or for all operators, and only admins see the tokens of other operators", () =>
    Effect.gen(function*() {
      yield* made("root", "admin")
      yield* made("olga")
      yield* mint("olga", { name: "one" })
      yield* TestClock.adjust("1 second")
      yield* mint("root", { name: "two" })
      yield* mint("olga", { name: "three" })
      const names = (username?: string, page = all) =>
        Effect.map(tokens.list(username, page), ({ items, total }) => [items.map(({ name }) => name), total])
      assert.deepStrictEqual(yield* names(), [["three", "two", "one"], 3])
      assert.deepStrictEqual(yield* names("OLGA", { limit: 1, offset: 1 }), [["one"], 2])
      assert.strictEqual(yield* tagOf(tokens.list("nobody", all)), "NoSuch")
      assert.strictEqual(yield* tagOf(tokens.find("nothing")), "NoSuch")
      assert.strictEqual(yield* tagOf(tokens.revoke(keyboard, "nothing")), "NoSuch")
      const { identity: olga } = yield* enter("olga")
      const { identity: root } = yield* enter("root")
      const owner = (identity: Identity, user?: string) => tokens.ownerListed(identity, user)
      assert.deepStrictEqual(
        [yield* owner(olga), yield* owner(olga, "Olga"), yield* owner(root), yield* owner(root, "olga")],
        ["olga", "olga", "root", "olga"]
      )
      assert.strictEqual(yield* tagOf(owner(olga, "root")), "InsufficientRole")
    }))
})
