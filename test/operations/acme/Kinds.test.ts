import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import type { KeyObject } from "node:crypto"
import { generateKeyPairSync, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import * as pkijs from "pkijs"
import { assert, describe } from "vitest"
import { problemOf } from "../../../src/domain/Problem.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import { detail } from "../../../src/operations/operator/OrderRecords.ts"
import type { Config } from "../../../src/settings/AppConfig.ts"
import * as certificates from "../../../src/store/orders/CertificateRows.ts"
import { openssl } from "../../crypto/Pki.ts"
import { der, makeCsr, oid } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, profileOf, sql } from "../../support/Graph.ts"
import { useOwnCa, workUnder } from "../../support/Issued.ts"
import { newEcKey } from "../../support/Keys.ts"

const described = (kinds: string) => configOf(`[certificates.kinds]\ndefault.description = "For servers"\n${kinds}`)

const config = described(`
mutual.description = "For servers that are clients too"
mutual.usages = ["server_auth", "client_auth"]
mutual.validity = "6h"
mutual.keys = ["ecdsa-p256", "rsa-3072+"]
named.description = "With a subject"
named.common_name = "first"
named.subject = { organization = "Example, Inc.", country = "CH" }
named.policies = ["1.3.6.1.4.1.99999.1"]
named.unrequested = "refuse_all"
bare.description = "Without a common name"
bare.common_name = "never"
bare.unrequested = "ignore"
`)

const [serverAuth, clientAuth, emailProtection] = ["1", "2", "4"].map((last) => `1.3.6.1.5.5.7.3.${last}`)
const extension = (id: string, ...value: ReadonlyArray<Uint8Array>) => der(0x30, oid(id), der(0x04, ...value))
const usages = (...purposes: ReadonlyArray<string | undefined>) =>
  extension("2.5.29.37", der(0x30, ...purposes.map((purpose = "") => oid(purpose))))
const mustStaple = extension("1.3.6.1.5.5.7.1.24", der(0x30, der(0x02, Buffer.from([5]))))

const ecKey = newEcKey()
const keys: { readonly [name: string]: KeyObject } = {
  "P-256": ecKey,
  "Ed25519": generateKeyPairSync("ed25519").privateKey,
  "RSA 2048": generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
  "RSA 3072": generateKeyPairSync("rsa", { modulusLength: 3072 }).privateKey
}

const wishes: { readonly [name: string]: ReadonlyArray<Uint8Array> } = {
  "nothing": [],
  "serverAuth": [usages(serverAuth)],
  "clientAuth": [usages(clientAuth)],
  "both": [usages(clientAuth, serverAuth)],
  "emailProtection": [usages(emailProtection)],
  "anyExtendedKeyUsage": [usages("2.5.29.37.0")],
  "an unknown OID": [usages("1.2.3.4.5")],
  "no purpose": [usages()],
  "usages twice": [usages(serverAuth), usages(clientAuth)],
  "critical usages": [
    der(0x30, oid("2.5.29.37"), der(0x01, Buffer.from([255])), der(0x04, der(0x30, oid(clientAuth ?? ""))))
  ],
  "must-staple": [mustStaple],
  "to be no CA": [extension("2.5.29.19", der(0x30))],
  "to be a CA": [extension("2.5.29.19", der(0x30, der(0x01, Buffer.from([255]))))]
}

describe.each(databases)("the kinds of certificates on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

  /** Orders a certificate of a kind, and proves its names. */
  const ordered = (of: Config, kind: string | undefined, ...names: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(of))
      const order = yield* orders.create(caller, {
        identifiers: names.map((value) => ({ type: "dns", value })),
        notBefore: undefined,
        notAfter: undefined,
        certificateProfile: kind
      })
      yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
      yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
      return { caller, id: order.id, order }
    })

  /** Places and finalizes an order. Returns the PEM chain or the detail of the refusal. */
  const issued = (kind: string, key: KeyObject, extensions: ReadonlyArray<Uint8Array>) =>
    Effect.gen(function*() {
      const { caller, id } = yield* ordered(config, kind, "a.example", "b.example")
      const { csr } = makeCsr({ names: ["a.example", "b.example"], key, extensions })
      const finalized = yield* Effect.result(finalize(caller, id, csr.toString("base64url")))
      if (Result.isFailure(finalized)) {
        assert.strictEqual(finalized.failure._tag, "BadCsr")
        return { id, refusal: problemOf(finalized.failure as Parameters<typeof problemOf>[0]).detail ?? "" }
      }
      yield* workUnder(config, "signer_issue", "signer_issue_restricted")
      const row = yield* certificates.certificate({ id, profile: "default", accountId: caller.accountId })
      return { id, chain: row?.certificate ?? assert.fail(`${kind} was not signed`) }
    })

  test("certify keys, and answer wishes of the CSR, as this table says", () =>
    Effect.gen(function*() {
      const table: Array<string> = []
      for (const kind of ["default", "mutual", "named", "bare"]) {
        for (const [keyName, key] of Object.entries(keys)) {
          for (const [wish, extensions] of Object.entries(wishes)) {
            // Every wish with one key, and every key without a wish.
            if (keyName !== "P-256" && wish !== "nothing") continue
            records.length = 0
            const { chain, id, refusal } = yield* issued(kind, key, extensions)
            if (chain === undefined) {
              table.push(`${kind} | ${keyName} | ${wish} | ${refusal}`)
              continue
            }
            const leaf = new X509Certificate(chain)
            const read = pkijs.Certificate.fromBER(leaf.raw)
            const purposes = read.extensions?.find(({ extnID }) => extnID === "2.5.29.37")?.parsedValue as
              | pkijs.ExtKeyUsage
              | undefined
            assert.deepStrictEqual(purposes?.keyPurposes, leaf.keyUsage, "pkijs and OpenSSL differ")
            const text = openssl(["x509", "-noout", "-subject", "-ext", "extendedKeyUsage"], chain).toString()
            assert.include(text, leaf.keyUsage.includes(clientAuth ?? "") ? "TLS Web Client" : "TLS Web Server")
            const hours = (leaf.validToDate.getTime() - leaf.validFromDate.getTime()) / 3_600_000
            const said = records.flatMap(({ event }) => event === "leaf_usages_differ" ? [" (differs)"] : [])
            const { notGranted = [] } = yield* detail(config, id)
            const subject = leaf.subject?.replaceAll("\n", ", ") ?? "empty"
            const shown = leaf.keyUsage.map((purpose) => purpose === serverAuth ? "server" : "client").join("+")
            table.push(
              `${kind} | ${keyName} | ${wish} | ${shown}${said.join("")}; ${hours} h; ${subject}${
                notGranted.length === 0 ? "" : `; lacks ${notGranted.join(", ")}`
              }`
            )
          }
        }
      }
      console.log(table.join("\n"))
      assert.strictEqual(`${table.join("\n")}\n`, readFileSync(new URL("Kinds.txt", import.meta.url), "utf8"))
    }))

  const unknown = {
    "unknown": "mutua",
    "empty": "",
    "in another case": "Mutual",
    "too long": "m".repeat(33),
    "a member of every object": "constructor"
  }
  for (const [what, name] of Object.entries(unknown)) {
    test(`refuse a name that is ${what} with the names that are offered`, () =>
      Effect.gen(function*() {
        const refused = yield* Effect.flip(ordered(config, name, "a.example"))
        assert.strictEqual(refused._tag, "InvalidProfile")
        const { detail, status, type } = problemOf(refused as Parameters<typeof problemOf>[0])
        assert.deepStrictEqual([status, type], [400, "urn:ietf:params:acme:error:invalidProfile"])
        assert.include(detail, "default, bare, mutual, named are.")
      }))
  }

  test("refuse every name if only the kind default exists and has no description", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(ordered(configOf(), "default", "a.example"))
      assert.include(problemOf(refused as Parameters<typeof problemOf>[0]).detail, "offers no certificate profile")
    }))

  test("accept the name default if it is the only kind and has a description", () =>
    Effect.gen(function*() {
      const { order } = yield* ordered(described(""), "default", "a.example")
      assert.isUndefined(order.kind)
    }))

  test("store the chosen kind with an order that names none", () =>
    Effect.gen(function*() {
      const other = described("mutual.description = \"m\"\n[certificates]\ndefault = \"mutual\"")
      const { order } = yield* ordered(other, undefined, "a.example")
      assert.strictEqual(order.kind, "mutual")
      assert.deepStrictEqual(yield* column("SELECT kind FROM orders"), ["mutual"])
    }))

  test("leave orders of the plain kind to workers of every version, and others to workers that know kinds", () =>
    Effect.gen(function*() {
      for (const kind of ["default", "mutual"]) {
        const { caller, id } = yield* ordered(config, kind, "a.example")
        yield* finalize(caller, id, makeCsr({ names: ["a.example"] }).csr.toString("base64url"))
      }
      assert.deepStrictEqual(
        yield* column("SELECT kind FROM jobs WHERE kind LIKE 'signer%' ORDER BY kind"),
        ["signer_issue", "signer_issue_restricted"]
      )
      assert.deepStrictEqual(yield* column("SELECT kind FROM orders WHERE restricted = 1"), ["mutual"])
    }))

  test("end an order with invalidProfile at finalize if a reload has removed its kind", () =>
    Effect.gen(function*() {
      const { caller, id } = yield* ordered(config, "mutual", "a.example")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      const reloaded = { ...caller, profile: profileOf(configOf()) }
      assert.strictEqual((yield* Effect.flip(finalize(reloaded, id, csr)))._tag, "KindRemoved")
      assert.strictEqual((yield* detail(configOf(), id)).status, "ready", "this process might not have reloaded yet")
      yield* TestClock.adjust("3 minutes")
      const refused = yield* Effect.flip(finalize(reloaded, id, csr))
      assert.strictEqual(refused._tag, "KindRemoved")
      const { explanation, order, status } = yield* detail(configOf(), id)
      assert.strictEqual(status, "invalid")
      assert.strictEqual(order.error?.type, "urn:ietf:params:acme:error:invalidProfile")
      assert.include(explanation?.summary, "no longer has the kind")
      assert.deepStrictEqual(
        yield* column("SELECT reason FROM audit_log WHERE event = 'certificate_issue_failed'"),
        ["invalidProfile"]
      )
    }))

  test("end an order with invalidProfile when it is signed if a reload has removed its kind since finalize", () =>
    Effect.gen(function*() {
      const { caller, id } = yield* ordered(config, "mutual", "a.example")
      yield* finalize(caller, id, makeCsr({ names: ["a.example"] }).csr.toString("base64url"))
      yield* workUnder(configOf(), "signer_issue_restricted")
      assert.strictEqual(
        (yield* detail(configOf(), id)).status,
        "processing",
        "this worker might not have reloaded yet"
      )
      yield* TestClock.adjust("3 minutes")
      yield* workUnder(configOf(), "signer_issue_restricted")
      const { order, status } = yield* detail(configOf(), id)
      assert.deepStrictEqual([status, order.error?.type], ["invalid", "urn:ietf:params:acme:error:invalidProfile"])
      assert.include(records.map(({ event }) => event), "order_finalize_kind_removed")
    }))

  test("are recorded in the audit trail when they are not the kind default", () =>
    Effect.gen(function*() {
      for (const kind of ["default", "mutual"]) yield* issued(kind, ecKey, [])
      const rows = yield* column("SELECT detail FROM audit_log WHERE event = 'certificate_issued' ORDER BY id")
      assert.deepStrictEqual(
        rows.map((row) => (JSON.parse(row) as { readonly kind?: string }).kind),
        [undefined, "mutual"]
      )
    }))
})
