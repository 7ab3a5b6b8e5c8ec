import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as pkijs from "pkijs"
import { assert, beforeAll } from "vitest"
import type { CrlEntry } from "../../../src/crypto/x509/Crl.ts"
import { encodeEntries, listedSerials, makeCrlSigner } from "../../../src/crypto/x509/Crl.ts"
import { effectProp } from "../../support/Property.ts"
import { DAY, makeCa, NOW, requestOf, type TestCa } from "../Ca.ts"
import { der, hexed, mutate, openssl, pem, seeded, withDirectory } from "../Pki.ts"

const caTypes = ["ecdsa-p256", "ecdsa-p384", "rsa-2048"] as const
const cas = new Map<string, TestCa>()
beforeAll(async () => {
  for (const type of caTypes) cas.set(type, await makeCa(type))
})
const caOfType = (type: string): TestCa => cas.get(type) ?? assert.fail(`no CA of type ${type}`)

interface Numbered {
  readonly number?: number
  readonly thisUpdate?: number
  readonly nextUpdate?: number
}

const encoded = (ca: TestCa, entries: ReadonlyArray<Uint8Array>, numbered: Numbered = {}) => {
  const { keyIdentifier, subject } = ca.material
  return makeCrlSigner({ subject, keyIdentifier }, ca.key)({
    number: 1,
    thisUpdate: NOW,
    nextUpdate: NOW + 7 * DAY,
    entries,
    ...numbered
  })
}

const listOf = (ca: TestCa, entries: ReadonlyArray<CrlEntry>, numbered: Numbered = {}) =>
  encoded(ca, [encodeEntries(entries)], numbered)

const entry = (serial: string, reason?: number, revokedAt = NOW): CrlEntry => ({ serial, revokedAt, reason })

const serialsOf = (list: Uint8Array) => [...Result.getOrThrow(listedSerials(list))]

const textOf = (list: Uint8Array): string => openssl(["crl", "-inform", "DER", "-noout", "-text"], list).toString()

/** Returns the list as pkijs reads it. When pkijs encodes the list again, the octets must be the same. */
const judged = (list: Uint8Array): pkijs.CertificateRevocationList => {
  const read = pkijs.CertificateRevocationList.fromBER(new Uint8Array(list))
  assert.deepStrictEqual(Buffer.from(read.toSchema(true).toBER(false)), Buffer.from(list))
  assert.strictEqual(read.version, 1)
  return read
}

/**
 * Returns the entries that pkijs reads, with the serial as it is encoded, the time in seconds, and the value of each
 * extension in hexadecimal.
 */
const entriesOf = (list: Uint8Array) =>
  (judged(list).revokedCertificates ?? []).map(({ crlEntryExtensions, revocationDate, userCertificate }) => ({
    serial: Buffer.from(userCertificate.valueBlock.valueHexView).toString("hex"),
    at: revocationDate.value.getTime() / 1000,
    extensions: (crlEntryExtensions?.extensions ?? []).map(({ extnID, extnValue, critical }) => [
      extnID,
      critical,
      Buffer.from(extnValue.valueBlock.valueHexView).toString("hex")
    ])
  }))

/** Runs `openssl verify -crl_check`, and returns its output, whether openssl accepts the leaf or not. */
const check = (ca: TestCa, list: Uint8Array, leaf: Uint8Array, at = NOW): string =>
  withDirectory((directory) => {
    const file = (name: string, content: string) => {
      writeFileSync(join(directory, name), content)
      return join(directory, name)
    }
    const words = ["verify", "-no-CApath", "-x509_strict", "-crl_check", "-attime", String(at)]
    const files = [
      "-CAfile",
      file("ca.pem", ca.certificatePem),
      "-CRLfile",
      file("ca.crl", pem("X509 CRL", list)),
      file("leaf.pem", pem("CERTIFICATE", leaf))
    ]
    try {
      return openssl([...words, ...files]).toString()
    } catch (error) {
      return String(error instanceof Error && "stderr" in error ? error.stderr : error)
    }
  })

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

describe("revocation lists", () => {
  for (const type of caTypes) {
    it.effect(`are accepted by openssl in strict mode and by pkijs, and openssl refuses the certificates in them (${type})`, () =>
      Effect.gen(function*() {
        const ca = caOfType(type)
        const [revoked, fresh] = [requestOf(), requestOf()]
        const leaves = [yield* ca.issuer.build(revoked), yield* ca.issuer.build(fresh)] as const
        const empty = yield* listOf(ca, [])
        for (const leaf of leaves) assert.include(check(ca, empty, leaf), "OK")
        const list = yield* listOf(ca, [entry(hex(revoked.serial), 1)], { number: 2 })
        assert.include(check(ca, list, leaves[0]), "certificate revoked")
        assert.include(check(ca, list, leaves[1]), "OK")
        assert.include(check(ca, list, leaves[1], NOW + 8 * DAY), "CRL has expired")
        for (const one of [empty, list]) {
          const issuer = pkijs.Certificate.fromBER(new Uint8Array(ca.material.certificates[0] ?? []))
          assert.isTrue(yield* Effect.promise(() => judged(one).verify({ issuerCertificate: issuer })))
        }
        const digest = type === "ecdsa-p384" ? "sha384" : "sha256"
        assert.include(
          textOf(list),
          `Signature Algorithm: ${
            type === "rsa-2048" ? `${digest}WithRSAEncryption` : `ecdsa-with-${digest.toUpperCase()}`
          }`
        )
      }))

    it.effect(`are not accepted from another CA of the same name (${type})`, () =>
      Effect.gen(function*() {
        const [ca, other] = [caOfType(type), yield* Effect.promise(() => makeCa(type))]
        const leaf = yield* ca.issuer.build(requestOf())
        assert.notMatch(check(ca, yield* listOf(other, []), leaf), /: OK$/m)
      }))
  }

  it.effect("have the issuer's key identifier and a number, and no other extension", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const list = yield* listOf(ca, [entry("0a")], { number: 258 })
      const extensions = judged(list).crlExtensions?.extensions ?? []
      assert.deepStrictEqual(extensions.map(({ critical, extnID }) => [extnID, critical]), [
        ["2.5.29.35", false],
        ["2.5.29.20", false]
      ])
      const [authority, number] = extensions.map(({ extnValue }) => hex(extnValue.valueBlock.valueHexView))
      assert.strictEqual(authority, hex(der(0x30, der(0x80, ca.material.keyIdentifier))))
      assert.strictEqual(number, "02020102")
      assert.deepStrictEqual(
        Buffer.from(judged(list).issuer.toSchema().toBER(false)),
        Buffer.from(ca.material.subject)
      )
    }))

  it.effect("have no list of revoked certificates if there are none, even if empty pieces are given", () =>
    Effect.gen(function*() {
      for (const pieces of [[], [new Uint8Array()], [new Uint8Array(), new Uint8Array()]]) {
        const list = yield* encoded(caOfType("ecdsa-p256"), pieces)
        assert.isUndefined(judged(list).revokedCertificates)
        assert.include(textOf(list), "No Revoked Certificates.")
        assert.deepStrictEqual(serialsOf(list), [])
      }
    }))

  it.effect("are the same however their entries are divided into pieces", () =>
    Effect.gen(function*() {
      const ca = caOfType("rsa-2048") // An RSA key makes the same signature each time.
      const entries = [entry("01"), entry("02", 4), entry("ff", 1)]
      const whole = yield* listOf(ca, entries)
      const pieces = yield* encoded(ca, [...entries.map((one) => encodeEntries([one])), new Uint8Array()])
      assert.deepStrictEqual(Buffer.from(pieces), Buffer.from(whole))
    }))

  it.effect("have no entry with a later date than the given one", () =>
    Effect.gen(function*() {
      const entries = encodeEntries([entry("01", 1, NOW - 1), entry("02", 1, NOW), entry("03", 1, NOW + 1)], NOW)
      const list = yield* encoded(caOfType("ecdsa-p256"), [entries])
      assert.deepStrictEqual(entriesOf(list).map(({ at }) => at), [NOW - 1, NOW, NOW])
    }))

  const words = new Map([
    [1, "Key Compromise"],
    [2, "CA Compromise"],
    [3, "Affiliation Changed"],
    [4, "Superseded"],
    [5, "Cessation Of Operation"],
    [6, "Certificate Hold"],
    [9, "Privilege Withdrawn"],
    [10, "AA Compromise"]
  ])
  for (const code of [undefined, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255, -1]) {
    const word = words.get(code ?? 0)
    it.effect(`write reason ${code ?? "none"} as ${word ?? "none"}`, () =>
      Effect.gen(function*() {
        const list = yield* listOf(caOfType("ecdsa-p256"), [entry("0badcafe", code)])
        assert.deepStrictEqual(entriesOf(list), [{
          serial: "0badcafe",
          at: NOW,
          extensions: word === undefined
            ? []
            : [["2.5.29.21", false, `0a01${(code ?? 0).toString(16).padStart(2, "0")}`]]
        }])
        const said = textOf(list)
        if (word === undefined) assert.notInclude(said, "Reason Code")
        else assert.match(said, new RegExp(`X509v3 CRL Reason Code: ?\n +${word}\n`))
      }))
  }

  it.effect("encode any serial as DER requires, and the serial is read back as it is stored", () =>
    Effect.gen(function*() {
      const wire = new Map([
        ["00", "00"],
        ["0", "00"],
        ["01", "01"],
        ["7f", "7f"],
        ["80", "0080"],
        ["ff", "00ff"],
        ["abc", "0abc"],
        ["f".repeat(39), `0${"f".repeat(39)}`],
        ["f".repeat(40), `00${"f".repeat(40)}`],
        [`40${"00".repeat(15)}`, `40${"00".repeat(15)}`]
      ])
      for (const [serial, expected] of wire) {
        const list = yield* listOf(caOfType("ecdsa-p256"), [entry(serial, 1)])
        assert.deepStrictEqual(entriesOf(list).map((one) => one.serial), [expected], serial)
        assert.deepStrictEqual(serialsOf(list), [serial.padStart(serial.length + serial.length % 2, "0")])
        assert.match(textOf(list), new RegExp(`Serial Number: 0*${serial.replace(/^0+(?=.)/, "")}\n`, "i"))
      }
    }))

  it.effect("contain dates before 2050 as UTCTime and later dates as GeneralizedTime", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const border = Date.UTC(2050, 0, 1) / 1000
      const last = "170d3439313233313233353935395a"
      const first = "180f32303530303130313030303030305a"
      for (
        const [name, list] of [
          ["thisUpdate", yield* listOf(ca, [], { thisUpdate: border - 1, nextUpdate: border })],
          ["the entries", yield* listOf(ca, [entry("01", 1, border - 1), entry("02", 1, border)])]
        ] as const
      ) {
        assert.include(hex(list), last, name)
        assert.include(hex(list), first, name)
      }
      const list = yield* listOf(ca, [entry("01", 1, border - 1), entry("02", 1, border)], {
        thisUpdate: border - 1,
        nextUpdate: border
      })
      assert.deepStrictEqual(entriesOf(list).map(({ at }) => at), [border - 1, border])
      const { nextUpdate, thisUpdate } = judged(list)
      assert.deepStrictEqual(
        [thisUpdate.value.getTime() / 1000, (nextUpdate?.value.getTime() ?? 0) / 1000],
        [border - 1, border]
      )
      assert.include(textOf(list), "Next Update: Jan  1 00:00:00 2050 GMT")
      assert.include(hex(yield* listOf(ca, [entry("01", 1, 0)])), "170d3730303130313030303030305a")
    }))

  it.effect("can have any number up to 2^53 - 1", () =>
    Effect.gen(function*() {
      for (const number of [0, 1, 127, 128, 255, 256, 65_535, 2 ** 31, 2 ** 32, 2 ** 52, Number.MAX_SAFE_INTEGER]) {
        const list = yield* listOf(caOfType("ecdsa-p256"), [], { number })
        const [, extension] = judged(list).crlExtensions?.extensions ?? []
        const value = hex(extension?.extnValue.valueBlock.valueHexView ?? Buffer.alloc(0))
        assert.strictEqual(BigInt(`0x${value.slice(4)}`), BigInt(number))
        assert.notMatch(value.slice(4), /^00[0-7]./, "as short as can be")
        const said = /X509v3 CRL Number: ?\n +(\S+)/.exec(textOf(list))?.[1] ?? ""
        assert.strictEqual(BigInt(said), BigInt(number))
      }
    }))

  it.effect("can contain 10 000 certificates, and openssl refuses a listed certificate", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const [revoked, fresh] = [requestOf(), requestOf()]
      const serials = Array.from({ length: 9999 }, (_, index) => `4${index.toString(16).padStart(31, "0")}`)
      const all = [...serials, hex(revoked.serial)].sort()
      const pieces = [all.slice(0, 4000), all.slice(4000, 8000), all.slice(8000)].map((part) =>
        encodeEntries(part.map((serial, index) => entry(serial, index % 11, NOW - index)))
      )
      const list = yield* encoded(ca, pieces)
      assert.isTrue(serialsOf(list).join() === all.join(), "the serials in their order")
      assert.include(check(ca, list, yield* ca.issuer.build(revoked)), "certificate revoked")
      assert.include(check(ca, list, yield* ca.issuer.build(fresh)), "OK")
    }))

  const serials = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((octets) =>
    hex(octets).replace(/^(?:00)+(?=..)/, "")
  )
  const entries = fc.uniqueArray(
    fc.record({
      serial: serials,
      revokedAt: fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) / 1000 }),
      reason: fc.option(fc.integer({ min: -3, max: 300 }), { nil: undefined })
    }),
    { selector: ({ serial }) => serial, maxLength: 40 }
  )

  effectProp("are read back as they were written, whatever their entries and their number are", [
    entries,
    fc.maxSafeNat(),
    fc.integer({ min: 0, max: Date.UTC(9990, 0, 1) / 1000 })
  ], ([list, number, thisUpdate]) =>
    Effect.gen(function*() {
      const signed = yield* listOf(caOfType("ecdsa-p256"), list, {
        number,
        thisUpdate,
        nextUpdate: thisUpdate + 7 * DAY
      })
      assert.deepStrictEqual(serialsOf(signed), list.map(({ serial }) => serial))
      const read = entriesOf(signed) // also compares the octets
      assert.deepStrictEqual(read.map(({ at }) => at), list.map(({ revokedAt }) => revokedAt))
      assert.deepStrictEqual(
        read.map(({ extensions }) => extensions.length),
        list.map(({ reason }) => words.has(reason ?? 0) ? 1 : 0)
      )
    }), { numRuns: 100 })

  it.effect("cause a fault or give other serials if they are damaged, but never cause an exception", () =>
    Effect.gen(function*() {
      const good = yield* listOf(caOfType("ecdsa-p256"), [entry("01", 1), entry("8002"), entry("03", 4)])
      const random = seeded(11)
      let faults = 0
      for (let i = 0; i < 5000; i++) {
        const read = listedSerials(mutate(good, random))
        if (Result.isFailure(read)) faults++
        else for (const serial of read.success) assert.match(serial, /^(?:[0-9a-f]{2})+$/)
      }
      assert.isAbove(faults, 2000)
      for (const nothing of ["", "30", "3000", "30023000", "0500"]) {
        assert.isTrue(Result.isFailure(listedSerials(hexed(nothing))), nothing)
      }
    }))
})
