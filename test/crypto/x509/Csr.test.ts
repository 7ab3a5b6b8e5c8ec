import { describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import type { KeyObject } from "node:crypto"
import { generateKeyPairSync, webcrypto } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as pkijs from "pkijs"
import { assert } from "vitest"
import type { Csr } from "../../../src/crypto/x509/Csr.ts"
import { checkCsrNames, leafCommonName, parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import { prop } from "../../support/Property.ts"
import {
  algorithms,
  attribute,
  bitString,
  cn,
  csrOf,
  type CsrParts,
  der,
  dns,
  ecKey,
  ext,
  EXTENSION_REQUEST,
  hexed,
  int,
  mutate,
  oid,
  openssl,
  opensslCsr,
  pem,
  rsaKey,
  rsaSpki,
  sanOf,
  seeded,
  seq,
  set,
  signedCsr,
  spkiOf,
  utf8,
  withDirectory
} from "../Pki.ts"

const accepted = (csr: Uint8Array): Csr => Result.getOrThrowWith(parseCsr(csr), (refused) => refused)
const reason = (csr: Uint8Array): string => {
  const read = parseCsr(csr)
  return Result.isFailure(read) ? read.failure.reason : "accepted"
}
const detail = (csr: Uint8Array): string => {
  const read = parseCsr(csr)
  return Result.isFailure(read) ? read.failure.detail : "accepted"
}
const hex = (octets: Uint8Array): string => Buffer.from(octets).toString("hex")
const reasonOf = (parts: CsrParts): string => reason(csrOf(parts))

describe("a request that another program made", () => {
  const curve = (name: string) => ["-algorithm", "EC", "-pkeyopt", `ec_paramgen_curve:${name}`]
  const cases: ReadonlyArray<readonly [string, string, KeyObject | ReadonlyArray<string>, ReadonlyArray<string>]> = [
    ["P-256", "ecdsa", curve("P-256"), []],
    ["P-256 with SHA-512", "ecdsa", curve("P-256"), ["-sha512"]],
    ["P-384", "ecdsa", curve("P-384"), ["-sha384"]],
    ["P-521", "ecdsa", curve("P-521"), ["-sha224"]],
    ["Ed25519", "ed25519", ["-algorithm", "ED25519"], []],
    ["RSA 2048", "rsa", rsaKey, []],
    ["RSA 3072 with SHA-384", "rsa", ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"], ["-sha384"]],
    ["RSA with PSS", "rsa", rsaKey, ["-sha256", "-sigopt", "rsa_padding_mode:pss"]],
    [
      "RSA with PSS and a short salt",
      "rsa",
      rsaKey,
      ["-sha512", "-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:64"]
    ]
  ]
  for (const [name, keyType, genpkey, req] of cases) {
    it(`is accepted from openssl with ${name}`, () => {
      const csr = opensslCsr(genpkey, req)
      const read = accepted(csr)
      assert.strictEqual(read.keyType, keyType)
      assert.deepStrictEqual(read.names, ["a.example.com", "b.example.com"])
      assert.deepStrictEqual(read.commonNames, [])
      const judged = openssl(["req", "-inform", "DER", "-pubkey", "-noout"], csr).toString()
      assert.strictEqual(Buffer.from(read.spki).toString("base64"), judged.split("\n").slice(1, -2).join(""))
    })
  }

  it("is accepted with RSA 8192", () => {
    const text = readFileSync(join(import.meta.dirname, "../rsa8192.csr.pem"), "utf8")
    assert.strictEqual(accepted(openssl(["req", "-outform", "DER"], text)).keyType, "rsa")
  })

  for (
    const [name, keyType, algorithm] of [
      ["P-256", "ecdsa", { name: "ECDSA", namedCurve: "P-256" }],
      ["P-384", "ecdsa", { name: "ECDSA", namedCurve: "P-384" }],
      ["P-521", "ecdsa", { name: "ECDSA", namedCurve: "P-521" }],
      [
        "RSA",
        "rsa",
        { name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }
      ]
    ] as const
  ) {
    it(`is accepted from pkijs with ${name}`, async () => {
      const engine = new pkijs.CryptoEngine({ name: "node", crypto: webcrypto as never })
      const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])
      const request = new pkijs.CertificationRequest()
      await request.subjectPublicKeyInfo.importKey(keys.publicKey as never, engine)
      const names = new pkijs.GeneralNames({ names: [new pkijs.GeneralName({ type: 2, value: "Pkijs.Example.com." })] })
      const extensions = new pkijs.Extensions({
        extensions: [
          new pkijs.Extension({ extnID: "2.5.29.17", critical: false, extnValue: names.toSchema().toBER(false) })
        ]
      })
      request.attributes = [new pkijs.Attribute({ type: EXTENSION_REQUEST, values: [extensions.toSchema()] })]
      await request.sign(keys.privateKey as never, "SHA-256", engine)
      const read = accepted(new Uint8Array(request.toSchema(true).toBER(false)))
      assert.strictEqual(read.keyType, keyType)
      assert.deepStrictEqual(read.names, ["pkijs.example.com"])
    })
  }
})

describe("the key of a request", () => {
  const rsa = (
    ...options: ReadonlyArray<string>
  ) => ["-algorithm", "RSA", ...options.flatMap((one) => ["-pkeyopt", one])]
  it("is refused with key_size if it is an RSA key of 1024 or 8193 bits", () => {
    assert.strictEqual(reason(opensslCsr(rsa("rsa_keygen_bits:1024"))), "key_size")
    assert.strictEqual(reasonOf({ key: rsaKey, spki: rsaSpki((1n << 8192n) | 1n, 65537n) }), "key_size")
  })
  it("is refused with exponent if its exponent is 1, 3 or even", () => {
    assert.strictEqual(reason(opensslCsr(rsa("rsa_keygen_bits:2048", "rsa_keygen_pubexp:3"))), "exponent")
    for (const e of [1n, 3n, 65538n]) {
      assert.strictEqual(reasonOf({ key: rsaKey, spki: rsaSpki((1n << 2047n) | 1n, e) }), "exponent")
    }
  })
  it("is refused with key_type if it is of another kind or curve, has explicit parameters, or is a compressed point", () => {
    const ec = (
      ...options: ReadonlyArray<string>
    ) => ["-algorithm", "EC", ...options.flatMap((one) => ["-pkeyopt", one])]
    assert.strictEqual(reason(opensslCsr(ec("ec_paramgen_curve:P-224"))), "key_type")
    assert.strictEqual(reason(opensslCsr(ec("ec_paramgen_curve:secp256k1"))), "key_type")
    assert.strictEqual(reason(opensslCsr(ec("ec_paramgen_curve:P-256", "ec_param_enc:explicit"))), "key_type")
    assert.strictEqual(reason(opensslCsr(["-algorithm", "ED448"])), "key_type")
    const limited = opensslCsr(["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"])
    assert.strictEqual(reason(limited), "key_type")
    assert.include(detail(limited), "limited to PSS")
    const { x = "", y = "" } = ecKey.export({ format: "jwk" })
    const odd = (Buffer.from(y, "base64url").at(-1) ?? 0) & 1
    const compressed = seq(
      seq(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")),
      bitString(Buffer.concat([Buffer.from([2 + odd]), Buffer.from(x, "base64url")]))
    )
    assert.strictEqual(reasonOf({ spki: compressed }), "key_type")
    assert.strictEqual(
      reasonOf({ spki: seq(seq(oid("1.2.840.10045.2.1")), bitString(Buffer.alloc(65, 4))) }),
      "key_type"
    )
  })
  it("is refused with undecodable if it is not a point of its curve, or is an Ed25519 key of another length", () => {
    for (const [curve, size] of [["1.2.840.10045.3.1.7", 32], ["1.3.132.0.34", 48], ["1.3.132.0.35", 66]] as const) {
      const point = Buffer.concat([Buffer.from([4]), Buffer.alloc(2 * size, 1)])
      const spki = seq(seq(oid("1.2.840.10045.2.1"), oid(curve)), bitString(point))
      assert.strictEqual(reasonOf({ spki }), "undecodable")
    }
    assert.strictEqual(reasonOf({ spki: seq(seq(oid("1.3.101.112")), bitString(Buffer.alloc(31, 1))) }), "undecodable")
    assert.strictEqual(reasonOf({ spki: rsaSpki(0n, 65537n) }), "undecodable")
    const negative = seq(
      seq(oid("1.2.840.113549.1.1.1"), hexed("0500")),
      bitString(seq(der(0x02, Buffer.alloc(256, 0xab)), int(65537n)))
    )
    assert.strictEqual(reasonOf({ spki: negative }), "undecodable")
  })
})

describe("the signature of a request", () => {
  it("is refused with signature if it is wrong, or is made with another key or another digest", () => {
    assert.strictEqual(reasonOf({ signature: Buffer.alloc(71, 1) }), "signature")
    assert.strictEqual(reasonOf({ signature: Buffer.alloc(0) }), "signature")
    assert.strictEqual(
      reasonOf({ spki: spkiOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey) }),
      "signature"
    )
    assert.strictEqual(reasonOf({ algorithm: seq(oid("1.2.840.10045.4.3.3")) }), "signature")
  })
  it("is refused with signature_algorithm if the algorithm is unknown or does not match the key, and the message names it", () => {
    const taken = "This server verifies RSA (PKCS #1 or PSS) and ECDSA, each with a digest of SHA-2, and Ed25519."
    const pss = ["-sigopt", "rsa_padding_mode:pss"]
    const cases: ReadonlyArray<readonly [Uint8Array, string]> = [
      [opensslCsr(rsaKey, ["-sha3-256"]), `The CSR is signed with the algorithm 2.16.840.1.101.3.4.3.14. ${taken}`],
      [csrOf({ algorithm: seq(oid("1.2.3.4")) }), `The CSR is signed with the algorithm 1.2.3.4. ${taken}`],
      [
        opensslCsr(rsaKey, ["-sha256", ...pss, "-sigopt", "rsa_mgf1_md:sha512"]),
        `The CSR is signed with RSASSA-PSS of other parameters. ${taken}`
      ],
      [
        csrOf({ key: rsaKey, algorithm: seq(oid("1.2.840.113549.1.1.10")) }),
        `The CSR is signed with RSASSA-PSS of other parameters. ${taken}`
      ],
      [
        csrOf({ algorithm: algorithms.rsa }),
        "The CSR is signed with an algorithm for RSA keys, but holds an ECDSA key."
      ],
      [
        csrOf({ key: rsaKey, algorithm: algorithms.ecdsa }),
        "The CSR is signed with an algorithm for ECDSA keys, but holds an RSA key."
      ],
      [
        csrOf({ algorithm: seq(oid("1.2.840.10045.4.3.2"), hexed("0500")) }),
        "The signature algorithm of the CSR has parameters, which it may not have."
      ]
    ]
    for (const [csr, said] of cases) assert.deepStrictEqual([reason(csr), detail(csr)], ["signature_algorithm", said])
  })
  it("may be an RSA signature whose algorithm lacks the NULL parameter, as RFC 4055 requires", () => {
    assert.strictEqual(reasonOf({ key: rsaKey, algorithm: seq(oid("1.2.840.113549.1.1.11")) }), "accepted")
  })
  it("is refused with digest if its algorithm uses SHA-1 or MD5", () => {
    const ec = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    assert.strictEqual(reason(opensslCsr(rsaKey, ["-sha1"])), "digest")
    assert.strictEqual(reason(opensslCsr(rsaKey, ["-md5"])), "digest")
    assert.strictEqual(reason(opensslCsr(ec, ["-sha1"])), "digest")
    const pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:20"]
    assert.strictEqual(reason(opensslCsr(rsaKey, ["-sha1", ...pss])), "digest")
    assert.strictEqual(
      reason(opensslCsr(rsaKey, ["-sha256", ...pss, "-sigopt", "rsa_mgf1_md:sha1"])),
      "digest"
    )
    for (const broken of ["1.2.840.113549.1.1.2", "1.2.840.113549.1.1.4", "1.3.14.3.2.29", "1.2.840.10045.4.1"]) {
      assert.strictEqual(reasonOf({ algorithm: seq(oid(broken)) }), "digest")
    }
  })
})

describe("the form of a request", () => {
  const good = csrOf({})
  it("may have version 0, 1 or 2, but no other version", () => {
    for (const version of [0n, 1n, 2n]) assert.strictEqual(reasonOf({ version: int(version) }), "accepted")
    for (const version of [int(3n), int(256n), der(0x02, hexed("ff")), hexed("0200"), hexed("0500")]) {
      assert.strictEqual(reasonOf({ version }), "undecodable", hex(version))
    }
    assert.strictEqual(
      detail(csrOf({ version: int(3n) })),
      "The CSR is not a DER PKCS#10 request: the version is none of 0, 1 and 2, at octet 9."
    )
  })
  it("causes a message that says that the request is PEM, that it is empty, or at which octet it is wrong", () => {
    const sentence = "The CSR is not a DER PKCS#10 request: "
    const text = Buffer.from(pem("CERTIFICATE REQUEST", good))
    assert.strictEqual(detail(text), "The CSR is PEM; send the DER inside it, as base64url.")
    assert.strictEqual(detail(Buffer.concat([Buffer.from("\n"), text])), detail(text))
    assert.strictEqual(detail(Buffer.alloc(0)), "The CSR is empty.")
    assert.strictEqual(detail(Buffer.from("Hello")), `${sentence}it does not begin with a SEQUENCE, at octet 0.`)
    const shorter = good.subarray(0, -1)
    assert.strictEqual(detail(shorter), `${sentence}a length is out of bounds, at octet 0.`)
    for (const more of [Buffer.alloc(1), Buffer.from("\n"), good, hexed("3080")]) {
      const longer = Buffer.concat([good, more])
      assert.strictEqual(detail(longer), `${sentence}there are trailing bytes, at octet ${good.length}.`)
    }
  })
  it("is refused with undecodable if there are trailing bytes, if it is PEM, or if it is empty", () => {
    assert.strictEqual(reason(good), "accepted")
    assert.strictEqual(reason(Buffer.concat([good, Buffer.from([0])])), "undecodable")
    assert.strictEqual(reason(Buffer.concat([good, good])), "undecodable")
    assert.strictEqual(reason(Buffer.from("-----BEGIN CERTIFICATE REQUEST-----\n")), "undecodable")
    assert.strictEqual(reason(Buffer.alloc(0)), "undecodable")
    assert.strictEqual(reason(seq(good.subarray(4), hexed("0500"))), "undecodable")
  })
  it("is refused with undecodable if any length in it is indefinite or padded, or any integer is padded", () => {
    assert.strictEqual(reason(Buffer.concat([hexed("3080"), good.subarray(4), hexed("0000")])), "undecodable")
    assert.strictEqual(reason(Buffer.concat([hexed("308300"), good.subarray(2)])), "undecodable")
    assert.strictEqual(reasonOf({ version: hexed("02020000") }), "undecodable")
    const ignored = (value: Uint8Array) =>
      reasonOf({
        attributes: [attribute(EXTENSION_REQUEST, seq(sanOf(dns("a.example.com")))), attribute("1.2.3", value)]
      })
    assert.strictEqual(ignored(utf8("challenge")), "accepted")
    assert.strictEqual(ignored(hexed("30800201010000")), "undecodable")
    assert.strictEqual(ignored(hexed("3081020500")), "undecodable")
    assert.strictEqual(ignored(hexed("020200ff").fill(1, 3)), "undecodable")
  })
  it("is never accepted if it is damaged, and never causes an exception, in 10 000 mutations", () => {
    const random = seeded(seedOf(42))
    const requests = [good, csrOf({ key: rsaKey, subject: seq(cn(utf8("a.example.com"))) })]
    for (let i = runsOf(10_000) / 2; i > 0; i--) {
      for (const request of requests) {
        const damaged = mutate(request, random)
        if (damaged.equals(request)) continue
        const read = parseCsr(damaged)
        assert.isTrue(Result.isFailure(read), damaged.toString("hex"))
      }
    }
  })
  it("never causes an exception if its content is damaged before it is signed, and gives only well-formed names", () => {
    const random = seeded(seedOf(43))
    const subject = seq(cn(utf8("a.example.com")), cn(der(0x1e, hexed("0061"))))
    const parts = { subject, extensions: [sanOf(dns("a.example.com"), dns("b.example.com")), ext("2.5.29.19", seq())] }
    const request = csrOf(parts)
    // The outer header has four octets, and the header of the signed part also has four.
    const info = request.subarray(4, 4 + 4 + request.readUInt16BE(6))
    for (let i = runsOf(4000); i > 0; i--) {
      const read = parseCsr(signedCsr(mutate(info, random)))
      if (Result.isSuccess(read)) {
        for (const name of [...read.success.names, ...read.success.commonNames]) assert.match(name, /^[a-z0-9._*-]+$/)
      }
    }
  })
  prop(
    "is refused without an exception if it consists of random octets",
    [fc.uint8Array({ maxLength: 300 })],
    ([octets]) => {
      assert.strictEqual(reason(octets), "undecodable")
    }
  )
})

describe("the names in a request", () => {
  const withSan = (...names: ReadonlyArray<Uint8Array>) => reasonOf({ extensions: [sanOf(...names)] })
  const good = dns("a.example.com")

  it("are converted to lower case, lose one final dot and all duplicates, and keep their order", () => {
    const san = sanOf(dns("B.Example.com"), good, dns("b.example.com."), dns("*.x.example.com"), dns("_x.a"))
    const read = accepted(csrOf({ extensions: [san] }))
    assert.deepStrictEqual(read.names, ["b.example.com", "a.example.com", "*.x.example.com", "_x.a"])
  })
  it("are refused with san_missing if there is neither a SAN nor a CN", () => {
    assert.strictEqual(reasonOf({ attributes: [] }), "san_missing")
    assert.strictEqual(reasonOf({ extensions: [] }), "san_missing")
    assert.strictEqual(withSan(), "san_missing")
  })
  it("may be only in a common name", () => {
    const subject = seq(cn(utf8("a.example.com")))
    for (const parts of [{ attributes: [] }, { extensions: [] }, { extensions: [sanOf()] }]) {
      const read = accepted(csrOf({ ...parts, subject }))
      assert.deepStrictEqual([read.names, read.commonNames], [[], ["a.example.com"]])
    }
  })
  it("cause a message that names the type of a name that is not a DNS name, or the wrong character", () => {
    const said = (name: Uint8Array) => detail(csrOf({ extensions: [sanOf(name)] }))
    for (
      const [name, expected] of [
        [der(0x87, hexed("0a000001")), "an IP address; certificates are for DNS names alone."],
        [der(0x81, Buffer.from("a@b")), "a mail address; certificates are for DNS names alone."],
        [dns("a/b.example"), "a DNS name with the character /: a/b.example."],
        [dns("a b.example"), "a DNS name with a space: a\\u{20}b.example."],
        [dns("a\0.example"), "a DNS name with the character U+0000: a\\u{0}.example."],
        [dns("a".repeat(300)), `a name of more than 253 octets: ${"a".repeat(253)}….`],
        [dns("."), "an empty name."]
      ] as const
    ) assert.strictEqual(said(name), `The subjectAltName holds ${expected}`)
  })
  it("are refused with san_missing if the request has no attributes", () => {
    assert.strictEqual(reason(signedCsr(seq(int(0n), seq(), spkiOf(ecKey)))), "san_missing")
  })
  it("are refused with san_type if they are of any other type", () => {
    const others: { readonly [kind: string]: Uint8Array } = {
      otherName: der(0xa0, oid("1.2.3"), der(0xa0, utf8("a.example.com"))),
      mail: der(0x81, Buffer.from("a@example.com")),
      directoryName: der(0xa4, seq(cn(utf8("a.example.com")))),
      uri: der(0x86, Buffer.from("https://a.example.com/")),
      ip4: der(0x87, hexed("0a000001")),
      ip6: der(0x87, Buffer.alloc(16, 1)),
      registeredID: der(0x88, hexed("2a03"))
    }
    for (const [kind, name] of Object.entries(others)) {
      assert.strictEqual(withSan(name), "san_type", kind)
      assert.strictEqual(withSan(good, name), "san_type", kind)
    }
  })
  it("are refused with san_type if they contain octets that no DNS name has", () => {
    for (
      const name of [
        "a.example.com\0",
        "a.example.com\0.evil.test",
        "a.example.com,b.example.com",
        "a.example.com\n",
        "a.example.com\r\nb",
        "a b.example.com",
        "bücher.example",
        "a.example.com/",
        "a:80",
        "$(id).example.com",
        "",
        "."
      ]
    ) assert.strictEqual(withSan(good, dns(name)), "san_type", JSON.stringify(name))
    assert.strictEqual(withSan(dns(hexed("ff2e61"))), "san_type")
    assert.strictEqual(withSan(dns("a".repeat(300))), "san_type")
  })
  it("are refused with san_extra if the request has a second SAN or a second extension request", () => {
    const request = (...extensions: ReadonlyArray<Uint8Array>) => seq(...extensions)
    const one = request(sanOf(good))
    assert.strictEqual(reasonOf({ extensions: [sanOf(good), sanOf(good)] }), "san_extra")
    const both = (...attributes: ReadonlyArray<Uint8Array>) => reasonOf({ attributes })
    assert.strictEqual(both(attribute(EXTENSION_REQUEST, one), attribute(EXTENSION_REQUEST, one)), "san_extra")
    assert.strictEqual(both(attribute(EXTENSION_REQUEST, one, one)), "san_extra")
    assert.strictEqual(both(attribute(EXTENSION_REQUEST, one), attribute(EXTENSION_REQUEST, request())), "san_extra")
    assert.strictEqual(both(attribute(EXTENSION_REQUEST, one), attribute("1.3.6.1.4.1.311.2.1.14", one)), "san_extra")
    assert.strictEqual(both(attribute("1.3.6.1.4.1.311.2.1.14", one)), "accepted")
    assert.strictEqual(both(attribute(EXTENSION_REQUEST)), "undecodable")
  })
  it("are refused with undecodable if the SAN is malformed", () => {
    assert.strictEqual(reasonOf({ extensions: [ext("2.5.29.17", hexed("0500"))] }), "undecodable")
    assert.strictEqual(
      reasonOf({ extensions: [ext("2.5.29.17", Buffer.concat([seq(good), hexed("00")]))] }),
      "undecodable"
    )
    assert.strictEqual(reasonOf({ extensions: [seq(oid("2.5.29.17"))] }), "undecodable")
    assert.strictEqual(reasonOf({ extensions: [hexed("3003020101")] }), "undecodable")
  })
  it("are read, and everything else that is requested is ignored", () => {
    const extensions = [
      ext("2.5.29.19", hexed("30030101ff"), true),
      ext("2.5.29.15", hexed("030201fe"), true),
      sanOf(good),
      ext("2.5.29.30", seq(), true),
      ext("1.3.6.1.4.1.11129.2.4.3", hexed("0500"), true),
      ext("1.2.3.4.5", hexed("ffff"), true)
    ]
    const attributes = [
      attribute("1.2.840.113549.1.9.7", utf8("secret")),
      attribute(EXTENSION_REQUEST, seq(...extensions))
    ]
    const subject = seq(set(seq(oid("1.2.840.113549.1.9.1"), der(0x16, Buffer.from("a@b")))), cn(utf8("Free text")))
    const read = accepted(csrOf({ attributes, subject }))
    assert.deepStrictEqual([read.names, read.commonNames], [["a.example.com"], []])
  })
  it("are read from a request that also has OIDs of UUIDs, which are ignored like any other", () => {
    const uuid = "2.25.329800735698586629295641978511506172918"
    const request = csrOf({
      subject: seq(set(seq(oid(uuid), utf8("x")))),
      attributes: [
        attribute(uuid, utf8("x")),
        attribute(EXTENSION_REQUEST, seq(sanOf(good), ext(uuid, hexed("0500"))))
      ]
    })
    openssl(["req", "-inform", "DER", "-verify", "-noout"], request)
    const read = accepted(request)
    assert.deepStrictEqual([read.names, read.extensions], [["a.example.com"], [uuid]])
  })
  prop(
    "are returned in normal form, whatever their case",
    [fc.uniqueArray(fc.stringMatching(/^[a-zA-Z0-9-]{1,12}(\.[a-zA-Z0-9_-]{1,8}){0,3}$/), {
      minLength: 1,
      maxLength: 20
    })],
    ([names]) => {
      const read = accepted(csrOf({ extensions: [sanOf(...names.map(dns))] }))
      assert.deepStrictEqual(read.names, [...new Set(names.map((name) => name.toLowerCase()))])
    },
    { numRuns: 40 }
  )
})

describe("common names", () => {
  const wide = (text: string) => Buffer.from([...text].flatMap((c) => [0, c.charCodeAt(0)]))
  const wider = (text: string) => Buffer.from([...text].flatMap((c) => [0, 0, 0, c.charCodeAt(0)]))
  const read = (...values: ReadonlyArray<Uint8Array>) => parseCsr(csrOf({ subject: seq(...values.map(cn)) }))
  const found = (...values: ReadonlyArray<Uint8Array>) => Result.map(read(...values), (csr) => csr.commonNames)
  const refusedAs = (value: Uint8Array) =>
    Result.match(read(value), { onFailure: (e) => e.reason, onSuccess: () => "accepted" })
  const encodings: { readonly [kind: string]: (text: string) => Uint8Array } = {
    utf8,
    printable: (text) => der(0x13, Buffer.from(text)),
    teletex: (text) => der(0x14, Buffer.from(text)),
    ia5: (text) => der(0x16, Buffer.from(text)),
    visible: (text) => der(0x1a, Buffer.from(text)),
    bmp: (text) => der(0x1e, wide(text)),
    universal: (text) => der(0x1c, wider(text))
  }

  it("are read in every string type", () => {
    for (const [kind, encode] of Object.entries(encodings)) {
      assert.deepStrictEqual(found(encode("A.Example.com.")), Result.succeed(["a.example.com"]), kind)
      assert.deepStrictEqual(found(encode("evil.test")), Result.succeed(["evil.test"]), kind)
      assert.deepStrictEqual(found(encode("My Server, Room 1.2")), Result.succeed([]), kind)
      assert.strictEqual(refusedAs(encode("a.example.com\0")), "common_name", kind)
      assert.strictEqual(refusedAs(encode("x\n")), "common_name", kind)
    }
  })
  it("are all read, whether they are in one relative name or in several", () => {
    const both = set(seq(oid("2.5.4.3"), utf8("a.example.com")), seq(oid("2.5.4.3"), utf8("evil.test")))
    assert.deepStrictEqual(accepted(csrOf({ subject: seq(both) })).commonNames, ["a.example.com", "evil.test"])
    assert.deepStrictEqual(
      found(utf8("a.example.com"), utf8("evil.test")),
      Result.succeed(["a.example.com", "evil.test"])
    )
  })
  it("are refused if they cannot be decoded", () => {
    for (
      const value of [
        der(0x0c, hexed("ff")),
        der(0x13, hexed("ff")),
        der(0x16, hexed("80")),
        der(0x1e, hexed("00")),
        der(0x1e, hexed("d800")),
        der(0x1c, hexed("000000")),
        der(0x1c, hexed("00110000")),
        der(0x04, Buffer.from("a.example.com")),
        int(1n),
        seq(utf8("a.example.com")),
        der(0x24, der(0x04, hexed("61")))
      ]
    ) assert.include(["common_name", "undecodable"], refusedAs(value), value.toString("hex"))
  })
  it("are refused if they look like DNS names in other scripts, and are ignored if they are free text", () => {
    assert.strictEqual(refusedAs(utf8("bücher.example")), "common_name")
    assert.strictEqual(refusedAs(utf8("ａ.example.com")), "common_name")
    assert.strictEqual(refusedAs(utf8("a。example。com")), "common_name")
    assert.deepStrictEqual(found(utf8("Müller GmbH")), Result.succeed([]))
    assert.deepStrictEqual(found(utf8("hostname")), Result.succeed([]))
    assert.deepStrictEqual(found(utf8("10.0.0.5")), Result.succeed(["10.0.0.5"]))
    assert.deepStrictEqual(found(utf8("")), Result.succeed([]))
  })
  it("include the common name of the leaf, which is the first that is among the names and is not too long", () => {
    const long = `${"a".repeat(60)}.example.com`
    const csr = accepted(csrOf({
      extensions: [sanOf(dns("localhost"), dns(long))],
      subject: seq(cn(utf8(long)), cn(utf8("Localhost")))
    }))
    assert.deepStrictEqual(csr.commonNames, [long])
    const ofRequest = (csr: Csr, names: ReadonlyArray<string>) => leafCommonName(csr, names, "request", () => true)
    assert.strictEqual(ofRequest(csr, csr.names), "localhost")
    assert.isUndefined(ofRequest(csr, ["other"]))
    assert.isUndefined(ofRequest(accepted(csrOf({})), ["a.example.com"]))
  })
  it("include the common name that the kind of the certificate wants", () => {
    const [short, long] = ["a".repeat(64 - 8) + ".example", "a".repeat(65 - 8) + ".example"]
    const some = accepted(csrOf({ extensions: [sanOf(dns(long), dns(short), dns("b.example"))] }))
    const own = accepted(csrOf({
      extensions: [sanOf(dns(long), dns(short), dns("b.example"))],
      subject: seq(cn(utf8("B.example")))
    }))
    const all = [long, short, "b.example"]
    const every = () => true
    assert.deepStrictEqual(all.map(({ length }) => length), [65, 64, 9])
    assert.strictEqual(leafCommonName(some, all, "first", every), short, "the first of at most 64 octets")
    assert.strictEqual(leafCommonName(own, all, "first", every), "b.example", "that of the CSR comes first")
    assert.strictEqual(leafCommonName(own, [short], "first", every), short, "which must be a name of the order")
    assert.isUndefined(leafCommonName(some, [long], "first", every))
    assert.isUndefined(leafCommonName(some, all, "first", () => false))
    assert.strictEqual(leafCommonName(some, all, "first", (name) => name !== short), "b.example")
    assert.isUndefined(leafCommonName(some, all, "request", every))
    assert.strictEqual(leafCommonName(own, all, "request", every), "b.example")
    assert.isUndefined(leafCommonName(own, all, "request", (name) => name !== "b.example"))
    for (const csr of [some, own]) assert.isUndefined(leafCommonName(csr, all, "never", every))
    assert.strictEqual(leafCommonName(some, ["*.example", "b.example"], "first", every), "*.example")
  })
})

describe("checkCsrNames", () => {
  const csr = accepted(csrOf({ extensions: [sanOf(dns("a.example.com"), dns("B.example.com."))] }))
  const verdict = (orderedNames: ReadonlyArray<string>, one: Csr = csr) =>
    Result.match(checkCsrNames(one, orderedNames), { onFailure: ({ reason }) => reason, onSuccess: () => "accepted" })

  it("requires exactly the names of the order", () => {
    assert.strictEqual(verdict(["b.example.com", "a.example.com"]), "accepted")
    assert.strictEqual(verdict(["a.example.com"]), "san_extra")
    assert.strictEqual(verdict(["a.example.com", "b.example.com", "c.example.com"]), "san_missing")
    assert.strictEqual(verdict(["a.example.com", "c.example.com"]), "san_extra")
    assert.strictEqual(verdict(["*.example.com"]), "san_extra")
  })
  const named = (parts: CsrParts, ...names: ReadonlyArray<string>) =>
    accepted(csrOf({ ...parts, subject: seq(...names.map((name) => cn(utf8(name)))) }))
  it("combines the names of the SAN with the common names", () => {
    const one = (...names: ReadonlyArray<string>) => named({ attributes: [] }, ...names)
    assert.strictEqual(verdict(["a.example.com"], one("A.Example.com.")), "accepted")
    assert.strictEqual(verdict(["localhost"], one("localhost")), "accepted")
    assert.strictEqual(verdict(["*.example.com"], one("*.example.com")), "accepted")
    assert.strictEqual(verdict(["b.example.com", "a.example.com"], one("a.example.com", "b.example.com")), "accepted")
    assert.strictEqual(verdict(["a.example.com", "b.example.com"], one("a.example.com")), "san_missing")
    assert.strictEqual(verdict(["a.example.com"], one("b.example.com")), "common_name")
    assert.strictEqual(verdict(["a.example.com"], one("Free text")), "san_missing")
    assert.strictEqual(verdict(["a.example.com", "b.example.com"], named({}, "b.example.com")), "accepted")
    assert.strictEqual(verdict(["b.example.com"], named({}, "b.example.com")), "san_extra")
  })
  it("requires that the order includes each common name that looks like a name", () => {
    const one = (...names: ReadonlyArray<string>) => named({}, ...names)
    assert.strictEqual(verdict(["a.example.com"], one("a.example.com", "Free text")), "accepted")
    assert.strictEqual(verdict(["a.example.com"], one("a.example.com", "evil.test")), "common_name")
    assert.strictEqual(verdict(["a.example.com"], one("10.0.0.5")), "common_name")
  })
  it("takes no text for a name of the order that only Unicode calls the same", () => {
    const one = (name: string) => reason(csrOf({ attributes: [], subject: seq(cn(utf8(name))) }))
    assert.strictEqual(one("\u212aiosk.example"), "common_name")
    for (const text of ["\u212aiosk", "kiosk\u00a0", "\ufeffkiosk", "kiosk\u3000"]) {
      assert.strictEqual(verdict(["kiosk"], named({ attributes: [] }, text)), "san_missing", JSON.stringify(text))
      const both = named({ extensions: [sanOf(dns("kiosk"))] }, text)
      assert.isTrue(Result.isFailure(checkCsrNames(both, ["kiosk"], true)), JSON.stringify(text))
      assert.isUndefined(leafCommonName(both, ["kiosk"], "request", () => true))
    }
    const blanks = named({ attributes: [] }, "a.example.com\u00a0", "b.example.com")
    assert.deepStrictEqual(blanks.commonNames, ["b.example.com"])
  })
  it("accepts only common names that are names of the order if the signer may copy the subject", () => {
    const both = { extensions: [sanOf(dns("a.example.com"), dns("b.example.com"))] }
    const copied = (...names: ReadonlyArray<string>) =>
      Result.match(checkCsrNames(named(both, ...names), ["a.example.com", "b.example.com"], true), {
        onFailure: ({ detail }) => detail,
        onSuccess: () => "accepted"
      })
    assert.strictEqual(copied(), "accepted")
    assert.strictEqual(copied("A.example.com.", " b.example.com"), "accepted")
    assert.strictEqual(copied("localhost"), "The CSR has the common name localhost, which the order lacks.")
    assert.strictEqual(
      copied("a.example.com", "Free text", "router"),
      "The CSR has the common name free\\u{20}text and 1 more, which the order lacks."
    )
  })
  it("mentions the additional name in its message", () => {
    const refused = checkCsrNames(csr, ["a.example.com"])
    assert.isTrue(Result.isFailure(refused) && refused.failure.detail.includes("b.example.com"))
  })
})

describe("openssl", () => {
  it("accepts a request that the test built from parts", () => {
    withDirectory(() => {
      const said = openssl(["req", "-inform", "DER", "-verify", "-noout", "-text"], csrOf({})).toString()
      assert.include(said, "DNS:a.example.com")
    })
  })
})
