import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { generateKeyPairSync, hash, sign, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { alpnCertificateFault } from "../../../src/crypto/x509/AlpnCertificate.ts"
import type { ValidationCertificateParts } from "../../support/AlpnResponder.ts"
import {
  ACME_IDENTIFIER,
  acmeIdentifier,
  digestOf,
  validationCertificate,
  wideRsaKey
} from "../../support/AlpnResponder.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import { prop } from "../../support/Property.ts"
import {
  algorithms,
  bitString,
  cn,
  der,
  dns,
  ecKey,
  ext,
  hexed,
  int,
  mutate,
  oid,
  openssl,
  rsaKey,
  rsaSpki,
  sanOf,
  seeded,
  seq,
  utf8,
  withDirectory
} from "../Pki.ts"

const keyAuthorization = "token.thumbprint"
const name = "a.example"
const expected = { name, keyAuthorization }

const certificate = (parts: Partial<ValidationCertificateParts> = {}) =>
  validationCertificate({ name, keyAuthorization, ...parts })
const faultOf = (der: Uint8Array) => alpnCertificateFault(der, expected)?.fault
const named = (...names: ReadonlyArray<Uint8Array>) =>
  certificate({ extensions: [sanOf(...names), acmeIdentifier(keyAuthorization)] })
const proving = (...extensions: ReadonlyArray<Uint8Array>) =>
  certificate({ extensions: [sanOf(dns(name)), ...extensions] })

/** Makes a certificate with openssl alone. */
const opensslCertificate = (
  newKey: ReadonlyArray<string>,
  more: ReadonlyArray<string> = [],
  options: ReadonlyArray<string> = []
) =>
  withDirectory((directory) => {
    const out = join(directory, "certificate.der")
    const extensions = [
      `subjectAltName=DNS:${name}`,
      `${ACME_IDENTIFIER}=critical,DER:0420${hash("sha256", keyAuthorization)}`,
      ...more
    ]
    const request = ["req", "-x509", "-nodes", "-config", "/dev/null", "-subj", "/CN=validation", "-days", "1"]
    const added = extensions.flatMap((extension) => ["-addext", extension])
    const keyed = ["-newkey", ...newKey, "-keyout", join(directory, "key.pem")]
    openssl([...request, ...keyed, ...added, ...options, "-outform", "DER", "-out", out])
    return readFileSync(out)
  })

const curve = (bits: number) => ["ec", "-pkeyopt", `ec_paramgen_curve:P-${bits}`]

describe("a certificate that is accepted", () => {
  const rows: Record<string, () => Uint8Array> = {
    "RSA 2048, made by openssl": () => opensslCertificate(["rsa:2048"]),
    "RSA-PSS, made by openssl": () => opensslCertificate(["rsa:2048"], [], ["-sigopt", "rsa_padding_mode:pss"]),
    "ECDSA P-256, made by openssl": () => opensslCertificate(curve(256)),
    "ECDSA P-384, made by openssl": () => opensslCertificate(curve(384)),
    "ECDSA P-521, made by openssl": () => opensslCertificate(curve(521)),
    "Ed25519, made by openssl": () => opensslCertificate(["ed25519"]),
    "with the extensions of a CA": () =>
      opensslCertificate(curve(256), [
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=keyCertSign",
        "subjectKeyIdentifier=hash"
      ]),
    "that expired long ago": () => certificate(),
    "a name in another case": () => named(dns("A.eXample")),
    "a critical SAN": () =>
      certificate({ extensions: [ext("2.5.29.17", seq(dns(name)), true), acmeIdentifier(keyAuthorization)] }),
    "subject and issuer empty": () => certificate({ subject: seq() }),
    "another name in the subject": () => certificate({ subject: seq(cn(utf8("b.example"))) }),
    "the obsolete OID beside the right one": () =>
      proving(acmeIdentifier(keyAuthorization), ext(`${ACME_IDENTIFIER.slice(0, -2)}30.1`, digestOf("x"))),
    "RSA 16384": () => certificate({ key: wideRsaKey(16384) })
  }
  for (const [row, make] of Object.entries(rows)) {
    it(row, () => assert.isUndefined(faultOf(make())))
  }
})

describe("a certificate that is refused because it is not self-signed", () => {
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey
  const rows: Record<string, () => Uint8Array> = {
    "issuer differs": () => certificate({ issuer: seq(cn(utf8("issuer"))) }),
    "issuer in another encoding": () =>
      certificate({ issuer: seq(cn(der(0x13, Buffer.from("validation")))), subject: seq(cn(utf8("validation"))) }),
    "signed by another key": () => certificate({ signer: other }),
    "signed by a key of another kind": () => certificate({ signer: rsaKey }),
    "issuer differs, signed by another key": () => certificate({ issuer: seq(cn(utf8("issuer"))), signer: other }),
    "signature empty": () => certificate({ signature: () => Buffer.alloc(0) }),
    "signature over other octets": () => certificate({ signature: () => sign("sha256", Buffer.from("x"), ecKey) }),
    "another signature algorithm outside than inside": () => certificate({ outerAlgorithm: algorithms.rsa }),
    "an algorithm with another digest than that of the signature": () =>
      certificate({ outerAlgorithm: seq(oid("1.2.840.10045.4.3.3")) }),
    "a key of an unknown type": () =>
      certificate({ spki: seq(seq(oid("1.3.6.1.4.1.99999.2")), bitString(hexed("00"))) }),
    "an EC key that is no point of its curve": () =>
      certificate({
        spki: seq(seq(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bitString(Buffer.alloc(65, 4)))
      }),
    "RSA 16384 with an exponent of the same length": () =>
      certificate({
        key: rsaKey,
        spki: rsaSpki(2n ** 16384n - 1n, 2n ** 16384n - 3n),
        signature: () => Buffer.alloc(2048, 1)
      }),
    "RSA of 100,000 bits": () =>
      certificate({
        key: rsaKey,
        spki: rsaSpki(2n ** 100_000n - 1n, 65537n),
        signature: () => Buffer.alloc(12_500, 1)
      })
  }
  for (const [row, make] of Object.entries(rows)) {
    it(row, () => assert.strictEqual(faultOf(make()), "not_self_signed"))
  }
})

describe("a certificate that is refused because of its names", () => {
  const address = der(0x87, Buffer.from([192, 0, 2, 1]))
  const mail = der(0x81, Buffer.from(`admin@${name}`))
  const uri = der(0x86, Buffer.from(`https://${name}/`))
  const rows: Record<string, () => Uint8Array> = {
    "no SAN": () => certificate({ extensions: [acmeIdentifier(keyAuthorization)] }),
    "no SAN, CN only": () =>
      certificate({ subject: seq(cn(utf8(name))), extensions: [acmeIdentifier(keyAuthorization)] }),
    "empty SAN": () => named(),
    "two SANs": () => named(dns(name), dns("b.example")),
    "two SANs, right one last": () => named(dns("b.example"), dns(name)),
    "the right SAN twice": () => named(dns(name), dns(name)),
    "extra IP": () => named(dns(name), address),
    "extra mail": () => named(mail, dns(name)),
    "extra URI": () => named(dns(name), uri),
    "IP alone": () => named(address),
    "mail alone": () => named(mail),
    "the name as URI": () => named(der(0x86, Buffer.from(name))),
    "wildcard": () => named(dns("*.example")),
    "wildcard below the name": () => named(dns(`*.${name}`)),
    "another name": () => named(dns("b.example")),
    "a subdomain of the name": () => named(dns(`www.${name}`)),
    "the parent domain of the name": () => named(dns("example")),
    "trailing dot": () => named(dns(`${name}.`)),
    "U+0000 behind the name": () => named(dns(`${name}\0.b.example`)),
    "trailing space": () => named(dns(`${name} `)),
    "empty name": () => named(dns("")),
    "a look-alike with a character that is not ASCII": () => named(dns("\u0430.example")),
    "two SAN extensions": () =>
      certificate({ extensions: [sanOf(dns(name)), sanOf(dns(name)), acmeIdentifier(keyAuthorization)] }),
    "octets after the names": () =>
      certificate({
        extensions: [
          ext("2.5.29.17", Buffer.concat([seq(dns(name)), hexed("0500")])),
          acmeIdentifier(keyAuthorization)
        ]
      }),
    "SAN that is no list": () =>
      certificate({ extensions: [ext("2.5.29.17", dns(name)), acmeIdentifier(keyAuthorization)] })
  }
  for (const [row, make] of Object.entries(rows)) {
    it(row, () => assert.strictEqual(faultOf(make()), row.startsWith("no SAN") ? "san_absent" : "san_mismatch"))
  }

  it("is reported with the names that it has", () => {
    const found = alpnCertificateFault(named(dns("b.example"), dns(name)), expected)
    assert.deepStrictEqual(found, { fault: "san_mismatch", names: ["b.example", name] })
  })
})

describe("a certificate that is refused because of its acmeIdentifier extension", () => {
  const digest = hash("sha256", keyAuthorization, "buffer")
  const critical = (value: Uint8Array) => proving(ext(ACME_IDENTIFIER, value, true))
  const rows: Record<string, () => Uint8Array> = {
    "absent": () => proving(),
    "obsolete OID .30.1": () => proving(ext("1.3.6.1.5.5.7.1.30.1", digestOf(keyAuthorization), true)),
    "non-critical": () => proving(ext(ACME_IDENTIFIER, digestOf(keyAuthorization))),
    "critical spelled out as FALSE": () =>
      proving(seq(oid(ACME_IDENTIFIER), hexed("010100"), der(0x04, digestOf(keyAuthorization)))),
    "doubled": () => proving(acmeIdentifier(keyAuthorization), acmeIdentifier(keyAuthorization)),
    "right one beside a wrong one": () => proving(acmeIdentifier("x"), acmeIdentifier(keyAuthorization)),
    "right one beside a non-critical one": () =>
      proving(acmeIdentifier(keyAuthorization), ext(ACME_IDENTIFIER, digestOf(keyAuthorization))),
    "trailing DER": () => critical(Buffer.concat([digestOf(keyAuthorization), hexed("0500")])),
    "two digests": () => critical(Buffer.concat([digestOf(keyAuthorization), digestOf(keyAuthorization)])),
    "one octet less": () => critical(der(0x04, digest.subarray(0, 31))),
    "one octet more": () => critical(der(0x04, digest, hexed("00"))),
    "empty digest": () => critical(der(0x04)),
    "empty value": () => critical(Buffer.alloc(0)),
    "digest without OCTET STRING": () => critical(digest),
    "length in long form": () => critical(Buffer.concat([hexed("048120"), digest])),
    "OCTET STRING constructed": () => critical(der(0x24, der(0x04, digest))),
    "digest as UTF8String": () => critical(der(0x0c, digest)),
    "digest in hexadecimal": () => critical(der(0x04, Buffer.from(digest.toString("hex")))),
    "SHA-1": () => critical(der(0x04, hash("sha1", keyAuthorization, "buffer"))),
    "the key authorization itself": () => critical(der(0x04, Buffer.from(keyAuthorization))),
    "other account's digest": () => proving(acmeIdentifier("token.thumbprint2")),
    "other token's digest": () => proving(acmeIdentifier("token2.thumbprint")),
    "digest with the line end of a file": () => proving(acmeIdentifier(`${keyAuthorization}\n`))
  }
  const faults: { readonly [row: string]: string } = {
    "absent": "absent",
    "obsolete OID .30.1": "absent",
    "non-critical": "not_critical",
    "critical spelled out as FALSE": "not_critical",
    "doubled": "repeated",
    "right one beside a wrong one": "repeated",
    "right one beside a non-critical one": "repeated",
    "trailing DER": "undecodable",
    "two digests": "undecodable",
    "empty value": "undecodable",
    "digest without OCTET STRING": "undecodable",
    "length in long form": "undecodable",
    "OCTET STRING constructed": "undecodable",
    "digest as UTF8String": "undecodable",
    "one octet less": "length",
    "one octet more": "length",
    "empty digest": "length",
    "digest in hexadecimal": "length",
    "SHA-1": "length",
    "the key authorization itself": "length"
  }
  for (const [row, make] of Object.entries(rows)) {
    it(row, () => assert.strictEqual(faultOf(make()), `extension_${faults[row] ?? "mismatch"}`))
  }
})

describe("a certificate that is refused because it cannot be decoded", () => {
  const sound = certificate()
  const rows: Record<string, Uint8Array> = {
    "empty": Buffer.alloc(0),
    "cut short": sound.subarray(0, -1),
    "trailing octets": Buffer.concat([sound, hexed("00")]),
    "twice": Buffer.concat([sound, sound]),
    "text": Buffer.from(new X509Certificate(sound).toString()),
    "indefinite length": Buffer.concat([hexed("3080"), sound.subarray(4), hexed("0000")]),
    "TRUE other than FF": proving(
      seq(oid(ACME_IDENTIFIER), hexed("010101"), der(0x04, digestOf(keyAuthorization)))
    ),
    "nested a thousandfold": Array.from({ length: 1000 }).reduce<Buffer>((inner) => seq(inner), seq(int(1n)))
  }
  for (const [row, octets] of Object.entries(rows)) {
    it(row, () => assert.strictEqual(faultOf(octets), "certificate_undecodable"))
  }
})

describe("the check of a certificate", () => {
  it("refuses a certificate if any of its bits is changed", () => {
    const ed25519 = generateKeyPairSync("ed25519").privateKey
    for (const key of [ecKey, rsaKey, ed25519]) {
      const sound = certificate({ key })
      assert.isUndefined(faultOf(sound))
      for (let bit = 0; bit < sound.length * 8; bit++) {
        const flipped = Buffer.from(sound)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        if (faultOf(flipped) === undefined) assert.fail(`${key.asymmetricKeyType}: accepted with bit ${bit} flipped`)
      }
    }
  })

  it("never accepts a damaged certificate and never throws, in 10 000 mutations", () => {
    const sound = certificate()
    const random = seeded(seedOf(8737))
    for (let time = runsOf(10_000); time > 0; time--) {
      const damaged = mutate(mutate(sound, random), random)
      if (!damaged.equals(sound)) assert.isDefined(faultOf(damaged), damaged.toString("hex"))
    }
  })

  prop("refuses octets that are not a certificate", [fc.uint8Array({ maxLength: 200 })], ([octets]) => {
    assert.strictEqual(faultOf(octets), "certificate_undecodable")
  })

  const shown = fc.constantFrom(keyAuthorization, "token.other", "other.thumbprint", "")
  const criticality = fc.constantFrom(true, false)
  const names = fc.array(fc.constantFrom(name, "A.EXAMPLE", "b.example", "*.example"), { maxLength: 2 })
  const list = fc.array(fc.tuple(shown, criticality, fc.uint8Array({ maxLength: 1 })), {
    maxLength: 2
  })
  prop(
    "accepts only a certificate with exactly one name and one digest, both of them right",
    [names, list],
    ([names, list]) => {
      const made = certificate({
        extensions: [
          sanOf(...names.map(dns)),
          ...list.map(([text, critical, behind]) =>
            ext(ACME_IDENTIFIER, Buffer.concat([digestOf(text), behind]), critical)
          )
        ]
      })
      const [first] = list
      const right = names.length === 1 && names[0]?.toLowerCase() === name && list.length === 1 &&
        first?.[0] === keyAuthorization && first[1] && first[2].length === 0
      assert.strictEqual(faultOf(made) === undefined, right)
    },
    { numRuns: 500 }
  )
})
