import { describe, it } from "@effect/vitest"
import * as asn1js from "asn1js"
import { Result } from "effect"
import * as fc from "fast-check"
import { assert } from "vitest"
import { decode, DerReader, Tag } from "../../../src/crypto/asn1/DerReader.ts"
import { bits, element, oid, sequence, text, time, unsigned } from "../../../src/crypto/asn1/DerWriter.ts"
import { prop } from "../../support/Property.ts"
import { der, hexed, mutate, oid as writtenOid, openssl, seeded } from "../Pki.ts"

const refused = (hex: string, read: (reader: DerReader) => unknown = (reader) => reader.verify()): string => {
  const found = decode(hexed(hex), read)
  return Result.isFailure(found) ? found.failure.detail : assert.fail(`${hex} was read`)
}

describe("the reader", () => {
  it("refuses encodings that BER allows and DER does not", () => {
    assert.include(refused("3080 0000"), "indefinite")
    assert.include(refused("3081 03 020101"), "not minimal")
    assert.include(refused("308200 03 020101"), "not minimal")
    assert.include(refused("0202 0001"), "not minimal")
    assert.include(refused("0202 ff80"), "not minimal")
    assert.include(refused("0200"), "empty")
    assert.include(refused("010101"), "boolean")
    assert.include(refused("0102ffff"), "boolean")
    assert.include(refused("050100"), "null")
    assert.include(refused("0302 0101"), "unused bits")
    assert.include(refused("0302 0800"), "bit string")
    assert.include(refused("0300"), "bit string")
    assert.include(refused("0301 01"), "bit string")
    assert.include(refused("0602 8001"), "arc")
    assert.include(refused("0603 2a8001"), "arc")
    assert.include(refused("0601 81"), "OID")
    assert.include(refused("0600"), "OID")
    assert.include(refused("2403 040100"), "constructed")
    assert.include(refused("1000"), "primitive")
    assert.include(refused("1f8101 00"), "tag")
    assert.include(refused("0000"), "tag")
    assert.include(refused("30"), "cut short")
    assert.include(refused("3005 0201"), "out of bounds")
    assert.include(refused("3085 0000000001 00"), "out of bounds")
    assert.include(refused("308400"), "out of bounds")
    assert.include(refused("300000", (reader) => reader.enter(0x30)), "trailing")
    assert.include(refused("300000", (reader) => reader.verifyOnly()), "trailing")
    assert.include(refused("3003 020200", (reader) => reader.verifyOnly()), "bounds")
  })

  it("refuses values that are not permitted in their field", () => {
    assert.include(refused("0201ff", (reader) => reader.positive()), "negative")
    assert.include(refused("020100", (reader) => reader.positive()), "zero")
    assert.include(refused("0201ff", (reader) => reader.small()), "range")
    assert.include(refused("0203010000", (reader) => reader.small()), "range")
    assert.include(refused("0101ff", (reader) => reader.integer()), "type")
    assert.include(refused("03020780", (reader) => reader.bits()), "octet boundary")
    assert.include(refused("0602 ffff", (reader) => reader.oid()), "cut short")
    assert.include(refused("0602 8001", (reader) => reader.oid()), "minimal")
    const longest = Buffer.concat([hexed("2a"), Buffer.alloc(126, 0xff), hexed("7f")])
    assert.isTrue(Result.isSuccess(decode(der(0x06, longest), (reader) => reader.oid())))
    const tooLong = der(0x06, hexed("2a"), longest)
    assert.include(refused(tooLong.toString("hex"), (reader) => reader.oid()), "too long")
  })

  it("reads arcs of any size, such as those of UUIDs (X.667)", () => {
    for (
      const dotted of [
        "2.25.329800735698586629295641978511506172918",
        `2.25.${2n ** 128n - 1n}`,
        `2.${2n ** 64n}`,
        `1.3.${2n ** 49n - 1n}.${2n ** 49n}.${2n ** 53n + 1n}.7`
      ]
    ) {
      const encoded = new Uint8Array(writtenOid(dotted))
      assert.deepStrictEqual(decode(encoded, (reader) => reader.oid()), Result.succeed(dotted))
      assert.include(openssl(["asn1parse", "-inform", "DER"], encoded).toString(), `:${dotted}\n`)
    }
  })

  it("refuses elements that are nested more than 32 deep", () => {
    let nested: Uint8Array = hexed("0500")
    for (let i = 0; i < 32; i++) nested = der(0x30, nested)
    assert.isTrue(Result.isSuccess(decode(nested, (reader) => reader.verify())))
    assert.isTrue(Result.isFailure(decode(der(0x30, nested), (reader) => reader.verify())))
  })

  it("reads times in the form of RFC 5280 and refuses all others", () => {
    const read = (tag: number, digits: string) => decode(text(tag, digits), (reader) => reader.time())
    assert.deepStrictEqual(
      read(Tag.utcTime, "491231235959Z"),
      Result.succeed(Date.UTC(2049, 11, 31, 23, 59, 59) / 1000)
    )
    assert.deepStrictEqual(read(Tag.generalizedTime, "20500101000000Z"), Result.succeed(Date.UTC(2050, 0, 1) / 1000))
    assert.deepStrictEqual(read(Tag.utcTime, "500101000000Z"), Result.succeed(Date.UTC(1950, 0, 1) / 1000))
    for (
      const [tag, digits] of [
        [Tag.utcTime, "4912312359Z"],
        [Tag.utcTime, "491231235959"],
        [Tag.utcTime, "491231235959+"],
        [Tag.utcTime, "491231235959+0000"],
        [Tag.utcTime, "490230000000Z"],
        [Tag.utcTime, "490001000000Z"],
        [Tag.utcTime, "491301000000Z"],
        [Tag.utcTime, "490100000000Z"],
        [Tag.utcTime, "490101240000Z"],
        [Tag.utcTime, "490101006000Z"],
        [Tag.utcTime, "490101000060Z"],
        [Tag.utcTime, "4901 1000000Z"],
        [Tag.generalizedTime, "20491231235959Z"],
        [Tag.generalizedTime, "20500101000000.5Z"],
        [Tag.generalizedTime, "500101000000Z"],
        [Tag.octetString, "491231235959Z"]
      ] as const
    ) assert.isTrue(Result.isFailure(read(tag, digits)), digits)
  })

  it("never throws on damaged octets", () => {
    const good = sequence(
      oid("2.5.29.17"),
      unsigned(hexed("80ff")),
      bits(hexed("00")),
      text(Tag.utf8String, "x"),
      time(0)
    )
    const random = seeded(1)
    for (let i = 0; i < 5000; i++) {
      const damaged = mutate(good, random)
      assert.isTrue(Result.isResult(decode(damaged, (reader) => reader.verify())))
    }
  })
})

describe("the writer", () => {
  prop(
    "writes lengths and contents that are read back",
    [fc.uint8Array({ maxLength: 70000, size: "max" })],
    ([content]) => {
      const encoded = element(Tag.octetString, content)
      assert.deepStrictEqual(
        Result.map(decode(encoded, (reader) => reader.content(Tag.octetString)), (found) => Buffer.from(found)),
        Result.succeed(Buffer.from(content))
      )
      assert.deepStrictEqual(Buffer.from(encoded), der(0x04, content))
    },
    { numRuns: 60 }
  )

  prop("writes integers that are minimal and are read back", [fc.bigInt({ min: 1n, max: 2n ** 600n })], ([value]) => {
    const hex = value.toString(16)
    const magnitude = hexed(hex.padStart(160, "0"))
    const encoded = unsigned(magnitude)
    const read = Result.getOrThrow(decode(encoded, (reader) => reader.positive()))
    assert.strictEqual(BigInt(`0x${Buffer.from(read).toString("hex")}`), value)
    const judged = asn1js.fromBER(new Uint8Array(encoded)).result
    assert.instanceOf(judged, asn1js.Integer)
    if (judged instanceof asn1js.Integer) assert.strictEqual(judged.toBigInt(), value)
  })

  prop(
    "writes object identifiers that are read back",
    [fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 39 }), fc.array(fc.integer({ min: 0, max: 2 ** 31 }))],
    ([root, second, rest]) => {
      const dotted = [root, second, ...rest].join(".")
      const encoded = oid(dotted)
      assert.deepStrictEqual(decode(encoded, (reader) => reader.oid()), Result.succeed(dotted))
      const judged = asn1js.fromBER(new Uint8Array(encoded)).result
      if (judged instanceof asn1js.ObjectIdentifier) assert.strictEqual(judged.valueBlock.toString(), dotted)
    }
  )

  prop(
    "writes times that are read back, in the type that the year requires",
    [fc.integer({ min: Date.UTC(1900, 0, 1) / 1000, max: Date.UTC(9999, 11, 31) / 1000 })],
    ([at]) => {
      const encoded = time(at)
      const year = new Date(at * 1000).getUTCFullYear()
      assert.strictEqual(encoded[0], year >= 1950 && year < 2050 ? Tag.utcTime : Tag.generalizedTime)
      assert.deepStrictEqual(decode(encoded, (reader) => reader.time()), Result.succeed(at))
    }
  )
})
