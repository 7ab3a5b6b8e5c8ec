import { Effect } from "effect"
import { assert, describe } from "vitest"
import { sha256 } from "../../src/crypto/Digest.ts"
import { CampaignId, OrderId } from "../../src/domain/Id.ts"
import * as campaigns from "../../src/store/campaigns/CampaignCertificateRows.ts"
import * as certificates from "../../src/store/orders/CertificateRows.ts"
import * as expiring from "../../src/store/orders/ExpiringRows.ts"
import * as orders from "../../src/store/orders/OrderSearch.ts"
import * as unknownEnds from "../../src/store/orders/UnknownEndRows.ts"
import * as renewals from "../../src/store/upstream/UpstreamRenewalRows.ts"
import { databases } from "../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, fieldsOf, profileOf, sql } from "../support/Graph.ts"
import { acmeKey, at, byAccount, register, surfaceOf } from "../support/Handle.ts"
import type { IssuedHere } from "../support/Issued.ts"
import { issueTo, useOwnCa } from "../support/Issued.ts"
import { madeAt } from "../support/LocalCa.ts"

/* The chain of an order in the form that the next version writes: the leaf as DER, and the issuers in a shared row. */

const config = configOf()
const first = OrderId("00000000-0000-0000-0000-000000000000")
const campaign = CampaignId("01890a5d-ac96-774b-bcce-b302099a8057")

describe.each(databases)("a chain with its leaf apart, on $name", (backend) => {
  const { records, test } = useOwnCa(backend)
  const isSqlite = backend.dialect === "sqlite"
  const octets = (hex: string) => isSqlite ? `x'${hex}'` : `'\\x${hex}'`
  const literal = (id: string) => isSqlite ? `x'${id.replaceAll("-", "")}'` : `'${id}'`

  const someone = Effect.gen(function*() {
    const key = acmeKey()
    const app = yield* surfaceOf(config)
    const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
    const kid = yield* register(app, key)
    const download = (id: OrderId) => Effect.flatMap(byAccount(key, kid, at(`/certificate/${id}`)), app.handle)
    return { caller, download }
  })

  const split = ({ chain, der, orderId }: IssuedHere, { areIssuersKept = true } = {}) =>
    Effect.gen(function*() {
      const issuers = chain.slice(chain.indexOf("-----BEGIN", 1))
      const id = sha256(Buffer.from(issuers))
      if (areIssuersKept) yield* sql(`INSERT INTO alternate_chains (id, chain) VALUES ('${id}', '${issuers}')`)
      yield* sql(
        `UPDATE orders SET certificate = '', leaf = ${octets(der.toString("hex"))}, issuers = ${octets(id)}
         WHERE id = ${literal(orderId)}`
      )
    })

  test("is read by every statement as the chain that it was", () =>
    Effect.gen(function*() {
      const { caller, download } = yield* someone
      const issued = yield* issueTo(caller, ["a.example"])
      const id = issued.orderId
      const none = literal(first)
      yield* sql(
        `INSERT INTO campaigns (id, state, filter, reason, created_at, actor_kind, revoked_to, filled_to, looked_to)
         VALUES (${literal(campaign)}, 'running', '{}', 'x', 1, 'cli', ${none}, ${none}, ${none})`
      )
      yield* sql(
        `INSERT INTO campaign_certificates (order_id, campaign_id) VALUES (${literal(id)}, ${literal(campaign)})`
      )
      yield* sql(
        `INSERT INTO upstream_orders (order_id, status, csr_der, created_at, updated_at, renewal_due)
         VALUES (${literal(id)}, 'valid', ${octets("00")}, 1, 1, 1)`
      )
      const page = { now: madeAt, after: first, limit: 10 }
      const { accountId } = caller
      const profile = caller.profile.name
      const pubkey = issued.leaf.publicKey.export({ type: "spki", format: "der" })
      const reads = Effect.gen(function*() {
        const ended = unknownEnds.find(profile, 10)
        return {
          download: (yield* download(id)).body,
          byId: yield* certificates.certificate({ id, profile, accountId }),
          bySerial: yield* certificates.findBySerial(profile, issued.serial),
          ofSerials: yield* certificates.ofSerials([issued.serial]),
          livePage: yield* certificates.livePage(page),
          liveOfKey: yield* certificates.liveOfKey({ ...page, pubkey }),
          record: yield* orders.findRecord(id),
          expiring: yield* expiring.find([id]),
          walk: yield* campaigns.walk({ ...page, isChainWanted: true }),
          revocable: yield* campaigns.revocablePage(campaign, first, 10),
          due: yield* renewals.due(madeAt, 10),
          unknownEnds: yield* Effect.acquireUseRelease(
            sql("UPDATE orders SET cert_not_after = NULL"),
            () => ended,
            () => Effect.orDie(sql(`UPDATE orders SET cert_not_after = ${issued.leaf.validToDate.getTime() / 1000}`))
          )
        }
      })
      const before = yield* reads
      for (const [name, found] of Object.entries(before)) {
        const texts = JSON.stringify(found instanceof Map ? [...found] : found)
        assert.include(texts, JSON.stringify(issued.chain).slice(1, -1), name)
      }
      yield* split(issued)
      assert.deepStrictEqual(yield* reads, before)
    }))

  test("is the leaf alone if nothing follows it", () =>
    Effect.gen(function*() {
      const { caller, download } = yield* someone
      const issued = yield* issueTo(caller, ["a.example"])
      yield* split(issued)
      yield* sql("UPDATE orders SET issuers = NULL")
      const { body, status } = yield* download(issued.orderId)
      assert.deepStrictEqual([status, body], [200, issued.chain.slice(0, issued.chain.indexOf("-----BEGIN", 1))])
    }))

  test("is not served without its issuers if their row is lost", () =>
    Effect.gen(function*() {
      const { caller, download } = yield* someone
      const issued = yield* issueTo(caller, ["a.example"])
      yield* split(issued, { areIssuersKept: false })
      assert.strictEqual((yield* download(issued.orderId)).status, 500)
      const told = fieldsOf(records, "db_row_unreadable").map(({ row, statement }) => [statement, row])
      assert.deepStrictEqual(told, [["order_certificate", `id ${issued.orderId}`]])
    }))
})
