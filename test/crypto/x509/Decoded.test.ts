import { X509Certificate } from "node:crypto"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { keyName } from "../../../src/crypto/keys/KeyName.ts"
import { decodeChain } from "../../../src/crypto/x509/Decoded.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { openssl } from "../Pki.ts"

const keyFile = join(freshDirectory(), "key.pem")

/** Makes a self-signed certificate with OpenSSL, and returns it as PEM. */
const made = (key: ReadonlyArray<string>, ...args: ReadonlyArray<string>): string =>
  openssl(["req", "-x509", "-nodes", "-keyout", keyFile, "-newkey", ...key, ...args]).toString()

const ec = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

describe("a decoded chain", () => {
  it("shows every field as OpenSSL wrote it", () => {
    const pem = made(
      ec,
      "-subj",
      "/C=DE/O=Beispiel, GmbH/CN=a.example",
      "-set_serial",
      "0x00badcafe0",
      "-addext",
      "subjectAltName=DNS:*.a.example,IP:192.0.2.1,IP:2001:db8::1,email:a@b.example,URI:https://x/,RID:1.2.3",
      "-addext",
      "crlDistributionPoints=URI:http://c/1,URI:http://c/2",
      "-addext",
      "authorityInfoAccess=OCSP;URI:http://o,caIssuers;URI:http://i/1",
      "-addext",
      "keyUsage=digitalSignature,decipherOnly,keyAgreement",
      "-addext",
      "extendedKeyUsage=serverAuth,clientAuth,1.2.3.4"
    )
    const x509 = new X509Certificate(pem)
    const [one, ...more] = decodeChain(pem)
    assert.isEmpty(more)
    assert.deepStrictEqual({ ...one, ski: "", aki: "" }, {
      subject: "C=DE, O=Beispiel\\, GmbH, CN=a.example",
      issuer: "C=DE, O=Beispiel\\, GmbH, CN=a.example",
      serial: "badcafe0",
      notBefore: Date.parse(x509.validFrom) / 1000,
      notAfter: Date.parse(x509.validTo) / 1000,
      keyType: "ecdsa-p256",
      signatureAlgorithm: "ecdsa-with-SHA256",
      sans: ["*.a.example", "ip:192.0.2.1", "ip:2001:db8::1", "email:a@b.example", "uri:https://x/"],
      sha256: x509.fingerprint256.replaceAll(":", "").toLowerCase(),
      ski: "",
      aki: "",
      keyUsage: ["digitalSignature", "keyAgreement", "decipherOnly"],
      extendedKeyUsage: ["serverAuth", "clientAuth", "1.2.3.4"],
      crlUrls: ["http://c/1", "http://c/2"],
      caIssuersUrls: ["http://i/1"],
      isCa: true
    })
    assert.match(one?.ski ?? "", /^[0-9a-f]{40}$/)
    assert.strictEqual(one?.aki, one?.ski)
  })

  it("omits the fields that a certificate does not have, and shows an empty name as an empty text", () => {
    const [one] = decodeChain(made(["rsa:2048"], "-subj", "/", "-addext", "basicConstraints=critical,CA:FALSE"))
    assert.deepInclude(one, {
      subject: "",
      issuer: "",
      keyType: "rsa-2048",
      signatureAlgorithm: "sha256WithRSAEncryption",
      sans: [],
      keyUsage: [],
      extendedKeyUsage: [],
      crlUrls: [],
      caIssuersUrls: [],
      isCa: false
    })
  })

  it("keeps the order of the chain, and omits blocks that are not certificates", () => {
    const [one, two] = [made(ec, "-subj", "/CN=one"), made(["ed25519"], "-subj", "/CN=two")]
    const odd = "-----BEGIN CERTIFICATE-----\nTEFG\n-----END CERTIFICATE-----\n"
    const found = decodeChain(`${one}${odd}${two}`)
    assert.deepStrictEqual(found.map(({ keyType, subject }) => [subject, keyType]), [
      ["CN=one", "ecdsa-p256"],
      ["CN=two", "ed25519"]
    ])
    assert.strictEqual(found[1]?.signatureAlgorithm, "ed25519")
    assert.deepStrictEqual(decodeChain("nothing of the kind"), [])
  })
})

describe("the name of a key", () => {
  it.each([
    [["ec", "-pkeyopt", "ec_paramgen_curve:P-384"], "ecdsa-p384"],
    [["ec", "-pkeyopt", "ec_paramgen_curve:P-521"], "ecdsa-p521"],
    [["ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"], "unknown"],
    [["rsa:3072"], "rsa-3072"]
  ])("is known for %s", (key, name) => {
    const { publicKey } = new X509Certificate(made(key, "-subj", "/"))
    assert.strictEqual(keyName(publicKey.export({ type: "spki", format: "der" })), name)
  })

  it("is unknown for octets that are not a key", () => {
    assert.strictEqual(keyName(new Uint8Array()), "unknown")
    assert.strictEqual(keyName(Uint8Array.of(0, 1, 2, 3)), "unknown")
  })
})
