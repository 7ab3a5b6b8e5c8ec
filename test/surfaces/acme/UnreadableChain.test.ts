import { Effect } from "effect"
import { assert, describe } from "vitest"
import { namedLeafOf } from "../../../src/crypto/x509/CertId.ts"
import { databases } from "../../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, profileOf, sql } from "../../support/Graph.ts"
import { acmeKey, at, bodyOf, byAccount, register, requestOf, surfaceOf } from "../../support/Handle.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"

/*
 * A stored chain that cannot be read is a fault of this service (docs/contribute/decisions/unreadable-rows.md), not an
 * absent certificate.
 */

const config = configOf()

describe.each(databases)("a stored chain that cannot be read, on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

  const spoilt = Effect.fnUntraced(function*(spoil: (chain: string) => string) {
    const key = acmeKey()
    const app = yield* surfaceOf(config)
    const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
    const kid = yield* register(app, key)
    const issued = yield* issueTo(caller, ["a.example"])
    yield* sql(`UPDATE orders SET not_after = ${issued.leaf.validToDate.getTime() / 1000}`)
    yield* sql(`UPDATE orders SET certificate = '${spoil(issued.chain)}', leaf = NULL`)
    const post = (target: string, payload?: object) =>
      Effect.flatMap(byAccount(key, kid, at(target), payload), app.handle)
    const get = (target: string) => app.handle(requestOf("GET", at(target)))
    return { certId: namedLeafOf(issued.chain)?.certId ?? "", get, issued, post }
  })

  const damages: ReadonlyArray<readonly [string, (chain: string) => string]> = [
    ["no PEM", () => "unreadable"],
    ["cut", (chain) => chain.slice(0, 300)],
    ["no certificate", () => "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"]
  ]
  for (const [name, spoil] of damages) {
    test(`makes every request that needs the chain fail with 500 (${name})`, () =>
      Effect.gen(function*() {
        const { certId, get, issued, post } = yield* spoilt(spoil)
        const requests = {
          order_certificate: post(`/certificate/${issued.orderId}`),
          certificate_by_serial: post("/revokeCert", { certificate: issued.der.toString("base64url") })
        }
        for (const [statement, request] of Object.entries(requests)) {
          records.length = 0
          const answer = yield* request
          const problem = bodyOf(answer)
          assert.deepStrictEqual([answer.status, problem.type?.split(":").at(-1)], [500, "serverInternal"], statement)
          const told = records.filter(({ event }) => event === "db_row_unreadable").map(({ fields }) => fields)
          assert.deepStrictEqual(told.map(({ row, statement }) => [statement, row]), [
            [statement, `id ${issued.orderId}`]
          ])
        }
        assert.strictEqual((yield* get(`/renewalInfo/${certId}`)).status, 500)
        const replaced = { identifiers: [{ type: "dns", value: "a.example" }], replaces: certId }
        assert.strictEqual((yield* post("/newOrder", replaced)).status, 500)
      }))
  }

  test("does not prevent the order from being read, without its dates", () =>
    Effect.gen(function*() {
      const { issued, post } = yield* spoilt(() => "unreadable")
      records.length = 0
      const answer = yield* post(`/order/${issued.orderId}`)
      assert.deepStrictEqual([answer.status, "notAfter" in bodyOf(answer)], [200, false])
      assert.include(records.map(({ event }) => event), "db_row_unreadable")
    }))
})
