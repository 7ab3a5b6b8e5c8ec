import { Effect } from "effect"
import { createHash } from "node:crypto"
import { assert, describe, it } from "vitest"
import { encodePem } from "../../src/crypto/asn1/Pem.ts"
import { CampaignId, OrderId } from "../../src/domain/Id.ts"
import * as campaigns from "../../src/store/campaigns/CampaignCertificateRows.ts"
import * as certificates from "../../src/store/orders/CertificateRows.ts"
import * as expiring from "../../src/store/orders/ExpiringRows.ts"
import * as orders from "../../src/store/orders/OrderSearch.ts"
import { partsOf } from "../../src/store/orders/StoredChain.ts"
import * as unknownEnds from "../../src/store/orders/UnknownEndRows.ts"
import * as renewals from "../../src/store/upstream/UpstreamRenewalRows.ts"
import { databases } from "../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, fieldsOf, profileOf, sql } from "../support/Graph.ts"
import { acmeKey, at, byAccount, register, surfaceOf } from "../support/Handle.ts"
import type { IssuedHere } from "../support/Issued.ts"
import { issueTo, useOwnCa } from "../support/Issued.ts"
import { madeAt } from "../support/LocalCa.ts"
import { storedChains } from "../support/StoredChains.ts"

/*
 * The chain of an order in both forms: whole, and with the leaf as DER and the issuers in a row that other orders share.
 */

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

  /** Stores a chain as the previous version does. */
  const join = ({ chain, orderId }: IssuedHere) =>
    sql(`UPDATE orders SET certificate = '${chain}', leaf = NULL, issuers = NULL WHERE id = ${literal(orderId)}`)

  const forms = sql(
    `SELECT certificate = '' AND leaf IS NOT NULL AND issuers IS NOT NULL AS apart,
       (SELECT count(*) FROM alternate_chains) AS kept FROM orders ORDER BY id`
  )
  const inOneRow = { apart: isSqlite ? 1 : true, kept: 1 }

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
      yield* join(issued)
      assert.deepStrictEqual(yield* reads, before)
    }))

  test("is stored with its issuers in one row for all certificates of a CA, which is stored again if it is lost", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const first = yield* issueTo(caller, ["a.example"])
      const second = yield* issueTo(caller, ["b.example"])
      assert.deepStrictEqual(yield* storedChains, [first.chain, second.chain])
      assert.deepStrictEqual(yield* forms, [inOneRow, inOneRow])
      yield* sql("DELETE FROM alternate_chains")
      const third = yield* issueTo(caller, ["c.example"])
      assert.deepStrictEqual(yield* storedChains, [first.chain, second.chain, third.chain])
      assert.deepStrictEqual(yield* forms, [inOneRow, inOneRow, inOneRow])
    }))

  test("is the leaf alone if nothing follows it", () =>
    Effect.gen(function*() {
      const { caller, download } = yield* someone
      const issued = yield* issueTo(caller, ["a.example"])
      yield* sql("UPDATE orders SET issuers = NULL")
      const { body, status } = yield* download(issued.orderId)
      assert.deepStrictEqual([status, body], [200, issued.chain.slice(0, issued.chain.indexOf("-----BEGIN", 1))])
    }))

  test("is not served without its issuers if their row is lost", () =>
    Effect.gen(function*() {
      const { caller, download } = yield* someone
      const issued = yield* issueTo(caller, ["a.example"])
      yield* sql("DELETE FROM alternate_chains")
      assert.strictEqual((yield* download(issued.orderId)).status, 500)
      const told = fieldsOf(records, "db_row_unreadable").map(({ row, statement }) => [statement, row])
      assert.deepStrictEqual(told, [["order_certificate", `id ${issued.orderId}`]])
    }))
})

describe("a chain is stored whole", () => {
  const octets = Buffer.alloc(100, 7)
  const [leaf, issuers] = [encodePem("CERTIFICATE", octets), encodePem("CERTIFICATE", Buffer.alloc(50, 9))]
  const chain = `${leaf}${issuers}`

  for (
    const [text, why] of [
      [leaf, "nothing follows its leaf"],
      [chain.replaceAll("\n", "\r\n"), "its lines end with CRLF"],
      [`subject=CN = a.example\n${chain}`, "text comes before its leaf"],
      [chain.replace(/(.{64})\n/, "$1"), "a line of its leaf is longer than 64 characters"],
      [chain.replaceAll("CERTIFICATE", "X509 CERTIFICATE"), "it has another label"],
      ["", "it is empty"]
    ] as const
  ) {
    it(`if ${why}`, () => {
      assert.deepStrictEqual(partsOf(text), {
        certificate: text,
        leaf: undefined,
        issuers: undefined,
        issuersPem: undefined
      })
    })
  }

  it("and otherwise in parts, whose issuers are not changed", () => {
    const behind = issuers.replaceAll("\n", "\r\n")
    assert.deepStrictEqual(partsOf(`${leaf}${behind}`), {
      certificate: "",
      leaf: octets,
      issuers: createHash("sha256").update(behind).digest(),
      issuersPem: behind
    })
  })
})
