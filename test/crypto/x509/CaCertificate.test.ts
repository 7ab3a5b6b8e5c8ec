import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { KeyObject } from "node:crypto"
import { createHash, createPrivateKey, generateKeyPairSync, sign, X509Certificate } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as pkijs from "pkijs"
import { assert, beforeAll } from "vitest"
import { generateCa } from "../../../src/crypto/x509/CaCertificate.ts"
import { makeCaKey } from "../../../src/crypto/x509/CaKey.ts"
import { datesFault, loadCa, readCaKey } from "../../../src/crypto/x509/CaMaterial.ts"
import { keyIdentifier, makeLeafIssuer } from "../../../src/crypto/x509/Leaf.ts"
import { lintLeaf } from "../../../src/crypto/x509/Lint.ts"
import { nameConstraintsViolation } from "../../../src/crypto/x509/NameConstraints.ts"
import type { CaKeyType } from "../../../src/crypto/x509/SelfSigned.ts"
import { caOf, DAY, makeCa, newSerial, NOW, requestOf, type TestCa } from "../Ca.ts"
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
  oid,
  openssl,
  pem,
  rsaKey,
  seq,
  spkiOf,
  utf8,
  withDirectory
} from "../Pki.ts"

let ca: TestCa
beforeAll(async () => {
  ca = await makeCa("ecdsa-p256")
})

const load = (
  { certificatePem, passphrase, privateKeyPem }: {
    readonly certificatePem: string
    readonly privateKeyPem: string | undefined
    readonly passphrase?: string
  }
) =>
  Result.flatMap(
    privateKeyPem === undefined ? Result.succeed(undefined) : readCaKey(privateKeyPem, passphrase),
    (key) => loadCa(certificatePem, key)
  )

const refusal = (
  files: { certificatePem?: string; privateKeyPem?: string | undefined; passphrase?: string; now?: number }
): string => {
  const { certificatePem, privateKeyPem } = ca
  const loaded = load({ certificatePem, privateKeyPem, ...files })
  return Result.isFailure(loaded) ? loaded.failure.detail : "loaded"
}

const keyPem = (key: KeyObject, type: "pkcs8" | "sec1" | "pkcs1" = "pkcs8"): string =>
  key.export({ type, format: "pem" }).toString()

interface CertificateParts {
  readonly key?: KeyObject
  readonly issuerKey?: KeyObject
  readonly name?: string
  readonly issuerName?: string
  readonly extensions?: ReadonlyArray<Uint8Array>
  readonly notBefore?: string
  readonly notAfter?: string
}

const CA_TRUE = ext("2.5.29.19", seq(hexed("0101ff")), true)
const CA_USAGE = ext("2.5.29.15", hexed("03020106"), true)

/** Makes a certificate with an ECDSA or RSA key and any extensions. */
const certificate = (parts: CertificateParts): string => {
  const key = parts.key ?? ecKey
  const issuerKey = parts.issuerKey ?? key
  const name = parts.name ?? "Hand-made CA"
  const algorithm = issuerKey.asymmetricKeyType === "rsa" ? algorithms.rsa : algorithms.ecdsa
  const extensions = parts.extensions ?? [CA_TRUE, CA_USAGE]
  const signed = seq(
    der(0xa0, int(2n)),
    int(0x4000000000000000000000000000000fn),
    algorithm,
    seq(cn(utf8(parts.issuerName ?? name))),
    seq(
      der(0x17, Buffer.from(parts.notBefore ?? "250101000000Z")),
      der(0x17, Buffer.from(parts.notAfter ?? "350101000000Z"))
    ),
    seq(cn(utf8(name))),
    spkiOf(key),
    ...(extensions.length === 0 ? [] : [der(0xa3, seq(...extensions))])
  )
  return pem("CERTIFICATE", seq(signed, algorithm, bitString(sign("sha256", signed, issuerKey))))
}

const loadHandMade = (parts: CertificateParts, rest = "") => {
  const { certificatePem, privateKeyPem } = {
    certificatePem: certificate(parts) + rest,
    privateKeyPem: keyPem(parts.key ?? ecKey)
  }
  return Result.mapError(load({ certificatePem, privateKeyPem }), ({ detail }) => detail)
}
const refusedHandMade = (parts: CertificateParts, rest = ""): string =>
  Result.match(loadHandMade(parts, rest), { onFailure: (detail) => detail, onSuccess: () => "loaded" })

describe("generateCa", () => {
  const types: ReadonlyArray<readonly [CaKeyType, string, string]> = [
    ["ecdsa-p256", "ecdsa-with-SHA256", "ecdsa-p256"],
    ["ecdsa-p384", "ecdsa-with-SHA384", "ecdsa-p384"],
    ["rsa-2048", "sha256WithRSAEncryption", "rsa"],
    ["rsa-3072", "sha256WithRSAEncryption", "rsa"]
  ]
  for (const [type, algorithm, keyType] of types) {
    it.effect(`makes a CA of type ${type} with the documented extensions, which can be loaded again`, () =>
      Effect.gen(function*() {
        const serial = newSerial()
        const pair = yield* generateCa({
          keyType: type,
          subject: {
            commonName: "Örtliche CA",
            organization: "Example, Inc.",
            country: "CH",
            state: "",
            locality: "Bern"
          },
          now: NOW + 0.5,
          serial
        })
        const text = openssl(["x509", "-noout", "-text", "-nameopt", "RFC2253,-esc_msb,utf8"], pair.certificatePem)
          .toString()
        for (
          const part of [
            "Version: 3 (0x2)",
            `Signature Algorithm: ${algorithm}`,
            "CN=Örtliche CA,O=Example\\, Inc.,L=Bern,C=CH",
            "CA:TRUE, pathlen:0",
            "Certificate Sign, CRL Sign"
          ]
        ) assert.include(text, part)
        assert.match(text, /Basic Constraints: critical/)
        assert.match(text, /Key Usage: critical/)
        assert.strictEqual(text.match(/X509v3/g)?.length, 4)
        if (keyType === "rsa") assert.include(text, "Exponent: 65537")

        const judged = new X509Certificate(pair.certificatePem)
        assert.strictEqual(judged.serialNumber, Buffer.from(serial).toString("hex").toUpperCase())
        assert.strictEqual(Date.parse(judged.validFrom) / 1000, NOW - 3600)
        assert.strictEqual(Date.parse(judged.validTo) / 1000, NOW - 3600 + 3653 * DAY)
        assert.isTrue(judged.verify(judged.publicKey))
        assert.deepStrictEqual(
          Buffer.from(pkijs.Certificate.fromBER(new Uint8Array(judged.raw)).toSchema(true).toBER(false)),
          judged.raw
        )
        assert.match(pair.privateKeyPem, /^-----BEGIN PRIVATE KEY-----\n/)
        withDirectory((directory) => {
          const file = join(directory, "ca.pem")
          writeFileSync(file, pair.certificatePem)
          const said = openssl([
            "verify",
            "-x509_strict",
            "-check_ss_sig",
            "-attime",
            String(NOW),
            "-CAfile",
            file,
            file
          ])
          assert.include(said.toString(), "OK")
        })

        const { material } = caOf(pair)
        const spki = judged.publicKey.export({ type: "spki", format: "der" })
        assert.strictEqual(material.keyType, keyType)
        assert.strictEqual(material.issuerId, createHash("sha256").update(spki).digest("hex"))
        assert.strictEqual(material.fingerprint, judged.fingerprint256.replaceAll(":", "").toLowerCase())
        assert.deepStrictEqual(Buffer.from(material.keyIdentifier), Buffer.from(keyIdentifier(spki)))
        assert.include(text.replaceAll(":", "").toLowerCase(), Buffer.from(material.keyIdentifier).toString("hex"))
        assert.deepStrictEqual([material.notBefore, material.notAfter], [NOW - 3600, NOW - 3600 + 3653 * DAY])
        assert.isTrue(material.selfSigned)
        assert.strictEqual(material.chainPem, pair.certificatePem)
        assert.strictEqual(material.anchorPem, pair.certificatePem)
        assert.deepStrictEqual(material.nameConstraints, [])
        assert.isTrue(material.publicKey.equals(judged.publicKey))
      }))
  }
})

describe("loadCa", () => {
  it("accepts keys in PKCS#8, SEC1 and PKCS#1, also after other text or a block of curve parameters", () => {
    const key = createPrivateKey(ca.privateKeyPem)
    const parameters = pem("EC PARAMETERS", oid("1.2.840.10045.3.1.7"))
    assert.strictEqual(refusal({ privateKeyPem: keyPem(key, "sec1") }), "loaded")
    assert.strictEqual(refusal({ privateKeyPem: parameters + keyPem(key, "sec1") }), "loaded")
    assert.strictEqual(refusal({ privateKeyPem: `Bag Attributes\n${ca.privateKeyPem}` }), "loaded")
    assert.strictEqual(refusal({ certificatePem: `subject=CN\n${ca.certificatePem}\r\n\n` }), "loaded")
    const privateKeyPem = keyPem(rsaKey, "pkcs1")
    assert.isTrue(Result.isSuccess(load({ certificatePem: certificate({ key: rsaKey }), privateKeyPem })))
  })

  it("reads a chain and uses its last certificate as the trust anchor", () => {
    const rootKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey
    const root = certificate({ key: rootKey, name: "Root" })
    const intermediate = { issuerKey: rootKey, issuerName: "Root", name: "Intermediate" }
    const material = Result.getOrThrow(loadHandMade(intermediate, root))
    assert.isFalse(material.selfSigned)
    assert.strictEqual(material.certificates.length, 2)
    assert.strictEqual(material.anchorPem, root)
    assert.strictEqual(material.chainPem, certificateTextOf(material.chainPem))
    assert.isTrue(material.chainPem.endsWith(root))
    assert.strictEqual(refusedHandMade({}, root), "certificate 2 of the certificate file did not issue certificate 1")
    assert.include(refusedHandMade({ ...intermediate, issuerKey: rsaKey }, root), "did not issue")
    assert.include(refusedHandMade({ ...intermediate, issuerName: "Other" }, root), "did not issue")
    assert.include(refusedHandMade(intermediate, root + certificate({})), "certificate 3")
  })

  it.effect("uses the SKI of the issuer as the AKI of leaves, and computes the AKI if the issuer has no SKI", () =>
    Effect.gen(function*() {
      for (const ski of [Buffer.alloc(5, 7), undefined]) {
        const extensions = [CA_TRUE, CA_USAGE, ...(ski === undefined ? [] : [ext("2.5.29.14", der(0x04, ski))])]
        const material = Result.getOrThrow(loadHandMade({ extensions }))
        assert.deepStrictEqual(Buffer.from(material.keyIdentifier), ski ?? Buffer.from(keyIdentifier(spkiOf(ecKey))))
        const [issuerCertDer] = material.certificates
        if (issuerCertDer === undefined) return assert.fail("no certificate")
        const urls = { crlDistributionPoints: [], caIssuerUrls: [] }
        const issuer = Result.getOrThrow(
          makeLeafIssuer({ issuerCertDer, ...urls }, Result.getOrThrow(makeCaKey(ecKey)))
        )
        const request = requestOf()
        const leaf = yield* issuer.build(request)
        assert.isUndefined(lintLeaf(leaf, { issuer: { ...material, ...urls }, request }))
      }
    }))

  it("reads the name constraints of the whole chain", () => {
    const constraints = (tag: number, base: string) => ext("2.5.29.30", seq(der(tag, seq(dns(base)))), true)
    const rootKey = rsaKey
    const root = certificate({
      key: rootKey,
      name: "Root",
      extensions: [CA_TRUE, CA_USAGE, constraints(0xa0, "example.com")]
    })
    const extensions = [CA_TRUE, CA_USAGE, constraints(0xa1, "x.example.com")]
    const material = Result.getOrThrow(loadHandMade({ issuerKey: rootKey, issuerName: "Root", extensions }, root))
    assert.strictEqual(nameConstraintsViolation(material.nameConstraints, ["a.example.com", "b.test"]), "b.test")
    assert.strictEqual(nameConstraintsViolation(material.nameConstraints, ["x.example.com"]), "x.example.com")
    const broken = [CA_TRUE, CA_USAGE, ext("2.5.29.30", hexed("0500"), true)]
    assert.include(refusedHandMade({ extensions: broken }), "name constraints")
  })

  it("refuses a key that does not match the certificate", () => {
    assert.strictEqual(refusal({ privateKeyPem: keyPem(ecKey) }), "the CA key and certificate do not match")
    assert.strictEqual(refusal({ privateKeyPem: keyPem(rsaKey) }), "the CA key and certificate do not match")
  })

  it("refuses an issuer that is not a CA or must not sign", () => {
    const withExtensions = (...extensions: ReadonlyArray<Uint8Array>) => refusedHandMade({ extensions })
    assert.strictEqual(withExtensions(CA_TRUE), "loaded")
    assert.strictEqual(withExtensions(CA_TRUE, CA_USAGE), "loaded")
    assert.strictEqual(withExtensions(CA_USAGE), "the CA certificate does not have cA TRUE")
    assert.strictEqual(withExtensions(), "the CA certificate does not have cA TRUE")
    assert.include(withExtensions(ext("2.5.29.19", seq(), true)), "cA TRUE")
    assert.include(withExtensions(ext("2.5.29.19", seq(hexed("010100")), true)), "cA TRUE")
    assert.include(withExtensions(ext("2.5.29.19", seq(int(0n)), true)), "cA TRUE")
    const usage = (bits: string) => withExtensions(CA_TRUE, ext("2.5.29.15", hexed(bits), true))
    assert.strictEqual(usage("03020102"), "the keyUsage of the CA certificate lacks keyCertSign")
    assert.strictEqual(usage("03020204"), "the keyUsage of the CA certificate lacks cRLSign")
    assert.include(usage("03020780"), "keyCertSign")
    assert.include(usage("030100"), "keyCertSign")
  })

  it("leaves the validity of the issuer to datesFault, which checks the validity to the second", () => {
    const { notAfter, notBefore } = ca.material
    assert.match(datesFault(ca.material, notBefore - 1) ?? "", /^the CA certificate is valid from .*Z on$/)
    assert.isUndefined(datesFault(ca.material, notBefore))
    assert.isUndefined(datesFault(ca.material, notAfter))
    assert.match(datesFault(ca.material, notAfter + 1) ?? "", /^the certificate .* ended at .*Z$/)
  })

  it("refuses other types of keys and other curves", () => {
    const made = (key: KeyObject) => refusedHandMade({ key, issuerKey: ecKey, extensions: [CA_TRUE] })
    const ec = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve }).privateKey
    assert.strictEqual(made(ec("P-384")), "loaded")
    assert.include(made(ec("P-521")), "unsupported curve secp521r1")
    assert.include(made(ec("secp256k1")), "unsupported curve secp256k1")
    assert.include(made(generateKeyPairSync("ed25519").privateKey), "unsupported type ed25519")
    assert.include(made(generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey), "1024 bits")
    assert.include(made(generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).privateKey), "unsupported type rsa-pss")
  })

  it("opens an encrypted key with its passphrase, and says what is wrong if it cannot", () => {
    const key = createPrivateKey(ca.privateKeyPem)
    const passphrase = "correct horse"
    const secret = { cipher: "aes-256-cbc", passphrase }
    const pkcs8 = key.export({ type: "pkcs8", format: "pem", ...secret }).toString()
    const sec1 = key.export({ type: "sec1", format: "pem", ...secret }).toString()
    assert.strictEqual(refusal({ privateKeyPem: pkcs8, passphrase }), "loaded")
    for (const wrong of ["", "correct horsE", `${passphrase}\n`]) {
      assert.match(refusal({ privateKeyPem: pkcs8, passphrase: wrong }), /^the passphrase does not open the CA key/)
    }
    for (const privateKeyPem of [pkcs8, sec1]) {
      assert.match(refusal({ privateKeyPem }), /^the CA key is encrypted; .*passphrase_file/)
    }
    assert.include(refusal({ privateKeyPem: sec1, passphrase }), "write it as PKCS#8")
    assert.include(refusal({ passphrase }), "is not encrypted, but signer.local_ca.key_passphrase_file is set")
  })

  it("refuses PEM that cannot be read or that has trailing data", () => {
    const { certificatePem, privateKeyPem } = ca
    const [body = new Uint8Array()] = ca.material.certificates
    const key = createPrivateKey(privateKeyPem).export({ type: "pkcs8", format: "der" })
    const zero = Buffer.from([0])
    const expected: ReadonlyArray<readonly [Parameters<typeof refusal>[0], string]> = [
      [{ certificatePem: "" }, "the certificate file holds no certificate"],
      [{ certificatePem: "junk" }, "the certificate file is not readable PEM"],
      [{ certificatePem: certificatePem.slice(0, -40) }, "the certificate file is not readable PEM"],
      [{ certificatePem: `${certificatePem}junk` }, "data after the last block"],
      [{ certificatePem: certificatePem + privateKeyPem }, "block 2 of the certificate file is a PRIVATE KEY"],
      [
        { certificatePem: pem("CERTIFICATE", Buffer.concat([body, zero])) },
        "certificate 1 of the certificate file is not"
      ],
      [{ certificatePem: pem("CERTIFICATE", hexed("3000")) }, "certificate 1 of the certificate file is not decodable"],
      [{ privateKeyPem: "" }, "the CA key file holds no key"],
      [{ privateKeyPem: "junk" }, "the CA key file is not readable PEM"],
      [{ privateKeyPem: `${privateKeyPem}junk` }, "data after the last block"],
      [{ privateKeyPem: privateKeyPem + privateKeyPem }, "more than one block"],
      [{ privateKeyPem: certificatePem }, "holds a CERTIFICATE, not a private key"],
      [{ privateKeyPem: pem("PRIVATE KEY", Buffer.concat([key, zero])) }, "trailing data"],
      [{ privateKeyPem: pem("PRIVATE KEY", hexed("3000")) }, "the CA key is not decodable"],
      [{ privateKeyPem: pem("RSA PRIVATE KEY", hexed("3000")) }, "the CA key is not decodable"]
    ]
    for (const [files, detail] of expected) assert.include(refusal(files), detail)
  })

  it("never quotes a key that it refuses", () => {
    const middle = ca.privateKeyPem.slice(60, 90)
    const broken = ca.privateKeyPem.replace(middle, `${middle}!`)
    assert.notInclude(refusal({ privateKeyPem: broken }), middle.slice(0, 8))
  })

  it("needs no key and does not check the validity in a process that does not sign", () => {
    const { notAfter } = ca.material
    assert.strictEqual(refusal({ privateKeyPem: undefined, now: notAfter + 1 }), "loaded")
    assert.include(refusal({ privateKeyPem: undefined, certificatePem: "junk" }), "PEM")
  })
})

const certificateTextOf = (chain: string): string =>
  (chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? [])
    .map((one) => new X509Certificate(one).toString()).join("")
