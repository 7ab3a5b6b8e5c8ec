import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { X509Certificate } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import type { Csr } from "../../../src/crypto/x509/Csr.ts"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import type { LocalCaSettings } from "../../../src/services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import type { Issued, IssueRequest } from "../../../src/services/signing/Signer.ts"
import { cn, csrOf, der, ext, oid, openssl, seq, set, spkiOf, utf8 } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { kindOf, usualKind } from "../../support/Kinds.ts"
import type { ForeignCa } from "../../support/LocalCa.ts"
import { daySeconds, foreignCa, issueRequest, keyPem, madeAt, requestedKey, settingsIn } from "../../support/LocalCa.ts"
import { offline } from "../../support/Offline.ts"
import { effectProp } from "../../support/Property.ts"
import { useTests } from "../../support/UseTests.ts"

/** Each test gets settings with a directory of its own. */
const { records, test } = useTests({
  startsAt: madeAt,
  first: () => Effect.sync(() => settingsIn(freshDirectory()))
})

const certificatesOf = ({ chain }: Issued) =>
  (chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? []).map((text) =>
    new X509Certificate(text)
  )

const leafOf = (issued: Issued): X509Certificate => certificatesOf(issued)[0] ?? assert.fail("no certificate")

const seconds = (text: string): number => Date.parse(text) / 1000

/**
 * Overwrites the certificate file and the key file of the settings with those of a foreign CA. `rest` is appended to the
 * certificate file.
 */
const supply = (settings: LocalCaSettings, { certificatePem, key }: ForeignCa, rest = "") => {
  writeFileSync(settings.cert_path, certificatePem + rest)
  writeFileSync(settings.key_path, keyPem(key), { mode: 0o600 })
}

const names = ["a.example.com", "*.b.example.com"]

describe("a leaf", () => {
  test(
    "has the requested key and names, its own serial number, and the expiry that is reported",
    (settings) =>
      Effect.gen(function*() {
        const signer = yield* LocalCa.make(settings)
        const issued = yield* signer.issue(issueRequest(names))
        const leaf = leafOf(issued)
        const ca = new X509Certificate(readFileSync(settings.cert_path))
        assert.isTrue(leaf.verify(ca.publicKey) && leaf.checkIssued(ca))
        assert.deepStrictEqual(leaf.publicKey.export({ type: "spki", format: "der" }), spkiOf(requestedKey))
        assert.strictEqual(leaf.subjectAltName, names.map((name) => `DNS:${name}`).join(", "))
        assert.strictEqual(leaf.serialNumber.toLowerCase(), issued.serial)
        assert.strictEqual(seconds(leaf.validTo), issued.notAfter)
        assert.strictEqual(seconds(leaf.validFrom), madeAt - 3600)
        assert.strictEqual(issued.notAfter, madeAt + 90 * daySeconds)
        assert.isFalse(leaf.ca)
        assert.deepStrictEqual(eventsOf(records), ["local_ca_generated", "local_ca_loaded", "local_ca_leaf_issued"])
        assert.deepStrictEqual(records.at(-1)?.fields, { order_id: "order", cert_serial: issued.serial })
        yield* issued.discarded ?? Effect.void
        assert.deepInclude(records.at(-1), {
          event: "local_ca_leaf_discarded",
          fields: { order_id: "order", cert_serial: issued.serial }
        })
      })
  )

  test("has its names in the SAN if the CSR has them only in the common name", (settings) =>
    Effect.gen(function*() {
      const signer = yield* LocalCa.make(settings)
      const csr = Result.getOrThrow(parseCsr(csrOf({ attributes: [], subject: seq(cn(utf8("A.example.com"))) })))
      const leaf = leafOf(yield* signer.issue(issueRequest(["a.example.com"], { csr })))
      assert.deepStrictEqual([leaf.subjectAltName, leaf.subject], ["DNS:a.example.com", "CN=a.example.com"])
    }))

  test("has a random and positive serial number of 16 octets", (settings) =>
    Effect.gen(function*() {
      const signer = yield* LocalCa.make(settings)
      const issued = yield* Effect.replicateEffect(signer.issue(issueRequest(names)), 200, { concurrency: "unbounded" })
      const serials = issued.map(({ serial }) => serial)
      assert.strictEqual(new Set(serials).size, 200)
      for (const serial of serials) assert.match(serial, /^[4-7][0-9a-f]{31}$/)
      // If some of the 126 random bits were constant or a counter, some columns would have few different digits.
      for (let column = 1; column < 32; column++) {
        assert.isAbove(new Set(serials.map((serial) => serial[column])).size, 8, `digit ${column}`)
      }
    }))

  test("is followed by the whole file of the CA, and OpenSSL accepts the chain up to the root", (settings) =>
    Effect.gen(function*() {
      const root = foreignCa({ name: "Corporate Root" })
      const intermediate = foreignCa({ name: "Issuing CA", issuer: root })
      supply(settings, intermediate, root.certificatePem)
      const issued = yield* (yield* LocalCa.make(settings)).issue(issueRequest(names))
      const [leaf, ...rest] = certificatesOf(issued).map((one) => one.toString())
      assert.strictEqual(rest.join(""), intermediate.certificatePem + root.certificatePem)
      const [leafFile, restFile, rootFile] = ["leaf", "rest", "root"].map((name) =>
        join(settings.cert_path, `../${name}.pem`)
      )
      writeFileSync(leafFile ?? "", leaf ?? "")
      writeFileSync(restFile ?? "", rest.join(""))
      writeFileSync(rootFile ?? "", root.certificatePem)
      const said = openssl([
        ..."verify -no-CApath -x509_strict -purpose sslserver -verify_hostname a.example.com".split(" "),
        "-attime",
        `${madeAt}`,
        "-CAfile",
        rootFile ?? "",
        "-untrusted",
        restFile ?? "",
        leafFile ?? ""
      ])
      assert.include(said.toString(), "OK")
    }))

  test("is refused with CsrRejected if the name constraints of the CA forbid a name", (settings) =>
    Effect.gen(function*() {
      const permitted = ext(
        "2.5.29.30",
        seq(der(0xa0, seq(der(0x82, Buffer.from("example.com"))))),
        true
      )
      supply(settings, foreignCa({ name: "Constrained CA", more: [permitted] }))
      const signer = yield* LocalCa.make(settings)
      yield* signer.issue(issueRequest(["a.example.com", "example.com"]))
      for (const foreign of ["example.org", "badexample.com", "*.example.net"]) {
        const refused = yield* Effect.flip(signer.issue(issueRequest(["a.example.com", foreign])))
        assert.strictEqual(refused._tag, "CsrRejected", foreign)
        assert.include(refused.detail, foreign)
      }
    }))

  test("has no common name if the CA's name constraints do not permit one, and is valid with an empty subject", (settings) =>
    Effect.gen(function*() {
      const csr = Result.getOrThrow(parseCsr(csrOf({ attributes: [], subject: seq(cn(utf8("a.example.com"))) })))
      const corp = seq(set(seq(oid("2.5.4.10"), utf8("Corp"))))
      const directory = (tag: number, name: Uint8Array) => ext("2.5.29.30", seq(der(tag, seq(der(0xa4, name)))), true)
      const [rootFile, leafFile] = ["root", "leaf"].map((name) => join(settings.cert_path, `../${name}.pem`))
      for (
        const [constraint, subject] of [
          [directory(0xa0, corp), undefined],
          [directory(0xa1, corp), "CN=a.example.com"],
          [directory(0xa1, seq(cn(utf8("a.example.com")))), undefined],
          [directory(0xa0, seq(cn(utf8("A.example.com")))), "CN=a.example.com"]
        ] as const
      ) {
        supply(settings, foreignCa({ name: "Constrained CA", more: [constraint] }))
        const leaf = leafOf(yield* (yield* LocalCa.make(settings)).issue(issueRequest(["a.example.com"], { csr })))
        assert.strictEqual(leaf.subject, subject)
        assert.strictEqual(leaf.subjectAltName, "DNS:a.example.com")
        writeFileSync(rootFile ?? "", readFileSync(settings.cert_path))
        writeFileSync(leafFile ?? "", leaf.toString())
        const words = `verify -no-CApath -x509_strict -attime ${madeAt} -CAfile`.split(" ")
        assert.include(openssl([...words, rootFile ?? "", leafFile ?? ""]).toString(), "OK")
      }
    }))
})

describe("a leaf for a purpose that the CA does not permit", () => {
  const kind = (...purposes: ReadonlyArray<string>) =>
    kindOf(`[profiles.p]\ncertificates.kinds.default.usages = ${JSON.stringify(purposes)}`)
  const limited = (...oids: ReadonlyArray<string>) => ext("2.5.29.37", seq(...oids.map((one) => oid(one))))

  test("is reported when the CA first signs for that purpose, and OpenSSL refuses it", (settings) =>
    Effect.gen(function*() {
      const root = foreignCa({ name: "Root" })
      const ca = foreignCa({ name: "Servers alone", issuer: root, more: [limited("1.3.6.1.5.5.7.3.1")] })
      supply(settings, ca, root.certificatePem)
      const { issue } = yield* LocalCa.make(settings)
      const told = () =>
        records.flatMap(({ event, fields }) => event === "local_ca_incomplete" ? [fields["reason"]] : [])
      yield* issue(issueRequest(names, { kind: kind("server_auth") }))
      assert.deepStrictEqual(told(), [])
      const issued = yield* issue(issueRequest(names, { kind: kind("server_auth", "client_auth") }))
      yield* issue(issueRequest(names, { kind: kind("client_auth") }))
      assert.deepStrictEqual(told(), ["client_auth_not_permitted"])
      const sha256 = new X509Certificate(ca.certificatePem).fingerprint256.replaceAll(":", "").toLowerCase()
      assert.include(records.find(({ event }) => event === "local_ca_incomplete")?.fields, { sha256 })
      const [leaf, issuer, anchor] = ["leaf", "issuer", "root"].map((name) =>
        join(settings.cert_path, `../${name}.pem`)
      )
      writeFileSync(leaf ?? "", leafOf(issued).toString())
      writeFileSync(issuer ?? "", ca.certificatePem)
      writeFileSync(anchor ?? "", root.certificatePem)
      const verify = (purpose: string) =>
        openssl([
          ...`verify -no-CApath -attime ${madeAt} -purpose ${purpose} -CAfile`.split(" "),
          anchor ?? "",
          "-untrusted",
          issuer ?? "",
          leaf ?? ""
        ]).toString()
      assert.include(verify("sslserver"), "OK")
      assert.throws(() => verify("sslclient"), /unsuitable certificate purpose|invalid CA certificate|unsupported/)
    }))

  test("is issued and reported if the extendedKeyUsage of the CA cannot be read", (settings) =>
    Effect.gen(function*() {
      supply(settings, foreignCa({ name: "Damaged", more: [ext("2.5.29.37", Buffer.of(1))] }))
      yield* (yield* LocalCa.make(settings)).issue(issueRequest(names))
      const told = records.find(({ event }) => event === "local_ca_incomplete")
      assert.include(told?.fields, { reason: "server_auth_not_permitted" })
    }))

  test("is not reported if the CA permits every purpose", (settings) =>
    Effect.gen(function*() {
      supply(settings, foreignCa({ name: "Any", more: [limited("2.5.29.37.0")] }))
      yield* (yield* LocalCa.make(settings)).issue(issueRequest(names, { kind: kind("client_auth") }))
      assert.notInclude(eventsOf(records), "local_ca_incomplete")
    }))
})

describe("the subject of a leaf", () => {
  const kinds = (more: string) => kindOf(`[profiles.p]\n${more}`)
  const subjectOf = (settings: LocalCaSettings, kind: IssueRequest["kind"], of: ReadonlyArray<string>, csr?: Csr) =>
    Effect.map(
      Effect.flatMap(
        LocalCa.make(settings),
        ({ issue }) => issue(issueRequest(of, { kind, ...csr === undefined ? {} : { csr } }))
      ),
      (issued) => leafOf(issued).subject
    )
  const long = `${"a".repeat(57)}.example`

  test("has the common name that its kind wants, which has at most 64 octets", (settings) =>
    Effect.gen(function*() {
      const [first, never, request] = ["first", "never", "request"].map((source) =>
        kinds(`certificates.kinds.default.common_name = "${source}"`)
      )
      if (first === undefined || never === undefined || request === undefined) return assert.fail("no kind")
      const csr = Result.getOrThrow(parseCsr(csrOf({ attributes: [], subject: seq(cn(utf8("b.example"))) })))
      for (
        const [kind, of, ownCsr, subject] of [
          [first, [long, "b.example"], undefined, "CN=b.example"],
          [first, [long], undefined, undefined],
          [first, [long.slice(1), "b.example"], csr, "CN=b.example"],
          [first, [long.slice(1), "b.example"], undefined, `CN=${long.slice(1)}`],
          [never, ["b.example"], csr, undefined],
          [request, ["b.example"], csr, "CN=b.example"],
          [request, ["a.example", "b.example"], undefined, undefined]
        ] as const
      ) assert.strictEqual(yield* subjectOf(settings, kind, of, ownCsr), subject)
    }))

  test("has a common name beside a fixed subject only if the CA's name constraints permit both", (settings) =>
    Effect.gen(function*() {
      const corp = `certificates.kinds.default = { common_name = "first", subject.organization = "Corp" }`
      const organization = (name: string) => set(seq(oid("2.5.4.10"), utf8(name)))
      const constrained = (tag: number, ...relatives: ReadonlyArray<Uint8Array>) =>
        supply(
          settings,
          foreignCa({
            name: "Constrained CA",
            more: [ext("2.5.29.30", seq(der(tag, seq(der(0xa4, seq(...relatives))))), true)]
          })
        )
      const kind = kinds(corp)
      const [rootFile = "", leafFile = ""] = ["root", "leaf"].map((file) => join(settings.cert_path, `../${file}.pem`))
      const found = Effect.gen(function*() {
        const signer = yield* LocalCa.make(settings)
        const leaf = leafOf(yield* signer.issue(issueRequest(["a.example"], { kind })))
        writeFileSync(rootFile, readFileSync(settings.cert_path))
        writeFileSync(leafFile, leaf.toString())
        const words = `verify -no-CApath -x509_strict -attime ${madeAt} -CAfile`.split(" ")
        assert.include(openssl([...words, rootFile, leafFile]).toString(), "OK")
        return leaf.subject
      })
      constrained(0xa0, organization("CORP"))
      assert.strictEqual(yield* found, "O=Corp\nCN=a.example")
      constrained(0xa1, organization("Other"))
      assert.strictEqual(yield* found, "O=Corp\nCN=a.example")
      constrained(0xa1, organization("Corp"), cn(utf8("a.example")))
      assert.strictEqual(yield* found, "O=Corp")
      for (const [tag, name] of [[0xa0, "Other"], [0xa1, "Corp"]] as const) {
        constrained(tag, organization(name))
        const refused = yield* Effect.flip(found)
        assert.strictEqual(refused._tag, "CsrRejected")
        assert.strictEqual(
          refused._tag === "CsrRejected" ? refused.detail : "",
          "The CA may not issue with the subject of the kind default: its name constraints forbid it."
        )
      }
    }))
})

describe("the validity of a leaf", () => {
  effectProp("is the requested validity, within the limits of the profile and of the CA", [
    fc.option(fc.integer({ min: -30, max: 120 }), { nil: undefined }),
    fc.option(fc.integer({ min: -30, max: 120 }), { nil: undefined }),
    fc.integer({ min: 1, max: 120 }),
    fc.integer({ min: 1, max: 120 })
  ], ([fromDay, toDay, validityDays, caDays]) =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const records: Array<Record> = []
      const at = (day: number | undefined) => day === undefined ? undefined : madeAt + day * daySeconds
      const settings = { ...settingsIn(freshDirectory()), leaf_validity_days: validityDays }
      const kind = { ...usualKind, validitySeconds: validityDays * daySeconds }
      const caEnd = madeAt + caDays * daySeconds
      supply(settings, foreignCa({ name: "Root", notBefore: madeAt - 60, notAfter: caEnd }))
      const signer = yield* Effect.provide(LocalCa.make(settings), Layer.merge(Entropy.layer, offline))
      const made = yield* Effect.result(
        Effect.provide(
          signer.issue(issueRequest(names, { kind, notBefore: at(fromDay), notAfter: at(toDay) })),
          layerMemory(records)
        )
      )
      const [start, end] = [madeAt - 3600, madeAt + validityDays * daySeconds]
      const [from, to] = [Math.max(start, at(fromDay) ?? start), Math.min(end, at(toDay) ?? end)]
      const discarded = from >= to || to <= madeAt
      assert.strictEqual(eventsOf(records).includes("local_ca_requested_validity_discarded"), discarded)
      if (made._tag === "Failure") {
        assert.isAtLeast(from, caEnd, "only what begins after the CA's end cannot be had")
        assert.strictEqual(made.failure._tag, "SigningFailed")
        return
      }
      const leaf = leafOf(made.success)
      assert.deepStrictEqual([seconds(leaf.validFrom), seconds(leaf.validTo)], [
        Math.max(discarded ? start : from, madeAt - 60),
        Math.min(discarded ? end : to, caEnd)
      ])
    }), { numRuns: 30 })

  test(
    "ends no later than the CA, and the log warns at loading if the CA shortens new leaves",
    (settings) =>
      Effect.gen(function*() {
        const caEnd = madeAt + 100 * daySeconds
        supply(settings, foreignCa({ name: settings.subject.common_name, notAfter: caEnd }))
        for (const [day, expiring] of [[0, false], [10, false], [11, true], [99, true]] as const) {
          yield* TestClock.setTime((madeAt + day * daySeconds) * 1000)
          records.length = 0
          const signer = yield* LocalCa.make(settings)
          assert.strictEqual(eventsOf(records).includes("local_ca_expiring"), expiring, `day ${day}`)
          const { notAfter } = yield* signer.issue(issueRequest(names))
          assert.strictEqual(notAfter, Math.min(caEnd, madeAt + (day + 90) * daySeconds))
        }
      })
  )

  test("ends when the first certificate of the chain expires, and the log warns about this end", (settings) =>
    Effect.gen(function*() {
      const end = madeAt + 5 * daySeconds
      const root = foreignCa({ name: "Root" })
      const upper = foreignCa({ name: "Upper CA", issuer: root, notAfter: end })
      const issuing = foreignCa({ name: "Issuing CA", issuer: upper, notAfter: madeAt + 400 * daySeconds })
      supply(settings, issuing, upper.certificatePem + root.certificatePem)
      const signer = yield* LocalCa.make(settings)
      const told = records.filter(({ event }) => event === "local_ca_expiring").map(({ fields }) => fields["not_after"])
      assert.deepStrictEqual(told, [new Date(end * 1000).toISOString()])
      const issued = yield* signer.issue(issueRequest(names, { notAfter: madeAt + 30 * daySeconds }))
      assert.deepStrictEqual([seconds(leafOf(issued).validTo), issued.notAfter], [end, end])
      yield* TestClock.setTime((end + 1) * 1000)
      assert.deepInclude(yield* Effect.flip(signer.issue(issueRequest(names))), { _tag: "SigningFailed" })
      assert.strictEqual(records.at(-1)?.event, "local_ca_issuer_expired")
    }))

  test("of a kind that lives longer than the CA ends with the first certificate of the chain, and the log says so once", (settings) =>
    Effect.gen(function*() {
      const end = madeAt + 100 * daySeconds
      const root = foreignCa({ name: "Root" })
      const upper = foreignCa({ name: "Upper CA", issuer: root, notAfter: end })
      const issuing = foreignCa({ name: "Issuing CA", issuer: upper, notAfter: madeAt + 400 * daySeconds })
      supply(settings, issuing, upper.certificatePem + root.certificatePem)
      const told = () =>
        records.filter(({ event }) => event === "local_ca_expiring").map(({ fields }) => fields["not_after"])
      const year = kindOf(`[profiles.p]\ncertificates.kinds.default.validity = "365d"`)
      const signer = yield* LocalCa.make(settings)
      const endOf = (more: Partial<IssueRequest>) =>
        Effect.map(signer.issue(issueRequest(names, more)), (issued) => {
          assert.strictEqual(seconds(leafOf(issued).validTo), issued.notAfter)
          return issued.notAfter
        })
      assert.strictEqual(yield* endOf({}), madeAt + 90 * daySeconds)
      assert.strictEqual(yield* endOf({ kind: year, notAfter: madeAt + daySeconds }), madeAt + daySeconds)
      assert.deepStrictEqual(told(), [], "the CA has shortened no leaf yet")
      assert.strictEqual(yield* endOf({ kind: year }), end)
      assert.deepStrictEqual(told(), [new Date(end * 1000).toISOString()])
      assert.strictEqual(yield* endOf({ kind: year }), end)
      yield* TestClock.setTime((madeAt + 11 * daySeconds) * 1000)
      assert.strictEqual(yield* endOf({}), end)
      assert.strictEqual(told().length, 1, "the warning is not repeated")
      const again = yield* LocalCa.make(settings)
      assert.strictEqual(told().length, 2, "the CA is loaded again")
      yield* again.issue(issueRequest(names, { kind: year }))
      assert.strictEqual(told().length, 2)
    }))

  test("is shortened with a warning if the CA was loaded long before", (settings) =>
    Effect.gen(function*() {
      supply(settings, foreignCa({ name: "Root", notAfter: madeAt + 100 * daySeconds }))
      const signer = yield* LocalCa.make(settings)
      const isTold = () => eventsOf(records).includes("local_ca_expiring")
      yield* TestClock.setTime((madeAt + 10 * daySeconds) * 1000)
      yield* signer.issue(issueRequest(names))
      assert.isFalse(isTold(), "the leaf and the CA end together")
      yield* TestClock.setTime((madeAt + 10 * daySeconds + 1) * 1000)
      yield* signer.issue(issueRequest(names))
      assert.isTrue(isTold())
    }))

  test("is not granted by a CA that has expired since it was loaded", (settings) =>
    Effect.gen(function*() {
      const caEnd = madeAt + daySeconds
      supply(settings, foreignCa({ name: "Root", notAfter: caEnd }))
      const signer = yield* LocalCa.make(settings)
      for (const after of [1, 60, 3599, 3600, 3601, 400 * daySeconds]) {
        yield* TestClock.setTime((caEnd + after) * 1000)
        const failed = yield* Effect.flip(signer.issue(issueRequest(names)))
        assert.deepInclude(failed, { _tag: "SigningFailed", cause: "signer_failed" }, `${after}`)
        assert.strictEqual(records.at(-1)?.event, "local_ca_issuer_expired", `${after}`)
      }
      assert.notInclude(eventsOf(records), "local_ca_leaf_issued")
      const made = yield* LocalCa.make(settings)
      assert.match((yield* made.trouble ?? Effect.succeed(undefined)) ?? "", /ended at/)
    }))
})

describe("a CA", () => {
  test(
    "is logged if it was supplied and is a root, but not if it was generated or is an intermediate",
    (settings) =>
      Effect.gen(function*() {
        const root = foreignCa({ name: "Corporate Root" })
        const intermediate = foreignCa({ name: "Issuing CA", issuer: root })
        const isTold = Effect.map(
          Effect.andThen(Effect.sync(() => records.length = 0), LocalCa.make(settings)),
          () => eventsOf(records).includes("local_ca_is_root")
        )
        assert.isFalse(yield* isTold)
        assert.isFalse(yield* isTold, "nor when it is loaded again")
        supply(settings, root)
        assert.isTrue(yield* isTold)
        supply(settings, intermediate, root.certificatePem)
        assert.isFalse(yield* isTold)
      })
  )

  test(
    "is identified by its key, so that it is the same issuer after a renewal with the same key",
    (settings) =>
      Effect.gen(function*() {
        const first = foreignCa({ name: "Root" })
        const issuers: Array<unknown> = []
        for (
          const ca of [
            first,
            foreignCa({ name: "Root", key: first.key, notAfter: madeAt + 4000 * daySeconds }),
            foreignCa({ name: "Root" })
          ]
        ) {
          supply(settings, ca)
          records.length = 0
          yield* LocalCa.make(settings)
          issuers.push(records.find(({ event }) => event === "local_ca_loaded")?.fields["issuer"])
        }
        assert.strictEqual(issuers[0], issuers[1])
        assert.notStrictEqual(issuers[1], issuers[2])
        assert.match(String(issuers[0]), /^[0-9a-f]{64}$/)
      })
  )

  test("is made only once if several instances make it at once", (settings) =>
    Effect.gen(function*() {
      const made = yield* Effect.replicateEffect(Effect.option(LocalCa.make(settings)), 6, { concurrency: "unbounded" })
      const signers = made.flatMap((one) => one._tag === "Some" ? [one.value] : [])
      assert.isAbove(signers.length, 0)
      const ca = new X509Certificate(readFileSync(settings.cert_path))
      for (const signer of signers) {
        assert.isTrue(leafOf(yield* signer.issue(issueRequest(names))).verify(ca.publicKey))
      }
    }))

  test("reports which check a leaf fails, and returns no such leaf", (settings) =>
    Effect.gen(function*() {
      const signer = yield* LocalCa.make(settings)
      // This key has trailing octets. A CSR with such a key could not be read.
      const request = issueRequest(names)
      const csr = { ...request.csr, spki: Buffer.concat([request.csr.spki, Buffer.from("0500", "hex")]) }
      const failure = yield* Effect.flip(signer.issue({ ...request, csr }))
      assert.deepInclude(failure, { _tag: "SigningFailed", cause: "lint_failed" })
      const told = records.filter(({ event }) => event === "local_ca_lint_failed").map(({ fields }) => fields)
      assert.deepStrictEqual(told, [{ order_id: "order", check: "der" }])
    }))

  test("never shows its key in log records and errors", (settings) =>
    Effect.gen(function*() {
      const signer = yield* LocalCa.make(settings)
      yield* signer.issue(issueRequest(names))
      const secret = readFileSync(settings.key_path, "utf8").split("\n").filter((line) => line.length > 40)
      writeFileSync(settings.cert_path, foreignCa({ name: "Other" }).certificatePem)
      const refusal = yield* Effect.flip(LocalCa.make(settings))
      const said = JSON.stringify([records, refusal, refusal.message])
      assert.isAbove(secret.length, 0)
      assert.deepStrictEqual(secret.filter((line) => said.includes(line)), [])
    }))
})
