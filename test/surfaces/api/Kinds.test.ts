import { Effect } from "effect"
import { assert, describe } from "vitest"
import { signedIn, useApi } from "../../support/Api.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, orderOf, profileOf, sql } from "../../support/Graph.ts"

/* Kinds of certificates over the API. A program signs here, so it decides what certificates contain. */

const toml = `[signer]
backend = "custom"
custom.script_path = "sign"
[certificates.kinds]
default.description = "Servers"
mutual.description = "Both"
mutual.keys = ["ecdsa-p384"]
`

describe.each(databases)("kinds of certificates over the API on $name", (backend) => {
  const { config, test } = useApi(backend, toml)

  test("are listed for viewers, and a CSR is tried by operators", (asking) =>
    Effect.gen(function*() {
      const viewer = yield* signedIn(asking, "vic", "viewer")
      const listed = yield* asking.ask("/api/kinds?profile=default", viewer)
      assert.strictEqual(listed.status, 200)
      assert.deepInclude(listed.json as object, { total: 2 })
      const held = yield* signedIn(asking, "olga", "operator")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      const tries = (members: object, by: typeof held = held) =>
        asking.ask("/api/kinds/try", {
          method: "POST",
          body: { csr, profile: "default", names: ["a.example"], ...members },
          ...by
        })
      assert.strictEqual((yield* tries({}, viewer)).status, 403)
      assert.deepStrictEqual((yield* tries({})).json as unknown, {
        profile: "default",
        kind: "default",
        backend: "custom",
        outcome: "accepted"
      })
      const refused = yield* tries({ kind: "mutual" })
      assert.strictEqual(refused.status, 200)
      assert.deepInclude(refused.json as object, {
        outcome: "refused",
        refusal: {
          type: "urn:ietf:params:acme:error:badCSR",
          status: 400,
          detail: "The key is ecdsa-p256, and the accepted keys are ecdsa-p384."
        }
      })
      for (
        const members of [
          { csr: "" },
          { csr: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" },
          { profile: "none" },
          { kind: "bogus" },
          { names: "a.example" }
        ]
      ) {
        assert.strictEqual((yield* tries(members)).status, 400, JSON.stringify(members).slice(0, 80))
      }
    }))

  test("are members of orders, and filter lists and exports", (asking) =>
    Effect.gen(function*() {
      const held = yield* signedIn(asking, "vic", "viewer")
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE orders SET kind = 'mutual'")
      yield* orderOf(caller, "b.example")
      const kindsIn = (path: string) =>
        Effect.map(
          asking.ask(path, held),
          ({ json }) => (json as unknown as { items: ReadonlyArray<{ kind: string }> }).items.map(({ kind }) => kind)
        )
      assert.deepStrictEqual(yield* kindsIn("/api/orders"), ["default", "mutual"])
      for (const kind of ["default", "mutual"]) {
        assert.deepStrictEqual(yield* kindsIn(`/api/orders?kind=${kind}`), [kind])
        assert.deepStrictEqual(yield* kindsIn(`/api/orders/export?format=json&kind=${kind}`), [kind])
      }
      assert.deepInclude((yield* asking.ask(`/api/orders/${id}`, held)).json as object, { kind: "mutual" })
      for (const path of ["/api/orders", "/api/orders/export"]) {
        const { json, status } = yield* asking.ask(`${path}?kind=bogus`, held)
        assert.strictEqual(status, 400)
        assert.deepInclude(json as object, { error: "invalid_status" })
      }
    }))
})
