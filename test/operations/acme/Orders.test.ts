import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { AcmeError } from "../../../src/domain/AcmeError.ts"
import { AuthorizationId, OrderId } from "../../../src/domain/Id.ts"
import { expiryOf, statusShown } from "../../../src/domain/Order.ts"
import { problemOf, retryAfter } from "../../../src/domain/Problem.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as authorizations from "../../../src/operations/acme/Authorizations.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import { ProfileStates } from "../../../src/services/signing/ProfileStates.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, count, eventsOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { dnsConstraints, issuersOf, someIssuer } from "../../support/KnownIssuers.ts"
import { meanwhile, meanwhileAt, someoneWaits } from "../../support/Meanwhile.ts"
import { useWorld } from "../../support/UseWorld.ts"

const config = configOf()
const profile = profileOf(config)

describe.each(databases)("orders on $name", (backend) => {
  const { database, records, test } = useWorld(backend)

  const refusal = (identifiers: orders.OrderRequest["identifiers"], more: Partial<orders.OrderRequest> = {}) =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      const error = yield* Effect.flip(
        orders.create(caller, { identifiers, notBefore: undefined, notAfter: undefined, ...more })
      )
      return problemOf(error as AcmeError)
    })
  const dns = (value: string) => ({ type: "dns", value })
  const type = (name: string) => `urn:ietf:params:acme:error:${name}`

  test("are stored with their names, authorizations and challenges in the requested order", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const caller = yield* callerAt(profile)
      const order = yield* orders.create(caller, {
        identifiers: [dns("B.example."), dns("a.example"), dns("b.EXAMPLE")],
        notBefore: 5000,
        notAfter: 6000
      })
      assert.deepStrictEqual(order.identifiers, [{ type: "dns", value: "b.example" }, {
        type: "dns",
        value: "a.example"
      }])
      assert.deepInclude(order, { status: "pending", notBefore: 5000, notAfter: 6000, createdAt: 1000 })
      assert.deepStrictEqual(yield* orders.find(caller, order.id), order)
      assert.strictEqual(order.authorizationIds.length, 2)
      for (const [index, id] of order.authorizationIds.entries()) {
        const view = yield* authorizations.find(caller, id)
        assert.deepStrictEqual(view.identifier, order.identifiers[index])
        assert.deepStrictEqual([view.status, view.orderId], ["pending", order.id])
        assert.deepStrictEqual(view.challenges.map(({ status, type }) => [type, status]), [["http-01", "pending"]])
        assert.match(view.challenges[0]?.token ?? "", /^[\w-]{43}$/)
      }
      assert.strictEqual(new Set(yield* column("SELECT token FROM challenges")).size, 2)
      assert.sameMembers([...yield* column("SELECT name_rev FROM order_identifiers")], ["elpmaxe.b", "elpmaxe.a"])
      assert.include(eventsOf(records), "order_created")
    }))

  test("expire at the time that the client was told, at every process, even if the setting has changed since", () =>
    Effect.gen(function*() {
      const living = (seconds: number) => profileOf(configOf(`[order]\nvalidity_seconds = ${seconds}`))
      const caller = yield* callerAt(living(600))
      const order = yield* orderOf(caller, "a.example")
      const [authorization = AuthorizationId("")] = order.authorizationIds
      const at = (seconds: number, now: number) =>
        Effect.gen(function*() {
          yield* TestClock.setTime(now * 1000)
          const other = { ...caller, profile: living(seconds) }
          const found = yield* orders.find(other, order.id)
          const view = yield* authorizations.find(other, authorization)
          const listed = yield* orders.list(other, undefined)
          return [statusShown(found, seconds, now), view.status, listed.ids.length, expiryOf(view, seconds)]
        })
      for (const seconds of [60, 600, 60_000]) {
        assert.deepStrictEqual(yield* at(seconds, 599), ["pending", "pending", 1, 600])
        assert.deepStrictEqual(yield* at(seconds, 600), ["invalid", "expired", 0, 600])
      }
      // The order was proved in time, but must also be finalized in time. The job for its certificate has the same
      // deadline.
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      const late = { ...caller, profile: living(60_000) }
      assert.strictEqual((yield* Effect.flip(finalize(late, order.id, csr)))._tag, "OrderNotReady")
      for (const seconds of [60, 60_000]) {
        assert.deepStrictEqual(yield* at(seconds, 600), ["invalid", "expired", 0, 600])
        assert.deepStrictEqual(yield* at(seconds, 599), ["ready", "valid", 1, 600])
      }
      yield* TestClock.setTime(599_000)
      yield* finalize({ ...caller, profile: living(60) }, order.id, csr)
      assert.deepStrictEqual(yield* column("SELECT deadline FROM jobs WHERE kind = 'signer_issue'"), ["600"])
    }))

  test("get their expiry from the setting if they were made by a version that did not store the expiry", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE orders SET expires_at = NULL")
      const found = yield* orders.find(caller, id)
      assert.strictEqual(expiryOf(found, profile.order.validity_seconds), profile.order.validity_seconds)
      yield* TestClock.setTime((profile.order.validity_seconds - 1) * 1000)
      assert.lengthOf((yield* orders.list(caller, undefined)).ids, 1)
      yield* TestClock.setTime(profile.order.validity_seconds * 1000)
      assert.lengthOf((yield* orders.list(caller, undefined)).ids, 0)
    }))

  test("are neither made nor finalized for an account that is deactivated during the request", () =>
    Effect.gen(function*() {
      const ends = [
        ["UPDATE accounts SET status = 'deactivated'", [401, type("unauthorized")]],
        ["DELETE FROM accounts", [400, type("accountDoesNotExist")]]
      ] as const
      for (const limits of ["", "[limits]\norders_per_account = 5\n"]) {
        for (const [end, expected] of ends) {
          const caller = yield* callerAt(profileOf(configOf(limits)))
          const asked = orders.create(caller, {
            identifiers: [dns("a.example")],
            notBefore: undefined,
            notAfter: undefined
          })
          const ready = yield* asked
          yield* sql("UPDATE authorizations SET status = 'valid'")
          yield* sql("UPDATE orders SET status = 'ready'")
          const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
          records.length = 0
          const finalizing = yield* Effect.flip(meanwhile(end, finalize(caller, ready.id, csr)))
          yield* sql("UPDATE accounts SET status = 'valid'")
          // On PostgreSQL, an order without limits is made by one statement and without a transaction.
          const asking = yield* Effect.flip(
            backend.dialect === "postgres" && limits === ""
              ? meanwhileAt("before", "INSERT INTO orders", end, asked)
              : meanwhile(end, asked)
          )
          for (const error of [finalizing, asking]) {
            const { status, type } = problemOf(error as AcmeError)
            assert.deepStrictEqual<ReadonlyArray<unknown>>([status, type], expected)
          }
          assert.notInclude(eventsOf(records), "db_statement_failed")
          assert.notInclude(eventsOf(records), "order_created")
          assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
          assert.notInclude(yield* column("SELECT status FROM orders"), "processing")
        }
      }
    }))

  test("are neither made nor finalized at a profile without a working signer, and the answer contains no file names", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      const ready = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      const { set } = yield* ProfileStates
      set(new Map([[profile.name, { trouble: "/etc/ca.pem ended", since: 0 }]]))
      const errors = yield* Effect.all([
        Effect.flip(orderOf(caller, "b.example")),
        Effect.flip(finalize(caller, ready.id, csr))
      ])
      for (const one of errors) {
        const error = one as AcmeError
        const { detail, status, type: refused } = problemOf(error)
        assert.deepStrictEqual([status, refused, retryAfter(error)], [503, type("serverInternal"), 60])
        assert.notInclude(detail, "ca.pem")
      }
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["ready"])
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
      set(new Map([["another", { trouble: "/etc/ca.pem ended", since: 0 }]]))
      assert.strictEqual((yield* finalize(caller, ready.id, csr)).status, "processing")
    }))

  if (backend.dialect === "postgres") {
    test("are not made for an account that is deleted meanwhile", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const other: Driver = yield* database.another
        const error = yield* other.exclusive((connection) =>
          Effect.gen(function*() {
            yield* other.begin(connection)
            yield* connection.executeRaw("DELETE FROM accounts", [])
            const asking = yield* Effect.forkChild(Effect.flip(orderOf(caller, "a.example")))
            yield* Effect.raceFirst(someoneWaits(connection), Fiber.await(asking))
            yield* other.commit(connection)
            return yield* Fiber.join(asking)
          })
        )
        assert.strictEqual(error._tag, "AccountDoesNotExist")
        assert.notInclude(eventsOf(records), "db_statement_failed")
      }))
  }

  test("offer every enabled challenge in the configured order for a name, and only dns-01 for a wildcard", () =>
    Effect.gen(function*() {
      const enabled = profileOf(configOf(`[challenge]\nenabled = ["tls-alpn-01", "dns-01", "http-01"]`))
      const caller = yield* callerAt(enabled)
      const order = yield* orderOf(caller, "*.A.example", "a.example")
      assert.deepStrictEqual(order.identifiers.map(({ value }) => value), ["*.a.example", "a.example"])
      const offered = yield* Effect.forEach(
        order.authorizationIds,
        (id) =>
          Effect.map(authorizations.find(caller, id), (view) => view.challenges.map((challenge) => challenge.type))
      )
      assert.deepStrictEqual(offered, [["dns-01"], ["tls-alpn-01", "dns-01", "http-01"]])
    }))

  test("are refused for a wildcard without dns-01, and with dns-01 for a name that is too long for its TXT record", () =>
    Effect.gen(function*() {
      for (const types of [`"http-01"`, `"tls-alpn-01", "http-01"`]) {
        const caller = yield* callerAt(profileOf(configOf(`[challenge]\nenabled = [${types}]`)))
        const refused = yield* Effect.flip(orderOf(caller, "*.a.example"))
        assert.deepInclude(problemOf(refused as AcmeError), { type: type("rejectedIdentifier"), status: 403 })
      }
      const long = `${"a.".repeat(116)}example`
      const withDns = yield* callerAt(profileOf(configOf(`[challenge]\nenabled = ["dns-01"]`)))
      assert.deepInclude(problemOf((yield* Effect.flip(orderOf(withDns, long))) as AcmeError), {
        type: type("malformed")
      })
      yield* orderOf(yield* callerAt(profile), long)
    }))

  test("leave nothing in the database if a write fails at any step", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      for (const table of ["orders", "order_identifiers", "authorizations", "challenges"]) {
        const isSqlite = backend.dialect === "sqlite"
        yield* isSqlite
          ? sql(`CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'planted'); END`)
          : Effect.andThen(
            sql(
              "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$"
            ),
            sql(`CREATE TRIGGER broken BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION broken()`)
          )
        const error = yield* Effect.flip(orderOf(caller, "a.example"))
        assert.strictEqual(error._tag, "StorageFailed")
        yield* sql(isSqlite ? "DROP TRIGGER broken" : "DROP FUNCTION broken CASCADE")
        for (const one of ["orders", "order_identifiers", "authorizations", "challenges"]) {
          assert.strictEqual(yield* count(`SELECT count(*) FROM ${one}`), 0, `${one} after ${table}`)
        }
      }
      yield* orderOf(caller, "a.example")
    }))

  test("are limited by the number of names that were sent, before duplicates are removed", () =>
    Effect.gen(function*() {
      assert.deepInclude(yield* refusal([]), { type: type("malformed"), status: 400 })
      const many = Array.from({ length: 101 }, () => dns("a.example"))
      assert.deepInclude(yield* refusal(many), { type: type("malformed"), status: 400 })
      const caller = yield* callerAt(profile)
      const names = Array.from({ length: 100 }, (_, index) => `n${index}.example`)
      assert.strictEqual((yield* orderOf(caller, ...names)).authorizationIds.length, 100)
      assert.strictEqual((yield* orderOf(caller, "x.example", "x.example", "X.example.")).authorizationIds.length, 1)
    }))

  test("must have a notAfter that is in the future and after notBefore", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      for (
        const dates of [{ notAfter: 999 }, { notAfter: 1000 }, { notBefore: 5000, notAfter: 5000 }, {
          notBefore: 9,
          notAfter: 8
        }]
      ) {
        assert.deepInclude(yield* refusal([dns("a.example")], dates), { type: type("malformed"), status: 400 })
      }
      const caller = yield* callerAt(profile)
      const past = { identifiers: [dns("a.example")], notBefore: 1, notAfter: 1001 }
      assert.strictEqual((yield* orders.create(caller, past)).notBefore, 1)
    }))

  test("are refused with a problem without subproblems if one name is refused, with the identifier as it was sent", () =>
    Effect.gen(function*() {
      const cases = [
        [dns("a..b"), "malformed", 400],
        [dns("bücher.example"), "malformed", 400],
        [dns("10.0.0.5"), "rejectedIdentifier", 403],
        [dns("*.A.example"), "rejectedIdentifier", 403],
        [{ type: "ip", value: "192.0.2.1" }, "unsupportedIdentifier", 400],
        [{ type: "DNS", value: "a.example" }, "unsupportedIdentifier", 400]
      ] as const
      for (const [identifier, name, status] of cases) {
        const problem = yield* refusal([dns("good.example"), identifier])
        assert.deepInclude(problem, { type: type(name), status, identifier })
        assert.notProperty(problem, "subproblems")
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
      assert.strictEqual(eventsOf(records).filter((event) => event === "order_rejected").length, cases.length)
    }))

  test("are refused for the names that the name constraints of the CA forbid, before anybody proves them", () =>
    Effect.gen(function*() {
      const nameConstraints = dnsConstraints({ permitted: ["example.org"], excluded: ["bad.example.org"] })
      const issuers = issuersOf((name) => name === profile.name ? { ...someIssuer, nameConstraints } : undefined)
      const judged = (...names: ReadonlyArray<string>) =>
        Effect.provideService(refusal(names.map(dns)), Issuers, issuers)
      for (const name of ["example.com", "badexample.org", "a.bad.example.org"]) {
        assert.deepStrictEqual(yield* judged("a.example.org", name), {
          type: type("rejectedIdentifier"),
          status: 403,
          detail: `${name}: The CA may not issue for this name: its name constraints forbid it.`,
          identifier: dns(name)
        })
      }
      assert.strictEqual((yield* judged("example.com", "example.net")).type, type("compound"))
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
    }))

  test("are refused with one compound problem and the highest status if several names are refused", () =>
    Effect.gen(function*() {
      const [first, second, third] = [dns("a..b"), { type: "ip", value: "::1" }, dns("10.0.0.5")]
      const problem = yield* refusal(
        [first, dns("good.example"), second, third].flatMap((one) => one === undefined ? [] : [one])
      )
      assert.deepInclude(problem, { type: type("compound"), status: 403 })
      assert.deepStrictEqual(
        problem.subproblems?.map(({ identifier, type }) => [type, identifier]),
        [[type("malformed"), first], [type("unsupportedIdentifier"), second], [type("rejectedIdentifier"), third]]
      )
      for (const { detail } of problem.subproblems ?? []) assert.notStrictEqual(detail, "")
      const client = yield* refusal([dns("a..b"), dns("c..d")])
      assert.strictEqual(client.status, 400)
    }))

  test("cause the same answer whether they do not exist or belong to another account or profile", () =>
    Effect.gen(function*() {
      const [owner, stranger, elsewhere] = [
        yield* callerAt(profile),
        yield* callerAt(profile),
        yield* callerAt(profileOf(config, "other"))
      ]
      const order = yield* orderOf(owner, "a.example")
      const [authz = AuthorizationId("")] = order.authorizationIds
      const absent = "00000000-0000-7000-8000-000000000000"
      for (const caller of [stranger, elsewhere, { ...elsewhere, accountId: owner.accountId }]) {
        for (
          const exit of [
            yield* Effect.exit(orders.find(caller, order.id)),
            yield* Effect.exit(orders.certificate(caller, order.id, 0)),
            yield* Effect.exit(authorizations.find(caller, authz)),
            yield* Effect.exit(authorizations.deactivate(caller, authz))
          ]
        ) assert.match(String(exit), /NotFound/)
      }
      assert.match(String(yield* Effect.exit(orders.find(owner, OrderId(absent)))), /NotFound/)
      assert.match(String(yield* Effect.exit(orders.certificate(owner, order.id, 0))), /NotFound/, "not valid yet")
      assert.deepStrictEqual(yield* column("SELECT status FROM authorizations"), ["pending"])
    }))

  describe("deactivating the authorization of an order", () => {
    test("changes nothing at the second request if the authorization was pending", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const { authorizationIds: [id = AuthorizationId("")] } = yield* orderOf(caller, "a.example")
        assert.strictEqual((yield* authorizations.deactivate(caller, id)).status, "deactivated")
        assert.strictEqual((yield* authorizations.deactivate(caller, id)).status, "deactivated")
        assert.strictEqual(eventsOf(records).filter((event) => event === "authz_deactivated").length, 1)
      }))

    test("takes a ready order back to pending if the authorization was valid, but leaves a processing order unchanged", () =>
      Effect.gen(function*() {
        for (const [before, after] of [["ready", "pending"], ["processing", "processing"]] as const) {
          const caller = yield* callerAt(profile)
          const order = yield* orderOf(caller, "a.example")
          yield* sql(`UPDATE authorizations SET status = 'valid'`)
          yield* sql(`UPDATE orders SET status = '${before}'`)
          yield* authorizations.deactivate(caller, order.authorizationIds[0] ?? AuthorizationId(""))
          assert.strictEqual((yield* orders.find(caller, order.id)).status, after)
        }
      }))

    test("is refused once the order is valid, or the authorization is invalid or expired", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const { authorizationIds: [id = AuthorizationId("")] } = yield* orderOf(caller, "a.example")
        const refused = Effect.flip(authorizations.deactivate(caller, id))
        yield* sql(`UPDATE orders SET status = 'valid'`)
        assert.strictEqual((yield* refused)._tag, "Malformed")
        yield* sql(`UPDATE orders SET status = 'pending'`)
        for (const status of ["invalid", "expired", "revoked"]) {
          yield* sql(`UPDATE authorizations SET status = '${status}'`)
          assert.strictEqual((yield* refused)._tag, "Malformed", status)
        }
        yield* sql(`UPDATE authorizations SET status = 'pending'`)
        yield* TestClock.adjust(`${profile.order.validity_seconds} seconds`)
        assert.strictEqual((yield* refused)._tag, "Malformed", "past its time")
        yield* sql(`UPDATE authorizations SET status = 'valid'`)
        yield* sql(`UPDATE orders SET status = 'ready'`)
        assert.strictEqual((yield* refused)._tag, "Malformed", "proved, but past its time")
        const told = records.filter(({ event }) => event === "authz_deactivation_refused")
        assert.deepStrictEqual(told.map(({ fields }) => fields["authz_id"]), Array.from({ length: 6 }, () => id))
      }))

    test("does not change an order that has become valid meanwhile", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const { authorizationIds: [id = AuthorizationId("")] } = yield* orderOf(caller, "a.example")
        yield* sql(`UPDATE authorizations SET status = 'valid'`)
        yield* sql(`UPDATE orders SET status = 'processing'`)
        const driver = database.driver()
        // The issuance commits between the first read of this operation and its transaction.
        const racing: Driver = {
          ...driver,
          transact: (body) =>
            Effect.andThen(
              Effect.provideService(sql(`UPDATE orders SET status = 'valid'`), Database, driver),
              driver.transact(body)
            )
        }
        const exit = yield* Effect.exit(Effect.provideService(authorizations.deactivate(caller, id), Database, racing))
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(yield* column("SELECT status FROM authorizations"), ["valid"])
        assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"])
      }))
  })
})
