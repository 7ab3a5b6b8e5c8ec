import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count, sql } from "../../support/Graph.ts"
import { at, bodyOf, newClient, requestOf, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Tests what RFC 8555 allows clients to send or tells them to expect, and what existing clients rely on. */

const objectOf = <A extends object>({ body }: Answer): A => JSON.parse(String(body)) as A

describe.each(databases)("a client that exists in practice, on $name", (backend) => {
  /** Makes a new account, and returns its URL and a function that posts a request of the account. */
  const someone = Effect.gen(function*() {
    const app = yield* surfaceOf(configOf(`[challenge]\nenabled = ["http-01", "dns-01", "tls-alpn-01"]\n`))
    const { kid, send } = yield* newClient(app)
    return { kid, post: send }
  })
  const { test } = useWorld(backend, { first: () => someone })

  test("may send back its whole account object, including the status, to update the contacts", ({ kid, post }) =>
    Effect.gen(function*() {
      const contact = ["mailto:a@b.example"]
      const answer = yield* post(kid, { status: "valid", contact, termsOfServiceAgreed: true, orders: `${kid}/orders` })
      assert.deepInclude(objectOf(answer), { status: "valid", contact })
      assert.deepInclude(objectOf(yield* post(kid)), { status: "valid", contact })
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'account_contact_updated'"), 1)
      assert.strictEqual((yield* post(kid, { status: "valid" })).status, 200)
      for (const status of ["revoked", "pending", "Valid", " "]) {
        const refused = yield* post(kid, { status, contact: [] })
        assert.deepStrictEqual([refused.status, bodyOf(refused).detail], [
          400,
          "The status of an account can only be set to deactivated."
        ])
      }
      assert.deepInclude(objectOf(yield* post(kid)), { status: "valid", contact })
      assert.deepInclude(objectOf(yield* post(kid, { status: "deactivated" })), { status: "deactivated", contact })
    }))

  test("sees every challenge of a pending authorization, but only the deciding challenge of a finished one", ({ post }) =>
    Effect.gen(function*() {
      const placed = yield* post(urlOf(at("/newOrder")), { identifiers: [{ type: "dns", value: "a.example" }] })
      const { authorizations: [url = ""] } = objectOf<OrderBody>(placed)
      const shown = Effect.map(post(url), (answer) => {
        return objectOf<AuthorizationBody>(answer).challenges.map(({ status, type }) => `${type} ${status}`)
      })
      assert.deepStrictEqual(yield* shown, ["http-01 pending", "dns-01 pending", "tls-alpn-01 pending"])
      yield* sql("UPDATE challenges SET status = 'processing' WHERE type <> 'http-01'")
      assert.deepStrictEqual(yield* shown, ["http-01 pending", "dns-01 processing", "tls-alpn-01 processing"])
      for (const status of ["valid", "invalid"]) {
        yield* sql(`UPDATE challenges SET status = '${status}' WHERE type = 'dns-01'`)
        yield* sql(`UPDATE authorizations SET status = '${status}'`)
        assert.deepStrictEqual(yield* shown, [`dns-01 ${status}`])
      }
    }))

  test("learns which member of a payload is wrong, and why", ({ kid, post }) =>
    Effect.gen(function*() {
      const newOrder = urlOf(at("/newOrder"))
      const revokeCert = urlOf(at("/revokeCert"))
      const identifiers = [{ type: "dns", value: "a.example" }]
      const { authorizations: [authz = ""] } = objectOf<OrderBody>(yield* post(newOrder, { identifiers }))
      const cases: ReadonlyArray<readonly [url: string, payload: object | string, detail: string]> = [
        [newOrder, "", "The payload is empty; this resource requires a JSON object."],
        [newOrder, "[]", "The payload is not a JSON object in UTF-8."],
        [
          newOrder,
          `{"identifiers":${"[".repeat(64)}${"]".repeat(64)}}`,
          "The payload is nested more than 64 levels deep."
        ],
        [newOrder, {}, "The member identifiers is missing."],
        [newOrder, { identifiers: "a.example" }, "The member identifiers must be an array."],
        [newOrder, { identifiers: [...identifiers, "a.example"] }, "The member identifiers[1] must be an object."],
        [newOrder, { identifiers: [{ type: "dns" }] }, "The member identifiers[0].value is missing."],
        [newOrder, { identifiers: [{ type: 7, value: "" }] }, "The member identifiers[0].type must be a text."],
        [newOrder, { identifiers, notAfter: "tomorrow" }, "The member notAfter is not an RFC 3339 time."],
        [newOrder, { identifiers, notBefore: 7 }, "The member notBefore must be a text."],
        [newOrder, { identifiers, replaces: 7 }, "The member replaces must be a text."],
        [revokeCert, { certificate: "", reason: 1.5 }, "The member reason is not a whole number."],
        [revokeCert, { certificate: "", reason: "1" }, "The member reason must be a number."],
        [kid, { contact: ["mailto:a@b.example", 7] }, "The member contact[1] must be a text."],
        [kid, { contact: 7 }, "The member contact must be an array."],
        [authz, { status: "valid" }, "The member status must be \"deactivated\"."],
        [
          newOrder,
          { identifiers, replaces: "x" },
          "The member replaces is no certID: two base64url texts with a dot between them."
        ],
        [newOrder, { identifiers, replaces: "AA.AA" }, "The member replaces names no certificate of this account."],
        [revokeCert, { certificate: "MI I" }, "The certificate is not base64url: it holds a space."],
        [revokeCert, { certificate: "MIIB" }, "The certificate is not the DER of one certificate."],
        [
          revokeCert,
          { certificate: Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64url") },
          "The certificate is not DER but PEM; send the DER inside it, as base64url."
        ]
      ]
      for (const [url, payload, detail] of cases) {
        const answer = objectOf(yield* post(url, payload))
        assert.deepStrictEqual(answer, { type: "urn:ietf:params:acme:error:malformed", status: 400, detail })
      }
    }))

  test("is refused if it asks for a certificate profile", ({ post }) =>
    Effect.gen(function*() {
      const identifiers = [{ type: "dns", value: "a.example" }]
      for (const [profile, shown] of [["tlsserver", "tlsserver"], ["default", "default"], [" ", "\\u{20}"]] as const) {
        const answer = yield* post(urlOf(at("/newOrder")), { identifiers, profile })
        assert.deepStrictEqual(bodyOf(answer), {
          type: "urn:ietf:params:acme:error:invalidProfile",
          status: 400,
          detail: `This server offers no certificate profiles, so it does not offer ${shown}; order without one.`
        })
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
    }))

  test("finds the member meta in the directory, even if meta is empty", () =>
    Effect.gen(function*() {
      for (const [more, meta] of [["", {}], ["[eab]\nenabled = true\n", { externalAccountRequired: true }]] as const) {
        const app = yield* surfaceOf(configOf(more))
        const answer = yield* app.handle(requestOf("GET", at("/directory")))
        assert.deepStrictEqual(objectOf<{ meta?: object }>(answer).meta, meta)
      }
    }))

  test("learns which contact is refused, and why an order is not finalized", ({ kid, post }) =>
    Effect.gen(function*() {
      const good = "mailto:a@b.example"
      const said = (url: string, payload: object) => Effect.map(post(url, payload), (answer) => bodyOf(answer).detail)
      assert.strictEqual(yield* said(kid, { contact: [good, "tel:1"] }), "The member contact[1] must be a mailto: URI.")
      assert.strictEqual(
        yield* said(kid, { contact: ["mailto:a@b.example,c@d.example"] }),
        "The member contact[0] must be one mail address without header fields."
      )
      const placed = yield* post(urlOf(at("/newOrder")), { identifiers: [{ type: "dns", value: "a.example" }] })
      const { finalize } = objectOf<OrderBody>(placed)
      const once = "it can be finalized only once, and only when it is ready."
      assert.strictEqual(yield* said(finalize, { csr: "" }), `The order is pending; ${once}`)
      yield* sql("UPDATE orders SET status = 'processing'")
      assert.strictEqual(yield* said(finalize, { csr: "" }), `The order is processing; ${once}`)
      yield* TestClock.adjust("400 days")
      yield* sql("UPDATE orders SET status = 'ready'")
      assert.strictEqual(
        yield* said(finalize, { csr: "" }),
        "The order expired at 1970-01-08T00:00:00Z; place a new one."
      )
    }))
})
