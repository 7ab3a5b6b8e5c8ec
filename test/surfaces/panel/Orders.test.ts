import { Effect } from "effect"
import { assert, describe } from "vitest"
import { readStoredChain } from "../../../src/crypto/x509/Chain.ts"
import { sqlite } from "../../support/Databases.ts"
import { callerAt, column, idLiteral, orderOf, orderWith, profileOf, sql } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"
import { selfSigned } from "../../support/Shown.ts"

/* The pages of orders (docs/contribute/decisions/panel.md). */

const nobody = "01890a5d-ac96-774b-bcce-b302099a8057"
const custom = "[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\"\n"

describe("the pages of orders", () => {
  const { config, test } = usePanel(sqlite, custom)
  const caller = Effect.suspend(() => callerAt(profileOf(config)))

  /** Makes an order with a certificate that expires `seconds` from now, and returns the order's path. */
  const issued = Effect.fnUntraced(function*(seconds: number, set = "revoked_at = NULL") {
    const { cert } = yield* selfSigned("a.example", startsAt)
    const chain = cert + cert
    const id = yield* orderWith(
      yield* caller,
      `status = 'valid', certificate = '${chain}', cert_serial = '01', cert_not_after = ${startsAt + seconds}, ${set}`,
      "a.example"
    )
    return { path: `/ui/orders/${id}`, chain }
  })

  test("list orders by filters, and say what is wrong with an invalid one", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const by = yield* caller
      yield* orderOf(by, "a.example")
      yield* orderOf(by, "b.example")
      const told = yield* ask("/ui/orders?status=pending&identifier=b.example", held)
      assert.strictEqual(told.status, 200)
      assert.include(told.text, "b.example</")
      assert.notInclude(told.text, "a.example</")
      const refused = yield* ask("/ui/orders?status=none", held)
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "invalid_status")
    }))

  test("refresh themselves as long as the order or one of its jobs can change", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { id } = yield* orderOf(yield* caller, "a.example")
      const isLive = Effect.map(ask(`/ui/orders/${id}`, held), ({ text }) => text.includes("data-poll"))
      assert.isTrue(yield* isLive, "an order that is pending")
      yield* sql("UPDATE orders SET status = 'invalid'")
      assert.isFalse(yield* isLive)
      for (const [at, status] of ["done", "ready", "running"].entries()) {
        yield* sql("DELETE FROM jobs WHERE status <> 'done'")
        yield* sql(
          `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
           VALUES (${
            idLiteral("sqlite", `${nobody.slice(0, -1)}${at}`)
          }, 'signer_issue', '${id}', '{}', '${status}', 1, 1,
             3, 1, 1)`
        )
        assert.strictEqual(yield* isLive, status !== "done", status)
      }
    }))

  test("say what the problem of an order means, if this version knows its type", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { id } = yield* orderOf(yield* caller, "a.example")
      const after = (type: string) =>
        Effect.andThen(
          sql(`UPDATE orders SET status = 'invalid', error = '{"type":"${type}","status":429,"detail":"no"}'`),
          Effect.map(ask(`/ui/orders/${id}`, held), wordsOf)
        )
      assert.include(
        yield* after("urn:ietf:params:acme:error:rateLimited"),
        "What this means The client has reached a limit of this service or of its upstream"
      )
      for (const type of ["urn:ietf:params:acme:error:toString", "urn:example:new"]) {
        const words = yield* after(type)
        assert.include(words, "Problem document")
        assert.notInclude(words, "What this means")
      }
    }))

  test("show a certificate and send its chain, if there is one", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { chain, path } = yield* issued(1000)
      assert.include((yield* ask(path, held)).text, "chain.pem")
      const file = yield* ask(`${path}/chain.pem`, held)
      assert.deepStrictEqual([file.status, file.text], [200, chain])
      assert.match(file.headers["content-disposition"] ?? "", /^attachment; filename="[\w-]+\.pem"$/)
      const { id } = yield* orderOf(yield* caller, "b.example")
      assert.notInclude((yield* ask(`/ui/orders/${id}`, held)).text, "chain.pem")
      assert.strictEqual((yield* ask(`/ui/orders/${id}/chain.pem`, held)).status, 404)
    }))

  test("offer to delete an order unless its certificate can still be used", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const kept = "cannot be deleted while its certificate can still be used"
      const isKept = (path: string) => Effect.map(ask(path, held), (told) => wordsOf(told).includes(kept))
      for (
        const [seconds, set, isLive] of [
          [1, undefined, true],
          [0, undefined, false],
          [1000, "revoked_at = 1", false],
          [1000, "cert_not_after = NULL", true]
        ] as const
      ) assert.strictEqual(yield* isKept((yield* issued(seconds, set)).path), isLive)
      const { id } = yield* orderOf(yield* caller, "b.example")
      assert.isFalse(yield* isKept(`/ui/orders/${id}`))
      const gone = yield* send({ ask }, held, `/ui/orders/${id}/delete`)
      assert.strictEqual(gone.headers["hx-redirect"], "/ui/orders?done=order-deleted")
      assert.strictEqual((yield* ask(`/ui/orders/${id}`, held)).status, 404)
    }))

  test("revoke with a reason from the list, at once or through the signer", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const { chain, path } = yield* issued(1000)
      const [, offered = ""] = /<select name="reason">(.*?)<\/select>/s.exec((yield* ask(path, held)).text) ?? []
      const codes = [...offered.matchAll(/value="(\d+)">(\w+)/g)].map(([, code, name]) => `${code} ${name}`)
      assert.deepStrictEqual(codes, [
        "0 unspecified",
        "1 keyCompromise",
        "2 cACompromise",
        "3 affiliationChanged",
        "4 superseded",
        "5 cessationOfOperation",
        "6 certificateHold",
        "8 removeFromCRL",
        "9 privilegeWithdrawn",
        "10 aACompromise"
      ])
      for (const reason of ["7", "11", "x", "-1"]) {
        assert.isTrue(isBeside(yield* send({ ask }, held, `${path}/revoke`, { reason }), 400, "bad_request"), reason)
      }
      const queued = yield* send({ ask }, held, `${path}/revoke`)
      assert.strictEqual(queued.headers["hx-redirect"], `${path}?done=revocation-queued`)
      yield* sql(`INSERT INTO crls VALUES ('${readStoredChain(chain)?.issuerId}', 1, X'00', 1, 2)`)
      const done = yield* send({ ask }, held, `${path}/revoke`, { reason: "4" })
      assert.strictEqual(done.headers["hx-redirect"], `${path}?done=revoked`)
      assert.deepStrictEqual(yield* column("SELECT revocation_reason FROM orders"), ["4"])
      assert.include((yield* ask(path, held)).text, "reason superseded (4)")
    }))
})
