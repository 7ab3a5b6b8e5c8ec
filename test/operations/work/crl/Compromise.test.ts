import { Effect } from "effect"
import { Result } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { listedSerials } from "../../../../src/crypto/x509/Crl.ts"
import { finalize } from "../../../../src/operations/acme/Finalize.ts"
import { compromise } from "../../../../src/operations/operator/CaCompromise.ts"
import * as crlRecords from "../../../../src/operations/operator/CrlRecords.ts"
import { makeReport, refresh } from "../../../../src/operations/ProfileHealth.ts"
import { revokePage } from "../../../../src/operations/work/crl/CompromisedCa.ts"
import { Signers } from "../../../../src/services/signing/Signer.ts"
import * as crls from "../../../../src/store/revocation/Crls.ts"
import { makeCsr } from "../../../support/Csr.ts"
import { databases } from "../../../support/Databases.ts"
import { callerAt, column, configOf, count, fieldsOf, orderOf, profileOf, sql } from "../../../support/Graph.ts"
import { issueTo, useForeignSigner, useOwnCa, work } from "../../../support/Issued.ts"

/* A CA that is declared compromised (docs/contribute/decisions/rotation.md). */

const config = configOf()
const operator = { id: "olga", kind: "admin", surface: "api" } as const

describe.each(databases)("a compromised CA on $name", (backend) => {
  const { records, test } = useOwnCa(backend)
  const issuerId = Effect.map(Signers, ({ crlIssuers: [only] }) => only?.id ?? "")
  const listed = Effect.gen(function*() {
    const stored = yield* crls.find(yield* issuerId)
    return [...Result.getOrThrow(listedSerials(stored?.der ?? new Uint8Array()))].sort()
  })
  const declare = Effect.flatMap(issuerId, (issuer) => compromise(operator, issuer))

  test("revokes all live certificates that it has signed, once, in the name of who declared it", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const one = yield* issueTo(caller, ["a.example"])
      const other = yield* issueTo(caller, ["b.example"])
      const ended = yield* issueTo(caller, ["c.example"])
      yield* sql(`UPDATE orders SET cert_not_after = 1 WHERE cert_serial = '${ended.serial}'`)
      assert.isTrue(yield* declare)
      assert.isFalse(yield* declare)
      yield* work("local_ca_crl_regenerate")
      assert.deepStrictEqual(yield* listed, [one.serial, other.serial].sort())
      assert.deepStrictEqual(
        yield* column("SELECT DISTINCT revocation_reason FROM orders WHERE revoked_at IS NOT NULL"),
        ["2"]
      )
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'authority_compromised'"), 1)
      const issuer = yield* issuerId
      assert.deepStrictEqual(fieldsOf(records, "admin_authority_compromised"), [
        { username: "olga", surface: "api", issuer }
      ])
      assert.deepStrictEqual(fieldsOf(records, "local_ca_compromised_revoked"), [{ issuer, count: 2 }])
      assert.deepStrictEqual(
        yield* column("SELECT actor_kind || ' ' || actor_id FROM audit_log WHERE event = 'certificate_revoked'"),
        ["admin olga", "admin olga"]
      )
      assert.deepStrictEqual((yield* crlRecords.list(["default"])).map(({ issuance }) => issuance), ["compromised"])
    }))

  test("names the orders whose chain cannot be read, and revokes the rest", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const spoilt = yield* issueTo(caller, ["a.example"])
      const other = yield* issueTo(caller, ["b.example"])
      yield* sql(`UPDATE orders SET certificate = '', leaf = NULL WHERE cert_serial = '${spoilt.serial}'`)
      yield* declare
      yield* work("local_ca_crl_regenerate")
      assert.deepStrictEqual(yield* listed, [other.serial])
      assert.deepStrictEqual(fieldsOf(records, "db_row_unreadable").map(({ row }) => row), [`id ${spoilt.orderId}`])
    }))

  test("has none of its certificates stored after that, also if the job of an order had begun", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      yield* finalize(caller, id, makeCsr({ names: ["a.example"] }).csr.toString("base64url"))
      yield* declare
      yield* work("signer_issue")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["invalid"])
      const [error = ""] = yield* column("SELECT error FROM orders")
      assert.include(error, "must not be trusted any more")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 0)
      const [detail = ""] = yield* column("SELECT detail FROM audit_log WHERE event = 'certificate_issue_failed'")
      assert.include(detail, "issuer_compromised")
      assert.deepStrictEqual(fieldsOf(records, "order_finalize_issuer_compromised"), [{ order_id: id }])
      yield* work("local_ca_crl_regenerate")
      assert.deepStrictEqual(yield* listed, [])
    }))

  test("degrades its profile as soon as a worker looks", () =>
    Effect.gen(function*() {
      const report = makeReport("host:1:a")
      yield* sql(
        "INSERT INTO workers (owner, roles, version, started_at, last_seen_at) VALUES ('host:1:a', 'worker', '1', 0, 4102444800)"
      )
      yield* TestClock.adjust(1000)
      yield* report
      yield* declare
      yield* report
      yield* refresh
      const [trouble = ""] = yield* column("SELECT trouble FROM profile_states WHERE profile = 'default'")
      assert.include(trouble, "is compromised; put another CA in its place.")
      const caller = yield* callerAt(profileOf(config))
      assert.strictEqual((yield* Effect.flip(orderOf(caller, "a.example")))._tag, "ProfileDegraded")
    }))

  test("goes on after the last order that was looked at", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const first = yield* issueTo(caller, ["a.example"])
      yield* TestClock.adjust(5000)
      const second = yield* issueTo(caller, ["b.example"])
      yield* declare
      const literal = backend.dialect === "sqlite"
        ? `x'${first.orderId.replaceAll("-", "")}'`
        : `'${first.orderId}'::uuid`
      yield* sql(`UPDATE compromised_issuers SET scanned_to = ${literal}`)
      yield* work("local_ca_crl_regenerate")
      assert.deepStrictEqual(yield* listed, [second.serial])
      assert.strictEqual(yield* count("SELECT count(*) FROM compromised_issuers WHERE scanned_at IS NOT NULL"), 1)
    }))

  test("is looked for in a limited number of orders at a time, until there are no more", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* issueTo(caller, ["a.example"])
      yield* issueTo(caller, ["b.example"])
      yield* declare
      const issuer = yield* issuerId
      const revoked = count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL")
      assert.deepStrictEqual([yield* revokePage(issuer, 1), yield* revoked], [true, 1])
      assert.deepStrictEqual([yield* revokePage(issuer, 1), yield* revoked], [true, 2])
      assert.deepStrictEqual([yield* revokePage(issuer, 1), yield* revoked], [false, 2])
      assert.isFalse(yield* revokePage(issuer, 1))
    }))

  test("must be a CA of this service", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(compromise(operator, "0".repeat(64))))._tag, "NoSuch")
    }))
})

describe.each(databases)("a compromised CA on $name whose profile has another signer", (backend) => {
  const { test } = useForeignSigner(backend)

  test("leaves the certificates of other CAs alone", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* issueTo(caller, ["a.example"])
      const list = { number: 1, der: Buffer.from("x"), thisUpdate: 0, nextUpdate: 4_102_444_800 }
      yield* crls.insert({ issuer: "ab".repeat(32), ...list })
      yield* compromise(operator, "ab".repeat(32))
      yield* work("local_ca_crl_regenerate")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 0)
    }))
})
