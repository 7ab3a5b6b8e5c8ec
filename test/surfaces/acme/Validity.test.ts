import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { rfc3339 } from "../../../src/engine/Time.ts"
import type { OrderBody } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count, sql } from "../../support/Graph.ts"
import { at, bodyOf, headerOf, newClient, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useForeignSigner, useOwnCa, work } from "../../support/Issued.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"

/* The validity that a client asks for, an order shows and its certificate has (RFC 8555 section 7.4). */

const orderOf = ({ body }: Answer): OrderBody => JSON.parse(String(body)) as OrderBody
const surface = surfaceOf(configOf())
const identifiers = [{ type: "dns", value: "a.example" }]
const days = (many: number): string => rfc3339(madeAt + many * daySeconds)

interface Dates {
  readonly notBefore?: string | undefined
  readonly notAfter?: string | undefined
}

const shownIn = (answer: Answer): Dates => {
  const { notAfter, notBefore } = orderOf(answer)
  return { ...(notBefore === undefined ? {} : { notBefore }), ...(notAfter === undefined ? {} : { notAfter }) }
}

/**
 * Places an order with dates. Returns what the order shows at first, and what the order and its certificate show after
 * an issuance an hour later.
 */
const ordered = Effect.fnUntraced(function*(wish: Dates) {
  const { send } = yield* newClient(yield* surface)
  const placed = yield* send(urlOf(at("/newOrder")), { identifiers, ...wish })
  assert.strictEqual(placed.status, 201, String(placed.body))
  yield* TestClock.adjust("1 hour")
  yield* sql("UPDATE authorizations SET status = 'valid'")
  yield* sql("UPDATE orders SET status = 'ready'")
  const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
  const finalized = yield* send(orderOf(placed).finalize, { csr })
  assert.strictEqual(finalized.status, 200, String(finalized.body))
  yield* work()
  const done = yield* send(headerOf(placed, "location"))
  const { certificate = "" } = orderOf(done)
  const { validFrom, validTo } = new X509Certificate(String((yield* send(certificate)).body))
  const [notBefore, notAfter] = [validFrom, validTo].map((text) => rfc3339(Date.parse(text) / 1000))
  return { placed: shownIn(placed), finalized: shownIn(finalized), done: shownIn(done), leaf: { notBefore, notAfter } }
})

describe.each(databases)("the validity of an order, on $name", (backend) => {
  describe("at a local CA", () => {
    const { test } = useOwnCa(backend)

    test("is shortened to what the CA can issue", () =>
      Effect.gen(function*() {
        const { done, finalized, leaf, placed } = yield* ordered({ notBefore: days(-1), notAfter: days(365) })
        assert.deepStrictEqual(placed, { notBefore: rfc3339(madeAt - 3600), notAfter: days(90) })
        assert.deepStrictEqual(finalized, leaf)
        assert.deepStrictEqual(done, leaf)
        assert.strictEqual(leaf.notAfter, placed.notAfter)
        assert.strictEqual(yield* count("SELECT not_after FROM orders"), madeAt + 365 * daySeconds)
        assert.strictEqual(yield* count("SELECT not_before FROM orders"), madeAt - daySeconds)
      }))

    test("is the requested one if the CA can issue it", () =>
      Effect.gen(function*() {
        const wish = { notBefore: days(2), notAfter: days(10) }
        const both = yield* ordered(wish)
        for (const dates of [both.placed, both.finalized, both.done, both.leaf]) assert.deepStrictEqual(dates, wish)
        const { done, leaf, placed } = yield* ordered({ notAfter: days(10) })
        assert.deepStrictEqual([placed, done], [{ notAfter: days(10) }, { notAfter: days(10) }])
        assert.strictEqual(leaf.notAfter, days(10))
        assert.deepStrictEqual((yield* ordered({})).done, {})
      }))

    test("is refused with the possible dates if no part of it is possible", () =>
      Effect.gen(function*() {
        const { send } = yield* newClient(yield* surface)
        for (const wish of [{ notBefore: days(90) }, { notBefore: days(100), notAfter: days(200) }]) {
          const answer = yield* send(urlOf(at("/newOrder")), { identifiers, ...wish })
          assert.deepStrictEqual([answer.status, bodyOf(answer).type], [400, "urn:ietf:params:acme:error:malformed"])
          assert.include(bodyOf(answer).detail ?? "", `between ${rfc3339(madeAt - 3600)} and ${days(90)}`)
        }
        assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
      }))

    test("ends no later than the CA", () =>
      Effect.gen(function*() {
        const { send } = yield* newClient(yield* surface)
        yield* TestClock.adjust("3650 days")
        const placed = yield* send(urlOf(at("/newOrder")), { identifiers, notAfter: days(3700) })
        assert.deepStrictEqual(shownIn(placed), { notAfter: rfc3339(madeAt - 3600 + 3653 * daySeconds) })
        const late = yield* send(urlOf(at("/newOrder")), { identifiers, notBefore: days(3653) })
        assert.strictEqual(late.status, 400, String(late.body))
      }))
  })

  describe("at another signer", () => {
    const { test } = useForeignSigner(backend)

    test("is not shown before the certificate exists", () =>
      Effect.gen(function*() {
        const config = configOf(`signer.backend = "custom"\nsigner.custom.script_path = "/nowhere"`)
        const { send } = yield* newClient(yield* surfaceOf(config))
        const placed = yield* send(urlOf(at("/newOrder")), { identifiers, notBefore: days(-1), notAfter: days(365) })
        assert.deepStrictEqual(shownIn(placed), {})
      }))
  })
})
