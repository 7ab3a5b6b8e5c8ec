import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import type { AcmeKey, AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import type { Write } from "../../support/Faults.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import { column, configOf, count, eventsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * In each step from newAccount to the deactivation of the account, a database trigger makes every write fail once.
 * After that, the step succeeds (docs/contribute/attacks.md, "Orders and races").
 */

const config = configOf()
const surface = surfaceOf(config)

const tables = ["accounts", "orders", "order_identifiers", "authorizations", "challenges", "jobs", "audit_log"]

describe.each(databases)("a write that fails once on $name", (backend) => {
  const { records, test } = useWorld(backend, { around: (body) => Effect.ensuring(body, mend(backend.dialect)) })

  /**
   * Everything that is stored, except for the time when an account was last seen, because the request did not ask to
   * change that.
   */
  const stored = Effect.map(
    Effect.forEach(tables, (table) => sql(`SELECT * FROM ${table} ORDER BY 1`)),
    (found) => JSON.stringify(found, (name, value: unknown) => name.startsWith("last_seen") ? undefined : value, 1)
  )

  /**
   * Sends the request once for each write, which then fails, and checks that nothing of the request is stored. Then
   * sends the request again, and checks that it succeeds.
   */
  const despite = <R>(writes: ReadonlyArray<Write>, make: Effect.Effect<Answer, never, R>) =>
    Effect.gen(function*() {
      for (const write of writes) {
        const before = yield* stored
        yield* breakWrites(backend.dialect, write)
        const answer = yield* make
        const what = `${write.operation} of ${write.table}: ${answer.status} ${String(answer.body)}`
        assert.strictEqual(answer.status, 500, what)
        assert.include([undefined, "urn:ietf:params:acme:error:serverInternal"], bodyOf(answer).type, what)
        assert.notInclude(String(answer.body), "planted")
        assert.isString(headerOf(answer, "replay-nonce"))
        yield* mend(backend.dialect)
        assert.strictEqual(yield* stored, before, what)
      }
      const answer = yield* make
      assert.isBelow(answer.status, 300, String(answer.body))
      return answer
    })

  /** Runs every job to its end, with a write that works again after its first failure. */
  const work = (write: Write) =>
    Effect.gen(function*() {
      const { idle, pass } = yield* Runner.make(
        { ...config.jobs, owner: "host:1:a" },
        (yield* handlers(config)).filter(({ periodic }) => !periodic)
      )
      let failures = 0
      const repair = Effect.suspend(() => {
        if (!eventsOf(records).includes("db_statement_failed")) return Effect.void
        failures++
        records.length = 0
        return mend(backend.dialect)
      })
      records.length = 0
      yield* breakWrites(backend.dialect, write)
      while ((yield* count("SELECT count(*) FROM jobs WHERE status IN ('ready', 'running')")) > 0) {
        yield* pass
        const ending = yield* Effect.forkChild(idle)
        while (ending.pollUnsafe() === undefined) {
          yield* repair
          yield* TestClock.adjust("50 millis")
        }
        yield* repair
        // By then, every job that was put back is due, and expired leases are free again.
        yield* TestClock.adjust("2 minutes")
      }
      assert.isAbove(failures, 0, `${write.operation} of ${write.table} was wanted`)
    })

  const inserted = (...names: ReadonlyArray<string>) => names.map((table): Write => ({ table, operation: "INSERT" }))
  const updated = (...names: ReadonlyArray<string>) => names.map((table): Write => ({ table, operation: "UPDATE" }))
  const spent: Write = { table: "nonces", operation: "DELETE" }

  const newAccount = (key: AcmeKey) =>
    Effect.gen(function*() {
      const app = yield* surface
      const header = { jwk: key.jwk, url: urlOf(at("/newAccount")), nonce: yield* freshNonce }
      return yield* app.handle(posted(at("/newAccount"), signed(key, header, { termsOfServiceAgreed: true })))
    })

  const post = (key: AcmeKey, kid: string, url: string, payload?: object | string) =>
    Effect.flatMap(
      surface,
      (app) => Effect.flatMap(byAccount(key, kid, url.slice(urlOf("").length), payload), app.handle)
    )

  const newOrder = { identifiers: [{ type: "dns", value: "a.example" }] }
  const orderIn = (answer: Answer) => JSON.parse(String(answer.body)) as OrderBody
  const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")

  const challengeOf = (key: AcmeKey, kid: string, order: OrderBody) =>
    Effect.map(post(key, kid, order.authorizations[0] ?? ""), (answer) => {
      const { challenges: [challenge] } = JSON.parse(String(answer.body)) as AuthorizationBody
      return challenge?.url ?? ""
    })

  test("in a request leaves nothing of this request stored, and the next request succeeds", () =>
    Effect.gen(function*() {
      const [key, next] = [acmeKey(), acmeKey()]
      const kid = headerOf(yield* despite([...inserted("accounts"), spent], newAccount(key)), "location")
      const ask = (url: string, payload?: object | string, by = key) => post(by, kid, url, payload)

      yield* despite(updated("accounts"), ask(kid, { contact: ["mailto:a@b.example"] }))
      const order = orderIn(
        yield* despite(
          inserted("orders", "order_identifiers", "authorizations", "challenges"),
          ask(urlOf(at("/newOrder")), newOrder)
        )
      )
      const challenge = yield* challengeOf(key, kid, order)
      yield* despite([...updated("challenges"), ...inserted("jobs")], ask(challenge, {}))
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      yield* despite([...updated("orders"), ...inserted("jobs")], ask(order.finalize, { csr }))
      const given = orderIn(yield* ask(urlOf(at("/newOrder")), newOrder))
      yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
      yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
      yield* despite(
        updated("authorizations", "orders"),
        ask(given.authorizations[0] ?? "", { status: "deactivated" })
      )
      const target = urlOf(at("/keyChange"))
      const inner = signed(next, { jwk: next.jwk, url: target }, { account: kid, oldKey: key.jwk })
      yield* despite(updated("accounts"), ask(target, inner))
      yield* despite(updated("accounts"), ask(kid, { status: "deactivated" }, next))
      assert.sameMembers(
        [...yield* column("SELECT event FROM audit_log")],
        ["account_contact_updated", "account_key_changed", "account_deactivated"]
      )
    }))

  test("in a request uses up the nonce, so that a repeated request gets badNonce", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const key = acmeKey()
      const header = { jwk: key.jwk, url: urlOf(at("/newAccount")), nonce: yield* freshNonce }
      const request = posted(at("/newAccount"), signed(key, header, { termsOfServiceAgreed: true }))
      yield* breakWrites(backend.dialect, { table: "accounts", operation: "INSERT" })
      assert.strictEqual((yield* app.handle(request)).status, 500)
      yield* mend(backend.dialect)
      assert.strictEqual(bodyOf(yield* app.handle(request)).type, "urn:ietf:params:acme:error:badNonce")
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
    }))

  test("to the audit trail prevents the change that it would record", () =>
    Effect.gen(function*() {
      const key = acmeKey()
      const kid = headerOf(yield* newAccount(key), "location")
      yield* breakWrites(backend.dialect, { table: "audit_log", operation: "INSERT" })
      assert.strictEqual((yield* post(key, kid, kid, { contact: ["mailto:a@b.example"] })).status, 500)
      yield* mend(backend.dialect)
      assert.deepStrictEqual(yield* column("SELECT contact FROM accounts"), ["[]"])
      assert.strictEqual((yield* post(key, kid, kid, { contact: ["mailto:a@b.example"] })).status, 200)
      assert.deepStrictEqual(yield* column("SELECT event FROM audit_log"), ["account_contact_updated"])
    }))

  for (const write of updated("challenges", "authorizations", "orders", "jobs")) {
    test(`to ${write.table} in a validation does not prevent the validation from completing once`, () =>
      Effect.gen(function*() {
        const key = acmeKey()
        const kid = headerOf(yield* newAccount(key), "location")
        const order = orderIn(yield* post(key, kid, urlOf(at("/newOrder")), newOrder))
        yield* post(key, kid, yield* challengeOf(key, kid, order), {})
        yield* work(write)
        for (
          const [table, status] of [["challenges", "valid"], ["authorizations", "valid"], ["orders", "ready"]] as const
        ) {
          assert.deepStrictEqual(yield* column(`SELECT status FROM ${table}`), [status])
        }
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
      }))
  }

  for (const write of updated("orders", "jobs")) {
    test(`to ${write.table} in a signing does not prevent the certificate from being issued once`, () =>
      Effect.gen(function*() {
        const key = acmeKey()
        const kid = headerOf(yield* newAccount(key), "location")
        const placed = yield* post(key, kid, urlOf(at("/newOrder")), newOrder)
        yield* sql("UPDATE authorizations SET status = 'valid'")
        yield* sql("UPDATE orders SET status = 'ready'")
        assert.strictEqual((yield* post(key, kid, orderIn(placed).finalize, { csr })).status, 200)
        yield* work(write)
        assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"])
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
        assert.deepStrictEqual(yield* column("SELECT event FROM audit_log"), ["certificate_issued"])
      }))
  }
})
