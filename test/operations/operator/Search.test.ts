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
import { callerAt, column, configOf, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
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

  test("finds accounts by a part of a contact, in any case, and by the first or the last address", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* callerAt(profileOf(config)), yield* callerAt(profileOf(config, "other"))]
      const [first, second] = [one, two].map(({ accountId }) => [["account", `/ui/accounts/${accountId}`]])
      const set = (accountId: string, what: string) =>
        sql(`UPDATE accounts SET ${what} WHERE id = ${idLiteral(backend.dialect, accountId)}`)
      yield* set(one.accountId, `contact = '["mailto:Ops@corp.example"]', created_ip = '198.51.100.7'`)
      yield* set(two.accountId, "created_ip = '2001:db8::1', last_seen_ip = '203.0.113.9', blocked_at = 1")
      for (const text of ["ops@corp.example", "mailto:OPS@CORP", "s@c", "198.51.100.7"]) {
        assert.deepStrictEqual<unknown>(yield* kinds(text), first, text)
      }
      for (const text of ["2001:db8::1", "2001:0DB8:0::1", "203.0.113.9"]) {
        assert.deepStrictEqual<unknown>(yield* kinds(text), second, text)
      }
      assert.include((yield* search("203.0.113.9", viewer)).results[0]?.label, "(blocked)")
      for (const text of ["nobody@corp.example", "198.51.100.8", "%@corp.example"]) {
        const found = searchObject(yield* search(text, viewer))
        assert.deepStrictEqual(found.results, [], text)
        assert.include(found.hint, "among the newest 100,000 accounts", text)
      }
    }))

  test("finds certificates by the beginning of their serial number, at every profile", () =>
    Effect.gen(function*() {
      const orders: Array<ReadonlyArray<string>> = []
      for (
        const [profile, serial] of [["default", "0badcafe00"], ["other", "0badcaff"], ["other", "1badcafe"]] as const
      ) {
        const { orderId } = yield* issueTo(yield* callerAt(profileOf(config, profile)), ["a.example"])
        yield* sql(`UPDATE orders SET cert_serial = '${serial}' WHERE id = ${idLiteral(backend.dialect, orderId)}`)
        orders.push(["order", `/ui/orders/${orderId}`])
      }
      const [one, two] = orders
      const found = (text: string) => Effect.map(kinds(text), (all) => all.toSorted())
      const both = [one, two].toSorted()
      for (const text of ["0badca", "0x0BADCA", "0b:ad:ca", "0b ad ca"]) {
        assert.deepStrictEqual<unknown>(yield* found(text), both, text)
      }
      assert.deepStrictEqual<unknown>(yield* found("0badcafe"), [one])
      for (const [text, isExact] of [["0badcafe00", true], ["0badca", false], ["0b:ad:ca", true]] as const) {
        assert.strictEqual((yield* search(text, viewer)).isExact, isExact, text)
      }
      assert.deepStrictEqual(yield* found("badcafe0"), [])
      const fingerprint = "ab:".repeat(32).slice(0, -1)
      assert.include((yield* search(fingerprint, viewer)).hint, "openssl x509 -noout -serial")
    }))

  test("does not walk over all names while somebody types", () =>
    Effect.gen(function*() {
      yield* orderOf(yield* callerAt(profileOf(config)), "mid.example")
      const found = (text: string, isTyping: boolean) =>
        Effect.map(search(text, { ...viewer, isTyping }), ({ results }) => results.length)
      assert.deepStrictEqual([yield* found("id.ex", false), yield* found("id.ex", true)], [1, 0])
      assert.strictEqual(yield* found("example", true), 1)
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
