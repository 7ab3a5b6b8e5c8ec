import { describe, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { sign } from "node:crypto"
import { assert, beforeAll } from "vitest"
import type { CrlEntry } from "../../../src/crypto/x509/Crl.ts"
import { encodeEntries, makeCrlSigner } from "../../../src/crypto/x509/Crl.ts"
import { listInFile, publicKeyOf, readRevocationList, verifyList } from "../../../src/crypto/x509/RevocationList.ts"
import { DAY, makeCa, NOW, type TestCa } from "../Ca.ts"
import { bitString, der, ext, hexed, int, mutate, oid, pem, seeded, seq } from "../Pki.ts"

const caTypes = ["ecdsa-p256", "ecdsa-p384", "rsa-2048"] as const
const cas = new Map<string, TestCa>()
beforeAll(async () => {
  for (const type of caTypes) cas.set(type, await makeCa(type))
})
const caOfType = (type: string): TestCa => cas.get(type) ?? assert.fail(`no CA of type ${type}`)

const listOf = (ca: TestCa, entries: ReadonlyArray<CrlEntry>, number = 7) => {
  const { keyIdentifier, subject } = ca.material
  return makeCrlSigner({ subject, keyIdentifier }, ca.key)({
    number,
    thisUpdate: NOW,
    nextUpdate: NOW + 7 * DAY,
    entries: [encodeEntries(entries)]
  })
}

const time = der(0x17, Buffer.from("260101000000Z"))
const entry = (...extensions: ReadonlyArray<Uint8Array>) =>
  seq(int(10n), time, ...(extensions.length === 0 ? [] : [seq(...extensions)]))
const ecdsa = seq(oid("1.2.840.10045.4.3.2"))

/** Builds a list from parts and signs it with the P-256 CA. */
const crafted = (
  { algorithm = ecdsa, entries = [entry()], extensions = [], isOld = false, next = [time] }: {
    readonly algorithm?: Uint8Array
    readonly entries?: ReadonlyArray<Uint8Array>
    readonly extensions?: ReadonlyArray<Uint8Array>
    /** Omits the version field, as all lists of version 1 do. */
    readonly isOld?: boolean
    readonly next?: ReadonlyArray<Uint8Array>
  } = {}
): Buffer => {
  const ca = caOfType("ecdsa-p256")
  const signed = seq(
    ...isOld ? [] : [int(1n)],
    ecdsa,
    ca.material.subject,
    time,
    ...next,
    ...entries.length === 0 ? [] : [seq(...entries)],
    ...extensions.length === 0 ? [] : [der(0xa0, seq(...extensions))]
  )
  return seq(signed, algorithm, bitString(sign("sha256", signed, ca.privateKey)))
}

const detailOf = (list: Uint8Array) => Effect.map(Effect.flip(readRevocationList(list)), ({ detail }) => detail)

describe("a revocation list from another CA", () => {
  for (const type of caTypes) {
    it.effect(`has the entries that were signed, and verifies only under the key of its CA (${type})`, () =>
      Effect.gen(function*() {
        const ca = caOfType(type)
        const entries = [
          { serial: "0a", revokedAt: NOW - 1, reason: undefined },
          { serial: "ff01", revokedAt: Date.UTC(2051, 0, 1) / 1000, reason: 4 }
        ]
        const list = yield* readRevocationList(yield* listOf(ca, entries, 258))
        assert.deepInclude(list, { entries, number: 258, thisUpdate: NOW })
        yield* verifyList(list, publicKeyOf(ca.material.certificates[0] ?? new Uint8Array()))
        const other = yield* Effect.promise(() => makeCa(type))
        for (const foreign of [other, caOfType(type === "rsa-2048" ? "ecdsa-p256" : "rsa-2048")]) {
          const refused = yield* Effect.flip(verifyList(list, foreign.material.publicKey))
          assert.include(refused.detail, "does not verify under the key of this CA")
        }
        const changed = { ...list, signed: Buffer.from(list.signed).fill(0, 40, 41) }
        assert.include((yield* Effect.flip(verifyList(changed, ca.material.publicKey))).detail, "it was changed")
      }))
  }

  it.effect("may be of version 1, and may lack extensions, next update and entries", () =>
    Effect.gen(function*() {
      const list = yield* readRevocationList(crafted({ isOld: true, next: [], entries: [] }))
      assert.deepInclude(list, { entries: [], number: 0 })
      yield* verifyList(list, caOfType("ecdsa-p256").material.publicKey)
      const one = yield* readRevocationList(crafted({ isOld: true }))
      assert.deepStrictEqual(one.entries.map(({ serial }) => serial), ["0a"])
    }))

  const distribution = (...fields: ReadonlyArray<Uint8Array>) => ext("2.5.29.28", seq(...fields), true)

  it.effect("may say which certificates of the CA it covers", () =>
    Effect.gen(function*() {
      const { entries } = yield* readRevocationList(crafted({ extensions: [distribution(hexed("8101ff"))] }))
      assert.lengthOf(entries, 1)
    }))

  it.effect("is refused with a reason if it is a delta list or an indirect list, or has an unknown critical extension", () =>
    Effect.gen(function*() {
      const of = (extension: Uint8Array) => detailOf(crafted({ extensions: [extension] }))
      const ofEntry = (extension: Uint8Array) => detailOf(crafted({ entries: [entry(), entry(extension)] }))
      assert.include(yield* of(ext("2.5.29.27", int(1n), true)), "it is a delta list (RFC 5280 section 5.2.4)")
      assert.include(yield* of(ext("2.5.29.27", int(1n))), "it is a delta list")
      assert.include(yield* ofEntry(ext("2.5.29.21", hexed("0a0108"))), "it is a delta list")
      assert.include(yield* of(distribution(hexed("8401ff"))), "it is an indirect list")
      assert.include(yield* ofEntry(ext("2.5.29.29", seq(), true)), "it is an indirect list")
      assert.include(yield* of(ext("1.2.3", int(1n), true)), "the critical extension 1.2.3, which is not known here")
      assert.include(yield* ofEntry(ext("1.2.3", int(1n), true)), "the critical extension 1.2.3")
      assert.include(yield* of(ext("2.5.29.20", int(2n ** 52n + 1n))), "its number is above 4503599627370496")
      assert.include(yield* of(ext("2.5.29.20", int(2n ** 159n))), "its number is above")
      const pss = seq(oid("1.2.840.113549.1.1.10"))
      assert.include(yield* detailOf(crafted({ algorithm: pss })), "names two algorithms")
      const list = yield* readRevocationList(crafted({ extensions: [ext("1.2.3", int(1n))] }))
      const unknown = { ...list, algorithm: "1.2.840.113549.1.1.10" }
      const refused = yield* Effect.flip(verifyList(unknown, caOfType("rsa-2048").material.publicKey))
      assert.include(refused.detail, "of the algorithm 1.2.840.113549.1.1.10")
    }))

  it.effect("is refused if it is truncated, is never accepted if it is damaged, and causes no defect", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const whole = Buffer.from(yield* listOf(ca, [{ serial: "0a", revokedAt: NOW, reason: 1 }]))
      for (let length = 0; length < whole.length; length++) {
        assert.include(yield* detailOf(whole.subarray(0, length)), "no revocation list in DER", `${length} octets`)
      }
      assert.include(yield* detailOf(Buffer.concat([whole, Buffer.from([0])])), "trailing")
      const random = seeded(5)
      for (let round = 0; round < 2000; round++) {
        const damaged = mutate(whole, random)
        const read = yield* Effect.result(readRevocationList(damaged))
        if (damaged.equals(whole) || Result.isFailure(read)) continue
        assert.isTrue(Result.isFailure(yield* Effect.result(verifyList(read.success, ca.material.publicKey))))
      }
    }))

  it.live("lets other work run while its hundred thousand entries are read", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const entries = Array.from({ length: 100_000 }, (_, index) => ({
        serial: `10${index.toString(16).padStart(6, "0")}`,
        revokedAt: NOW,
        reason: 4
      }))
      const octets = yield* listOf(ca, entries)
      let turns = 0
      const others = yield* Effect.forkChild(
        Effect.forever(Effect.andThen(Effect.sync(() => turns += 1), Effect.yieldNow))
      )
      const list = yield* readRevocationList(octets)
      assert.isAtLeast(turns, 20)
      yield* Fiber.interrupt(others)
      assert.deepStrictEqual(list.entries, entries)
      yield* verifyList(list, ca.material.publicKey)
    }))

  it.effect("is read from a file as DER or as one block of PEM", () =>
    Effect.gen(function*() {
      const list = crafted()
      const block = pem("X509 CRL", list)
      for (const file of [list, Buffer.from(block), Buffer.from(`a comment\n${block}\n`)]) {
        assert.deepStrictEqual(Buffer.from(yield* Effect.fromResult(listInFile(file))), list)
      }
      for (const file of ["", "nothing", block + block, pem("CERTIFICATE", list), block.slice(0, 90)]) {
        assert.isTrue(Result.isFailure(listInFile(Buffer.from(file))), file)
      }
    }))
})
