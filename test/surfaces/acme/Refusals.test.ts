import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { databases } from "../../support/Databases.ts"
import { configOf, eventsOf, fieldsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  byAccount,
  freshNonce,
  headerOf,
  newClient,
  posted,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * The log says why a request was refused (docs/contribute/decisions/log-and-metrics.md, "Each refusal has a record").
 */

const config = configOf("meta.terms_of_service = \"https://ca.example/terms\"")

const newOrder = { identifiers: [{ type: "dns", value: "a.example" }] }
const noId = "00000000-0000-7000-8000-000000000000"

describe.each(databases)("a refused request on $name", (backend) => {
  const { records, test } = useWorld(backend, {
    first: () =>
      Effect.gen(function*() {
        const app = yield* surfaceOf(config)
        const [mine, other] = [yield* newClient(app), yield* newClient(app)]
        const theirs = yield* other.send(at("/newOrder"), newOrder)
        const own = yield* mine.send(at("/newOrder"), newOrder)
        records.length = 0
        const stranger = acmeKey()
        const byKey = (payload: object, target = at("/newAccount")) =>
          Effect.flatMap(freshNonce, (nonce) =>
            app.handle(posted(target, signed(stranger, { jwk: stranger.jwk, url: urlOf(target), nonce }, payload))))
        return { app, byKey, mine, other, own, theirs }
      })
  })
  const told = () => fieldsOf(records, "request_refused")

  test("has one log record with the reason, wherever it is refused", ({ app, byKey, mine, other, own, theirs }) =>
    Effect.gen(function*() {
      const terms = { termsOfServiceAgreed: true }
      const unknown = yield* byAccount(mine.key, urlOf(at(`/acct/${noId}`)), at("/newOrder"), newOrder)
      const order = JSON.parse(String(own.body)) as { readonly authorizations: ReadonlyArray<string> }
      const { challenges: [first] } = JSON.parse(String((yield* mine.send(order.authorizations[0] ?? "")).body)) as {
        readonly challenges: ReadonlyArray<{ readonly url: string }>
      }
      yield* sql("UPDATE authorizations SET status = 'deactivated'")
      const cases = [
        [app.handle(unknown), "account_does_not_exist"],
        [mine.send(headerOf(theirs, "location")), "not_found"],
        [mine.send((JSON.parse(String(theirs.body)) as typeof order).authorizations[0] ?? ""), "not_found"],
        [mine.send(`${other.kid}/orders`), "unauthorized"],
        [byKey({}), "user_action_required"],
        [byKey({ ...terms, contact: ["tel:1"] }), "unsupported_contact"],
        [byKey({ ...terms, contact: ["mailto:a"] }), "invalid_contact"],
        [byKey({ onlyReturnExisting: true }), "account_does_not_exist"],
        [mine.send(at("/newOrder"), { ...newOrder, notAfter: "1969-01-01T00:00:00Z" }), "malformed"],
        [mine.send(first?.url ?? "", {}), "malformed"],
        [app.handle(requestOf("GET", at("/renewalInfo/AA.AA"))), "no_such_certificate"],
        [app.handle(requestOf("GET", at("/newOrder"))), "method_not_allowed"]
      ] as const
      for (const [request, reason] of cases) {
        records.length = 0
        yield* request
        const found = told()
        assert.deepStrictEqual(found.map(({ reason }) => reason), [reason])
        assert.match(String(found[0]?.["detail"]), /[a-z] [a-z]/)
      }
    }))

  test("is logged at most twenty times a minute for one host and eighty times a minute for its network", ({ app, mine }) =>
    Effect.gen(function*() {
      const refuse = (clientIp: string) =>
        Effect.repeat(app.handle(requestOf("GET", at("/nothing"), { clientIp })), { times: 29 })
      yield* refuse("198.51.100.1")
      assert.lengthOf(told(), 20)
      for (const host of [2, 3, 4, 5, 6]) yield* refuse(`198.51.100.${host}`)
      assert.lengthOf(told(), 80)
      yield* refuse("203.0.113.1")
      assert.lengthOf(told(), 100)
      yield* TestClock.adjust("1 minute")
      yield* refuse("198.51.100.1")
      assert.lengthOf(told(), 120)
      records.length = 0
      yield* mine.send(at("/newOrder"), newOrder)
      assert.notInclude(eventsOf(records), "request_refused", "an order that is made")
    }))

  test("is logged without the query of its URL", ({ app, mine }) =>
    Effect.gen(function*() {
      const target = at("/newOrder?code=4711")
      const nonce = yield* freshNonce
      const request = posted(target, signed(mine.key, { kid: mine.kid, url: urlOf(at("/newOrder")), nonce }, newOrder))
      assert.include(String((yield* app.handle(request)).body), "4711")
      assert.include(String(told()[0]?.["detail"]), "/newOrder?***")
    }))
})
