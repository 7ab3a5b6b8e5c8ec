import { Effect } from "effect"
import { assert, describe } from "vitest"
import { readStoredChain } from "../../../src/crypto/x509/Chain.ts"
import type { Told } from "../../support/Asked.ts"
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

  /** Returns the words of the timeline of an order. */
  const timelineIn = (told: Told) =>
    wordsOf({ ...told, text: /<ol class="timeline">(.*?)<\/ol>/s.exec(told.text)?.[1] ?? "" })
  const job = (kind: string, key: string, created: number, updated: number, more = "status = 'done'") =>
    Effect.gen(function*() {
      const octets = `x'${Buffer.from(`${kind}${key}`).toString("hex").slice(-32).padStart(32, "0")}'`
      yield* sql(
        `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
         VALUES (${octets}, '${kind}', '${key}', '{}', 'done', 1, 2, 5, ${created}, ${updated})`
      )
      yield* sql(`UPDATE jobs SET ${more} WHERE id = ${octets}`)
    })
  const trail = (
    event: string,
    order: string,
    at: number,
    more: { readonly actor?: string; readonly detail?: string }
  ) =>
    sql(
      `INSERT INTO audit_log (created_at, event, outcome, actor_kind, actor_id, order_id, detail)
       VALUES (${at}, '${event}', 'success', '${more.actor === undefined ? "acme" : "admin"}', '${
        more.actor ?? ""
      }', '${order}',
         '${more.detail ?? "{}"}')`
    )

  test("tell in a timeline what has happened, from the order to the revocation", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { path } = yield* issued(1000, `revoked_at = ${startsAt + 500}, revocation_reason = 4`)
      const id = path.split("/").at(-1) ?? ""
      const [challenge = ""] = yield* column("SELECT lower(hex(id)) FROM challenges WHERE type = 'http-01'")
      yield* sql(`UPDATE challenges SET status = 'valid', validated_at = ${startsAt + 30} WHERE type = 'http-01'`)
      const key = challenge.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
      yield* job("challenge_validate", key, startsAt + 20, startsAt + 30)
      yield* job("signer_issue", id, startsAt + 40, startsAt + 90)
      yield* trail("certificate_issued", id, startsAt + 90, {})
      yield* trail("certificate_revoked", id, startsAt + 500, { actor: "olga" })
      const told = timelineIn(yield* ask(path, held))
      const steps = [
        "The client placed the order",
        "The client answered a challenge a.example",
        "20 seconds after the order",
        "Validated by http-01 a.example",
        "The client sent the signing request",
        "40 seconds after the order",
        "The certificate was issued",
        "1 minute after the order",
        "The certificate was revoked by olga superseded (4)",
        "8 minutes after the order"
      ]
      assert.deepStrictEqual(steps.map((step) => told.indexOf(step)).filter((at) => at < 0), [], told)
      assert.deepStrictEqual(
        steps.map((step) => told.indexOf(step)),
        steps.map((step) => told.indexOf(step)).toSorted((a, b) => a - b)
      )
      assert.notInclude(told, "expire")
    }))

  test("tell in a timeline what a failed validation dialled, and that a time is not stored any more", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { id } = yield* orderOf(yield* caller, "a.example")
      const path = `/ui/orders/${id}`
      assert.match(timelineIn(yield* ask(path, held)), /The order expires in \d+ (?:day|hour)s/)
      yield* sql("UPDATE orders SET status = 'invalid'")
      yield* sql(
        `UPDATE challenges SET status = 'invalid', error = '{"type":"x:connection","status":400,"detail":"no"}',
           cause = '{"reason":"connect_failed","detail":"192.0.2.44 port 80: <b>refused</b>"}' WHERE type = 'http-01'`
      )
      const page = yield* ask(path, held)
      assert.notInclude(page.text, "<b>refused")
      assert.include(
        timelineIn(page).replaceAll("&lt;b&gt;", "").replaceAll("&lt;/b&gt;", ""),
        "The validation by http-01 failed a.example connect_failed: 192.0.2.44 port 80: refused The time is not stored."
      )
      yield* job("signer_issue", id, startsAt + 5, startsAt + 9, "status = 'failed', last_error = 'no token'")
      yield* trail("certificate_issue_failed", id, startsAt + 10, { detail: "{\"cause\":\"script_failed\"}" })
      const told = timelineIn(yield* ask(path, held))
      assert.include(told, "Attempt 2 of 5 to sign failed no token")
      assert.include(told, "No certificate was issued script_failed")
    }))

  test("fold the names of an order away from the eleventh on", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const names = (many: number) => Array.from({ length: many }, (_, index) => `n${index}.example`)
      const by = yield* caller
      const shownOf = Effect.fnUntraced(function*(many: number) {
        const { id } = yield* orderOf(by, ...names(many))
        return (yield* ask(`/ui/orders/${id}`, held)).text
      })
      assert.notInclude(yield* shownOf(10), "class=\"rest\"")
      const twelve = yield* shownOf(12)
      assert.match(twelve, /n9\.example<\/bdi><details class="rest"><summary>2 more<\/summary>.*n11\.example/s)
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
