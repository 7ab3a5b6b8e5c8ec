import { Effect } from "effect"
import { assert, describe } from "vitest"
import { decodedChain } from "../../../src/operations/operator/CertificateView.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import { decodedChainObject } from "../../../src/operations/operator/objects/CertificateObjects.ts"
import * as orders from "../../../src/operations/operator/OrderRecords.ts"
import type { Searching } from "../../../src/operations/operator/Search.ts"
import { search, searchObject } from "../../../src/operations/operator/Search.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"

const config = configOf()
const operators: Searching<never, never>["operators"] = (text) => Effect.succeed([{ username: `${text}-olga` }])
const viewer = { maySeeOperators: false, operators }

describe.each(databases)("the search box on $name", (backend) => {
  const { test } = useOwnCa(backend)
  const kinds = (text: string, who: Searching<never, never> = viewer) =>
    Effect.map(search(text, who), (found) => searchObject(found).results.map(({ kind, url }) => [kind, url]))
  const ids = (table: string) =>
    Effect.map(
      column(`SELECT ${backend.dialect === "sqlite" ? "lower(hex(id))" : "id"} FROM ${table}`),
      (found) => found.map((id) => id.replaceAll("-", "").replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5"))
    )

  test("finds the record with an id, in upper or lower case", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      const [authorization = ""] = yield* ids("authorizations")
      const [challenge = ""] = yield* ids("challenges")
      yield* sql(
        `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
         VALUES (${
          backend.dialect === "sqlite" ? `X'${"1".repeat(32)}'` : `'${"1".repeat(32)}'`
        }, 'nonce_sweep', 'x', '{}', 'ready', 1, 0, 1, 1, 1)`
      )
      const { credential } = yield* eab.create({ kind: "cli", id: "x" }, { label: "printers", profile: "default" })
      const page = `/ui/orders/${id}`
      assert.deepStrictEqual(yield* kinds(` ${id.toUpperCase()} `), [["order", page]])
      assert.deepStrictEqual(yield* kinds(caller.accountId), [["account", `/ui/accounts/${caller.accountId}`]])
      assert.deepStrictEqual(yield* kinds(authorization), [["authorization", page]])
      assert.deepStrictEqual(yield* kinds(challenge), [["challenge", page]])
      const [job = ""] = yield* ids("jobs")
      assert.deepStrictEqual(yield* kinds(job), [["job", `/ui/jobs/${job}`]])
      assert.deepStrictEqual(yield* kinds(credential.kid), [["eab", `/ui/eab/${credential.kid}`]])
      const [result] = (yield* search(credential.kid, viewer)).results
      assert.deepStrictEqual(result, {
        kind: "eab",
        id: credential.kid,
        profile: "default",
        label: "printers (active)",
        url: `/ui/eab/${credential.kid}`
      })
      const requestId = "21111111-1111-1111-1111-111111111111"
      yield* audit.insert({ event: "eab_created", actorKind: "cli", requestId, detail: { kid: "x" } })
      const [row] = yield* column(`SELECT id FROM audit_log WHERE request_id = '${requestId}'`)
      assert.deepStrictEqual(yield* kinds(requestId), [["audit", `/ui/audit/${row}`]])
      assert.deepStrictEqual(yield* kinds("31111111-1111-1111-1111-111111111111"), [])
    }))

  test("finds a certificate by its serial number, in every notation and at every profile", () =>
    Effect.gen(function*() {
      for (const profile of ["default", "other"]) {
        const { orderId, serial } = yield* issueTo(yield* callerAt(profileOf(config, profile)), ["a.example"])
        const pairs = serial.match(/../g) ?? []
        for (const spelled of [serial, serial.toUpperCase(), pairs.join(":"), pairs.join(" "), `00${serial}`]) {
          assert.deepStrictEqual(yield* kinds(spelled), [["order", `/ui/orders/${orderId}`]])
        }
        const listed = yield* orders.list({ certSerial: serial }, { limit: 5, offset: 0 })
        assert.deepStrictEqual(listed.items.map(({ id }) => id), [orderId])
      }
      assert.deepStrictEqual(yield* kinds("deadbeef"), [])
    }))

  test("finds at most five names: first the exact name, then names with this ending, or else names that contain the text", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const names = ["x.mid.example", "mid.example", "amid.example", "a.example"]
      for (const name of names) yield* orderOf(caller, name)
      const labels = (text: string) =>
        Effect.map(search(text, viewer), ({ results }) => results.map(({ label }) => label.split(" ")[0]))
      assert.deepStrictEqual(yield* labels("MID.example."), ["mid.example", "x.mid.example"])
      assert.deepStrictEqual(yield* labels("am"), ["a.example", "amid.example", "mid.example", "x.mid.example"])
      assert.deepStrictEqual(yield* labels("ami"), ["amid.example"])
      for (let at = 0; at < 5; at++) yield* orderOf(caller, `n${at}.mid.example`)
      assert.lengthOf(yield* labels("mid.example"), 5)
      assert.strictEqual((yield* labels("mid.example"))[0], "mid.example")
    }))

  test("finds operators only for users who may see them", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* kinds("Olga", { maySeeOperators: true, operators }), [
        ["operator", "/ui/operators/olga-olga"]
      ])
      assert.deepStrictEqual(yield* kinds("Olga"), [])
    }))

  test("does not search contacts", () =>
    Effect.gen(function*() {
      const found = searchObject(yield* search("a@example.org", viewer))
      assert.deepStrictEqual([found.results, found.hint?.slice(0, 26)], [[], "Contacts are not searched;"])
    }))

  test("shows a decoded certificate with its certID and its renewal window", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { leaf, orderId, serial } = yield* issueTo(caller, ["a.example", "b.example"])
      const shown = decodedChainObject(yield* decodedChain(config, orderId))
      const [first, second] = shown.certificates
      assert.deepInclude(first, {
        serial,
        sans: ["a.example", "b.example"],
        keyType: "ecdsa-p256",
        notAfter: new Date(leaf.validTo).toISOString().replace(".000Z", "Z"),
        extendedKeyUsage: ["serverAuth"],
        isCa: false
      })
      assert.deepInclude(second, { isCa: true, keyUsage: ["keyCertSign", "cRLSign"] })
      assert.strictEqual(first?.issuer, second?.subject)
      assert.match(shown.certId ?? "", /^[\w-]+\.[\w-]+$/)
      assert.isBelow(Date.parse(shown.renewalWindow?.start ?? ""), Date.parse(shown.renewalWindow?.end ?? ""))
      yield* orders.revoke(config, { kind: "cli", id: "x" }, orderId, 4)
      const revoked = decodedChainObject(yield* decodedChain(config, orderId))
      assert.isBelow(Date.parse(revoked.renewalWindow?.end ?? ""), Date.parse(shown.renewalWindow?.start ?? ""))
      const { id } = yield* orderOf(caller, "c.example")
      yield* Effect.flip(decodedChain(config, id))
    }))
})
