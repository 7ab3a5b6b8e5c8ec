import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { OrderId } from "../../../src/domain/Id.ts"
import { AuthorizationId } from "../../../src/domain/Id.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import * as accounts from "../../../src/operations/acme/Accounts.ts"
import * as authorizations from "../../../src/operations/acme/Authorizations.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import { jobObject } from "../../../src/operations/operator/Objects.ts"
import { CsrRejected, SigningFailed } from "../../../src/services/signing/Signer.ts"
import * as stored from "../../../src/store/AccountRows.ts"
import { databases } from "../../support/Databases.ts"
import { column, count, eventsOf, profileOf, signsAtOnce, sql } from "../../support/Graph.ts"
import { finalized, relay, relaying, relayJobs, trail, upstreamRows, useRelays } from "../../support/Relayed.ts"

/*
 * Tests how a relayed order ends without a certificate in signer_relay_issue
 * (docs/contribute/decisions/job-outcomes.md, "Giving up").
 */

const away = new SigningFailed({ cause: "signer_failed", detail: "no route to the upstream" })
const refusal = (detail: string, problemType = "unauthorized") =>
  new SigningFailed({ cause: "upstream_refused", detail, problemType })
const operator = { kind: "cli", id: "tester" } as const

describe.each(databases)("a relayed order without a certificate on $name", (backend) => {
  const { asked, database, play, records, test } = useRelays(backend)
  const validity = `${profileOf(relaying).order.validity_seconds} seconds` as const

  const orderError = Effect.map(column("SELECT error FROM orders"), ([error = ""]) => JSON.parse(error) as object)
  const without = Effect.gen(function*() {
    assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["invalid"])
    assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 0)
  })

  test("ends with badCSR and the upstream's text if the upstream rejects the CSR", () =>
    Effect.gen(function*() {
      const { caller, id } = yield* finalized()
      play(() => new CsrRejected({ detail: "the key is too small" }))
      yield* relay
      const order = yield* orders.find(caller, id)
      assert.strictEqual(order.status, "invalid")
      assert.deepInclude(order.error, {
        type: "urn:ietf:params:acme:error:badCSR",
        status: 400,
        detail: "the key is too small"
      })
      assert.deepStrictEqual(yield* upstreamRows, [["invalid", "the key is too small"]])
      assert.deepStrictEqual(yield* relayJobs, ["done"])
      assert.deepStrictEqual(yield* trail, [
        { event: "certificate_issue_failed", reason: "badCSR", detail: { cause: "bad_csr" } }
      ])
    }))

  describe("whose account or authorization is deactivated", () => {
    const ended = Effect.fnUntraced(function*(upstream: string, cause = "authority_withdrawn") {
      yield* without
      assert.deepInclude(yield* orderError, { type: "urn:ietf:params:acme:error:unauthorized", status: 403 })
      assert.deepStrictEqual(yield* upstreamRows, [["invalid", upstream]])
      assert.deepStrictEqual(yield* relayJobs, ["done"])
      assert.deepStrictEqual((yield* trail).at(-1), {
        event: "certificate_issue_failed",
        reason: "unauthorized",
        detail: { cause }
      })
      assert.include(eventsOf(records), "order_finalize_authority_withdrawn")
    })
    const unauthorized = ended("authority withdrawn")

    test("is not sent to the upstream if its account was deactivated before", () =>
      Effect.gen(function*() {
        const { caller } = yield* finalized()
        const account = yield* Effect.flatMap(stored.find("default", caller.accountId), Effect.fromNullishOr)
        yield* accounts.deactivate(caller, account)
        yield* relay
        assert.deepStrictEqual(asked, [])
        yield* unauthorized
      }))

    test("is not sent to the upstream if one of two authorizations was deactivated before, whatever the upstream has authorized", () =>
      Effect.gen(function*() {
        const { caller, order } = yield* finalized("default", ["a.example", "b.example"])
        yield* authorizations.deactivate(caller, order.authorizationIds[1] ?? AuthorizationId(""))
        yield* relay
        assert.deepStrictEqual(asked, [])
        yield* unauthorized
      }))

    for (
      const [what, statement] of [
        ["its account is deactivated", "UPDATE accounts SET status = 'deactivated'"],
        ["its account loses its scope", "UPDATE accounts SET scope_lost = 1"],
        ["its account is blocked", "UPDATE accounts SET blocked_at = 1"],
        ["an authorization is deactivated", "UPDATE authorizations SET status = 'deactivated'"]
      ] as const
    ) {
      test(`has its certificate discarded if ${what} while the upstream works`, () =>
        Effect.gen(function*() {
          yield* finalized()
          play(({ request }) => Effect.andThen(database.use(sql(statement)), signsAtOnce(request)))
          yield* relay
          assert.lengthOf(asked, 1)
          yield* ended("the order has ended", /scope_lost/.test(statement) ? "credential_denied" : undefined)
        }))
    }

    for (const column of ["scope_lost", "blocked_at"]) {
      test(`is not sent to the upstream if its account has ${column}`, () =>
        Effect.gen(function*() {
          yield* finalized()
          yield* sql(`UPDATE accounts SET ${column} = 1`)
          yield* relay
          assert.deepStrictEqual(asked, [])
          yield* ended("authority withdrawn", column === "scope_lost" ? "credential_denied" : undefined)
        }))
    }

    test("is not sent to the upstream a second time if its account is deactivated between two attempts", () =>
      Effect.gen(function*() {
        yield* finalized()
        play(() => away)
        yield* relay
        yield* sql("UPDATE accounts SET status = 'deactivated'")
        yield* TestClock.adjust("1 hour")
        yield* relay
        assert.lengthOf(asked, 1)
        yield* unauthorized
      }))
  })

  describe("that the upstream refuses", () => {
    for (
      const [problemType, type, status, says] of [
        ["unauthorized", "serverInternal", 500, "The upstream authority refused the order: no such account"],
        ["userActionRequired", "serverInternal", 500, "The upstream authority refused the order: no such account"],
        ["constructor", "serverInternal", 500, "The upstream authority refused the order: no such account"],
        ["rejectedIdentifier", "rejectedIdentifier", 403, "The upstream authority refused a name: no such account"],
        [
          "unsupportedIdentifier",
          "unsupportedIdentifier",
          400,
          /^The upstream authority certifies no such name, and says/
        ],
        ["malformed", "malformed", 400, /^The upstream authority considers the order malformed, and says/],
        ["caa", "caa", 403, /^The upstream authority says that a CAA record forbids the certificate: no such account$/],
        ["badPublicKey", "badPublicKey", 400, /^The upstream authority does not take the key of the signing request/]
      ] as const
    ) {
      test(`ends at once with ${type} and the upstream's text if the problem is ${problemType}`, () =>
        Effect.gen(function*() {
          const { caller } = yield* finalized()
          play(() => refusal("no such account", problemType))
          yield* relay
          yield* without
          const error = yield* orderError
          assert.deepInclude(error, { type: `urn:ietf:params:acme:error:${type}`, status })
          assert.match(
            (error as { readonly detail: string }).detail,
            typeof says === "string" ? new RegExp(`^${says}$`) : says
          )
          const name = problemType === "rejectedIdentifier" ? "rejectedIdentifier: " : ""
          const kept = `upstream_refused: ${name}no such account`
          assert.deepStrictEqual(yield* upstreamRows, [["invalid", kept]])
          assert.deepStrictEqual(yield* relayJobs, ["failed"])
          assert.deepStrictEqual(yield* trail, [
            { event: "certificate_issue_failed", reason: type, detail: { cause: "upstream_refused", error: kept } }
          ])
          const [row] = yield* sql(
            "SELECT actor_kind, actor_id, profile, identifiers, client_ip, user_agent, request_id FROM audit_log"
          )
          assert.deepStrictEqual({ ...row }, {
            actor_kind: "acme",
            actor_id: caller.accountId,
            profile: "default",
            identifiers: "[\"a.example\"]",
            client_ip: "192.0.2.1",
            user_agent: "test/1",
            request_id: "request-1"
          })
          assert.includeMembers([...eventsOf(records)], ["upstream_relay_failed", "order_finalize_abandoned"])
        }))
    }

    for (
      const [types, type, status] of [
        [["caa", "rejectedIdentifier"], "compound", 403],
        [["caa", "dns"], "serverInternal", 500]
      ] as const
    ) {
      test(`ends with ${type} and a subproblem for each name if the names are refused with ${types.join(" and ")}`, () =>
        Effect.gen(function*() {
          yield* finalized("default", ["a.example", "b.example"])
          const subproblems = types.map((type, index) => ({
            type,
            detail: `no ${index}`,
            identifier: { type: "dns", value: ["a.example", "b.example"][index] ?? "" }
          }))
          play(() =>
            new SigningFailed({ cause: "upstream_refused", detail: "no", problemType: "compound", subproblems })
          )
          yield* relay
          const error = yield* orderError
          const urn = "urn:ietf:params:acme:error:"
          assert.deepInclude(error, {
            type: `${urn}${type}`,
            status,
            subproblems: subproblems.map((part) => ({
              ...part,
              type: `${urn}${part.type === "dns" ? "serverInternal" : part.type}`
            }))
          })
        }))
    }

    test("keeps 500 characters of a long text in the trail, and 2000 characters in the upstream row", () =>
      Effect.gen(function*() {
        yield* finalized()
        const words = "<script>alert(1)</script>".repeat(200)
        play(() => refusal(words))
        yield* relay
        const error = `upstream_refused: ${words}`
        assert.deepStrictEqual((yield* trail)[0]?.detail, { cause: "upstream_refused", error: error.slice(0, 500) })
        assert.deepStrictEqual(yield* upstreamRows, [["invalid", error.slice(0, 2000)]])
      }))
  })

  test("ends as a refused order, and not as a refused name, if only the upstream's text looks like a refused name", () =>
    Effect.gen(function*() {
      yield* finalized()
      play(() => refusal("rejectedIdentifier: no such account", "unauthorized"))
      yield* relay
      const detail = "The upstream authority refused the order: rejectedIdentifier: no such account"
      assert.deepInclude(yield* orderError, { detail })
    }))

  test("continues after an attempt of a previous version, and ends with the present failure", () =>
    Effect.gen(function*() {
      const { id } = yield* finalized()
      const before = "poll_timeout: connect ECONNREFUSED 10.0.0.1:443"
      yield* sql(`UPDATE jobs SET last_error = '${before}', attempts = 1`)
      const lastErrors = Effect.map(
        jobs.list({ orderId: id }, { limit: 10, offset: 0 }),
        ({ items }) => items.map((job) => jobObject(job).lastError)
      )
      assert.deepStrictEqual(yield* lastErrors, [before])
      play(() => refusal("no such account", "rejectedIdentifier"))
      yield* relay
      const error = "upstream_refused: rejectedIdentifier: no such account"
      assert.deepStrictEqual(yield* lastErrors, [error])
      assert.deepInclude(yield* orderError, { type: "urn:ietf:params:acme:error:rejectedIdentifier" })
      assert.deepStrictEqual((yield* trail).map(({ detail }) => detail), [{ cause: "upstream_refused", error }])
    }))

  test("ends with serverInternal and poll_timeout in the trail if it takes too long at the upstream", () =>
    Effect.gen(function*() {
      yield* finalized()
      play(() => new SigningFailed({ cause: "poll_timeout", detail: "connect ECONNREFUSED 10.0.0.1:443" }))
      yield* relay
      yield* without
      assert.deepInclude(yield* orderError, { type: "urn:ietf:params:acme:error:serverInternal", status: 500 })
      assert.match(
        JSON.stringify(yield* orderError),
        /did not issue the certificate in time; a new order may succeed, and the server's log has the reason/
      )
      assert.notInclude(JSON.stringify(yield* orderError), "10.0.0.1")
      const error = "poll_timeout: connect ECONNREFUSED 10.0.0.1:443"
      assert.deepStrictEqual(yield* upstreamRows, [["invalid", error]])
      assert.deepStrictEqual(yield* relayJobs, ["failed"])
      assert.deepStrictEqual((yield* trail).map(({ detail }) => detail), [{ cause: "poll_timeout", error }])
    }))

  test("ends at once with chain_rejected in the trail if its chain is refused", () =>
    Effect.gen(function*() {
      yield* finalized()
      play(() => new SigningFailed({ cause: "chain_rejected", detail: "planted" }))
      yield* relay
      yield* without
      assert.deepInclude(yield* orderError, { type: "urn:ietf:params:acme:error:serverInternal", status: 500 })
      assert.deepStrictEqual(yield* relayJobs, ["failed"])
      assert.deepStrictEqual((yield* trail).map(({ detail }) => detail), [
        { cause: "chain_rejected", error: "chain_rejected: planted" }
      ])
    }))

  for (const [cause, told] of [["signer_failed", "attempts_exhausted"]] as const) {
    test(`is tried again if the upstream fails with ${cause}, and is then abandoned with serverInternal and audited as ${told}`, () =>
      Effect.gen(function*() {
        yield* finalized()
        play(() => new SigningFailed({ cause, detail: "planted" }))
        for (let attempt = 1; attempt <= 3; attempt++) {
          assert.deepStrictEqual(yield* upstreamRows, [["processing", null]])
          assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["processing"])
          yield* relay
          yield* TestClock.adjust("2 hours")
        }
        assert.lengthOf(asked, 3)
        yield* without
        assert.deepInclude(yield* orderError, { type: "urn:ietf:params:acme:error:serverInternal", status: 500 })
        assert.notInclude(JSON.stringify(yield* orderError), "planted")
        assert.deepStrictEqual(yield* upstreamRows, [["invalid", `${cause}: planted`]])
        assert.deepStrictEqual(yield* relayJobs, ["failed"])
        assert.deepStrictEqual((yield* trail).map(({ detail }) => detail), [
          { cause: told, error: `${cause}: planted` }
        ])
      }))
  }

  for (const [what, cause] of [["at once", "upstream_refused"], ["after all attempts", "signer_failed"]] as const) {
    test(`ends with rateLimited and the upstream's text if the upstream limits it ${what}`, () =>
      Effect.gen(function*() {
        yield* finalized()
        const detail = "too many; it is not to be asked before 2026-01-01T00:00:00Z"
        play(() => new SigningFailed({ cause, detail, problemType: "rateLimited" }))
        for (let attempt = 1; attempt <= (cause === "signer_failed" ? 3 : 1); attempt++) {
          yield* relay
          yield* TestClock.adjust("2 hours")
        }
        yield* without
        assert.deepStrictEqual(yield* orderError, {
          type: "urn:ietf:params:acme:error:rateLimited",
          status: 429,
          detail: `The upstream authority limits requests, and says: ${detail}`
        })
        assert.deepInclude((yield* trail)[0], { reason: "rateLimited" })
      }))
  }

  test("is not checked at the upstream before the upstream permits another request", () =>
    Effect.gen(function*() {
      const { id } = yield* finalized()
      yield* sql(`UPDATE upstream_orders SET upstream_order_url = 'https://ca.example/order/1'`)
      const again = { atLeast: 3600, atMost: 3600 }
      play(() => new SigningFailed({ cause: "upstream_refused", detail: "later", problemType: "rateLimited", again }))
      const now = yield* currentSeconds
      yield* relay
      yield* without
      const look = yield* column(`SELECT run_at FROM jobs WHERE kind = 'orphan_revoke' AND payload LIKE '%${id}%'`)
      assert.deepStrictEqual(look, [String(now + 3600)])
    }))

  describe("after its expiry", () => {
    const expired = Effect.gen(function*() {
      yield* without
      assert.deepStrictEqual(yield* upstreamRows, [["invalid", "deadline passed"]])
      assert.deepStrictEqual(yield* relayJobs, ["failed"])
      assert.deepStrictEqual((yield* trail).map(({ detail }) => detail), [
        { cause: "order_expired", error: "deadline passed" }
      ])
    })

    test("is no longer sent to the upstream", () =>
      Effect.gen(function*() {
        yield* finalized()
        yield* TestClock.adjust(validity)
        yield* relay
        assert.deepStrictEqual(asked, [])
        yield* expired
      }))

    test("has its certificate discarded if one arrives", () =>
      Effect.gen(function*() {
        yield* finalized()
        play(({ request }) => Effect.andThen(TestClock.adjust(validity), signsAtOnce(request)))
        yield* relay
        assert.lengthOf(asked, 1)
        yield* expired
      }))
  })

  describe("when an operator intervenes", () => {
    const jobOf = (orderId: OrderId) =>
      Effect.map(
        jobs.list({ orderId }, { limit: 10, offset: 0 }),
        ({ items: [job] }) => job?.id ?? assert.fail("there is no job")
      )

    test("becomes invalid if the operator cancels its job, and the order at the upstream is abandoned", () =>
      Effect.gen(function*() {
        const { id } = yield* finalized()
        play(() => away)
        yield* relay
        const job = yield* jobOf(id)
        assert.isTrue(jobs.endsOrder(yield* jobs.find(job)))
        assert.strictEqual((yield* jobs.cancel(operator, job)).status, "cancelled")
        yield* without
        assert.deepInclude(yield* orderError, { type: "urn:ietf:params:acme:error:serverInternal" })
        assert.deepStrictEqual(yield* upstreamRows, [["invalid", "cancelled by an operator"]])
        assert.deepStrictEqual(yield* trail, [
          {
            event: "certificate_issue_failed",
            reason: "serverInternal",
            detail: { cause: "cancelled", error: "cancelled by an operator" }
          },
          { event: "job_cancelled", reason: null, detail: { kind: "signer_relay_issue", job_id: job, subject: id } }
        ])
        assert.deepStrictEqual(yield* column("SELECT actor_kind || ' ' || actor_id FROM audit_log"), [
          "cli tester",
          "cli tester"
        ])
        yield* TestClock.adjust("1 hour")
        yield* relay
        assert.lengthOf(asked, 1)
      }))

    test("does not change if the operator cancels its failed job, because the order has already ended", () =>
      Effect.gen(function*() {
        const { id } = yield* finalized()
        play(() => refusal("no such account"))
        yield* relay
        const [before, error] = [yield* upstreamRows, yield* orderError]
        yield* jobs.cancel(operator, yield* jobOf(id))
        assert.deepStrictEqual(yield* relayJobs, ["cancelled"])
        assert.deepStrictEqual(yield* upstreamRows, before)
        assert.deepStrictEqual(yield* orderError, error)
        assert.deepStrictEqual((yield* trail).map(({ event }) => event), ["certificate_issue_failed", "job_cancelled"])
        // Cancelling a failed job leaves its order alone even if that order is still `processing`, which should not
        // occur.
        const other = yield* finalized("other")
        yield* sql("UPDATE jobs SET status = 'failed' WHERE status = 'ready'")
        yield* jobs.cancel(operator, yield* jobOf(other.id))
        assert.sameMembers([...yield* column("SELECT status FROM orders")], ["invalid", "processing"])
        assert.sameMembers([...yield* column("SELECT status FROM upstream_orders")], ["invalid", "processing"])
      }))
  })
})
