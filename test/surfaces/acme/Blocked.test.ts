import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import * as blocking from "../../../src/operations/operator/AccountBlocking.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  configOf,
  count,
  fieldsOf,
  orderOf,
  profileOf,
  sql
} from "../../support/Graph.ts"
import { acmeKey, at, bodyOf, byAccount, headerOf, register, signed, surfaceOf, urlOf } from "../../support/Handle.ts"
import { issueTo, useOwnCa, work } from "../../support/Issued.ts"

/* What a client can do whose account an operator has blocked (docs/configure/policy.md, "Blocked accounts"). */

const config = configOf()
const operator = { kind: "cli", id: "olga" } as const
const secret = "it orders in a loop"
const unauthorized = "urn:ietf:params:acme:error:unauthorized"
const csrOf = (...names: ReadonlyArray<string>) => makeCsr({ names }).csr.toString("base64url")
const read = <A>({ body }: Answer): A => JSON.parse(String(body)) as A

describe.each(databases)("a client whose account is blocked, on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

  /** Makes a client with a certificate, an order that is pending, and one that is ready. */
  const made = Effect.gen(function*() {
    const app = yield* surfaceOf(config)
    const key = acmeKey()
    const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
    const kid = yield* register(app, key)
    const send = (to: string, payload?: object | string) =>
      Effect.flatMap(byAccount(key, kid, to.replace(urlOf(""), ""), payload), app.handle)
    const issued = yield* issueTo(caller, ["a.example"])
    const ready = yield* orderOf(caller, "ready.example")
    yield* sql("UPDATE authorizations SET status = 'valid'")
    yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
    const placed = yield* send(at("/newOrder"), { identifiers: [{ type: "dns", value: "pending.example" }] })
    const pending = read<OrderBody>(placed)
    const [authorization = ""] = pending.authorizations
    const [challenge] = read<AuthorizationBody>(yield* send(authorization)).challenges
    records.length = 0
    return {
      app,
      caller,
      key,
      kid,
      send,
      issued,
      ready,
      authorization,
      order: headerOf(placed, "location"),
      challenge: challenge?.url ?? "",
      block: blocking.block(operator, caller.accountId, secret)
    }
  })

  test("is refused new orders, challenges and finalizing, with the time of the block and not its reason", () =>
    Effect.gen(function*() {
      const { block, caller, challenge, ready, send } = yield* made
      const { account: { blockedAt = 0 } } = yield* block
      const requests = [
        send(at("/newOrder"), { identifiers: [{ type: "dns", value: "b.example" }] }),
        send(challenge, {}),
        send(at(`/order/${ready.id}/finalize`), { csr: csrOf("ready.example") })
      ]
      const refused = yield* Effect.all(requests)
      for (const answer of refused) {
        const { detail = "", status, type } = bodyOf(answer)
        assert.deepStrictEqual([answer.status, status, type], [403, 403, unauthorized])
        const since = new Date(blockedAt * 1000).toISOString().replace(".000", "")
        assert.include(detail, `The operator of this server has blocked the account since ${since}`)
        assert.notInclude(detail, secret)
      }
      // The block is told before anything else is looked at, so no program of a policy runs.
      for (
        const [path, payload] of [["/newOrder", { identifiers: [] }], [`/order/${ready.id}/finalize`, {
          csr: ""
        }]] as const
      ) {
        assert.strictEqual((yield* send(at(path), payload)).status, 403, path)
      }
      assert.deepStrictEqual(
        fieldsOf(records, "account_request_refused").slice(0, requests.length).map((
          { account_id, reason }
        ) => [account_id, reason]),
        requests.map(() => [caller.accountId, "blocked"])
      )
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 3)
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'challenge_validate'"), 0)
      yield* blocking.unblock(operator, caller.accountId)
      assert.deepStrictEqual((yield* Effect.all(requests)).map(({ status }) => status), [201, 200, 200])
    }))

  test("still reads, changes its contacts and its key, revokes, and ends itself", () =>
    Effect.gen(function*() {
      const { app, authorization, block, challenge, issued, key, kid, order, ready, send } = yield* made
      yield* block
      const next = acmeKey()
      const inner = signed(next, { alg: next.alg, jwk: next.jwk, url: urlOf(at("/keyChange")) }, {
        account: kid,
        oldKey: key.jwk
      })
      const done = yield* Effect.all({
        account: send(kid),
        list: send(`${kid}/orders`),
        order: send(order),
        ready: send(at(`/order/${ready.id}`)),
        certificate: send(at(`/certificate/${issued.orderId}`)),
        challenge: send(challenge),
        withdrawn: send(authorization, { status: "deactivated" }),
        contact: send(kid, { contact: ["mailto:a@example.org"] }),
        again: Effect.map(register(app, key), () => ({ status: 200 })),
        revoked: send(at("/revokeCert"), { certificate: issued.der.toString("base64url") }),
        rolled: send(at("/keyChange"), inner),
        ended: Effect.flatMap(
          byAccount(next, kid, kid.replace(urlOf(""), ""), { status: "deactivated" }),
          app.handle
        )
      })
      for (const [what, { status }] of Object.entries(done)) assert.strictEqual(status, 200, what)
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 1)
      assert.deepStrictEqual(yield* column("SELECT status FROM accounts"), ["deactivated"])
    }))

  test("gets nothing by a request that was accepted before the block", () =>
    Effect.gen(function*() {
      const { block, caller, ready } = yield* made
      yield* block
      // This caller was read before the block, as if a program of a policy had run since.
      assert.strictEqual((yield* Effect.flip(orderOf(caller, "b.example")))._tag, "AccountBlocked")
      const finalizing = finalize(caller, ready.id, csrOf("ready.example"))
      assert.strictEqual((yield* Effect.flip(finalizing))._tag, "AccountBlocked")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 3)
      assert.strictEqual((yield* orders.find(caller, ready.id)).status, "ready")
    }))

  test("gets no certificate for an order that was finalized before the block", () =>
    Effect.gen(function*() {
      const { block, caller, ready } = yield* made
      yield* finalize(caller, ready.id, csrOf("ready.example"))
      yield* block
      yield* work("signer_issue")
      const order = yield* orders.find(caller, ready.id)
      assert.deepStrictEqual([order.status, order.error?.type], ["invalid", unauthorized])
      assert.include(order.error?.detail, "was blocked")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 1)
    }))
})
