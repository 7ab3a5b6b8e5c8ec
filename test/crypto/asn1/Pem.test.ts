import { describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { assert } from "vitest"
import { encodePem, splitPem } from "../../../src/crypto/asn1/Pem.ts"
import { prop } from "../../support/Property.ts"

const block = encodePem("CERTIFICATE", Uint8Array.of(1, 2, 3, 4))
const fault = (text: string, outside: Parameters<typeof splitPem>[1] = "nothing"): string => {
  const split = splitPem(text, outside)
  return Result.isFailure(split) ? split.failure.detail : assert.fail("the text was accepted")
}

describe("splitPem", () => {
  prop(
    "reads back what encodePem writes, for any number of blocks",
    [fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }))],
    ([contents]) => {
      const text = contents.map((content) => encodePem("X509 CRL", content)).join("")
      for (const variant of [text, text.replaceAll("\n", "\r\n"), `\n  \n${text}\n\n`]) {
        const blocks = Result.getOrThrow(splitPem(variant, "nothing"))
        assert.deepStrictEqual(blocks.map(({ der }) => Buffer.from(der)), contents.map((one) => Buffer.from(one)))
        assert.isTrue(blocks.every(({ headers, label }) => label === "X509 CRL" && headers.length === 0))
      }
      assert.isTrue(text.split("\n").every((line) => line.length <= 64))
    }
  )

  it("reads the headers of a key in the old form of PEM", () => {
    const text =
      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAQID\n-----END RSA PRIVATE KEY-----\n"
    const [found] = Result.getOrThrow(splitPem(text, "nothing"))
    assert.deepStrictEqual(found?.headers, ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,00"])
    assert.deepStrictEqual(Buffer.from(found?.der ?? []), Buffer.from([1, 2, 3]))
  })

  it("accepts text before a block only if the caller allows such text", () => {
    assert.include(fault(`subject=x\n${block}`), "line 1")
    assert.isTrue(Result.isSuccess(splitPem(`subject=x\n${block}issuer=y\n${block}`, "before")))
    assert.include(fault(`${block}trailing`), "outside")
    assert.include(fault(`${block}trailing`, "before"), "after the last block")
    assert.include(fault("no block at all", "before"), "after the last block")
    assert.deepStrictEqual(splitPem("", "nothing"), Result.succeed([]))
  })

  it("accepts text around the blocks only if the caller allows such text", () => {
    const mail = `Hello,\r\n\r\n${block}regards\n-----Original Message-----\n> the request\n`
    assert.include(fault(mail, "before"), "line")
    const found = Result.getOrThrow(splitPem(`\ufeff${mail}`, "around"))
    assert.deepStrictEqual(found, Result.getOrThrow(splitPem(block, "nothing")))
    assert.include(fault(`${mail}-----END CERTIFICATE-----\n`, "around"), "out of place")
  })

  it("refuses malformed blocks, and does not quote their content", () => {
    for (
      const text of [
        "-----BEGIN CERTIFICATE-----\nAQID\n",
        "-----BEGIN CERTIFICATE-----\nAQID\n-----END PRIVATE KEY-----\n",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAQI*\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAQIDB\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAQ=D\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAQ==\nAQ==\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAR==\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nA_-D\n-----END CERTIFICATE-----\n",
        "-----BEGIN certificate-----\nAQID\n-----END certificate-----\n",
        "-----END CERTIFICATE-----\n",
        `-----BEGIN CERTIFICATE-----\nAQID\n${block}`
      ]
    ) assert.notInclude(fault(text, "before"), "AQ", text)
  })
})
