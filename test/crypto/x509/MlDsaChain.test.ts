import { describe, it } from "@effect/vitest"
import type { KeyObject } from "node:crypto"
import { generateKeyPairSync, sign } from "node:crypto"
import { assert } from "vitest"
import { checkChain } from "../../../src/crypto/x509/Chain.ts"
import { decodeChain } from "../../../src/crypto/x509/Decoded.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"
import {
  algorithms,
  bitString,
  cn,
  csrOf,
  der,
  dns,
  ecKey,
  ext,
  hexed,
  int,
  pem,
  sanOf,
  seq,
  spkiOf,
  utf8
} from "../Pki.ts"

/* Chains of other CAs with keys and signatures of ML-DSA (RFC 9881). */

const name = "a.example"
const mlDsa = generateKeyPairSync("ml-dsa-44").privateKey

const date = (at: number) =>
  der(0x17, Buffer.from(`${new Date(at * 1000).toISOString().slice(2, 19).replace(/[-:T]/g, "")}Z`))

const signatures = new Map([
  ["ec", { algorithm: algorithms.ecdsa, digest: "sha256" }],
  ["ml-dsa-44", { algorithm: algorithms.mlDsa44, digest: null }],
  ["ml-dsa-65", { algorithm: algorithms.mlDsa65, digest: null }],
  ["ml-dsa-87", { algorithm: algorithms.mlDsa87, digest: null }]
])

const certificate = (
  { issuer, key, subject }: { readonly issuer: KeyObject; readonly key: KeyObject; readonly subject: Uint8Array },
  ...extensions: ReadonlyArray<Uint8Array>
): string => {
  const { algorithm, digest } = signatures.get(issuer.asymmetricKeyType ?? "") ?? assert.fail("no such key")
  const signed = seq(
    der(0xa0, int(2n)),
    int(0x41n),
    algorithm,
    seq(cn(utf8("CA"))),
    seq(date(madeAt - daySeconds), date(madeAt + daySeconds)),
    subject,
    spkiOf(key),
    der(0xa3, seq(...extensions))
  )
  return pem("CERTIFICATE", seq(signed, algorithm, bitString(sign(digest, signed, issuer))))
}

const leafBy = (issuer: KeyObject, key: KeyObject, ...extensions: ReadonlyArray<Uint8Array>) =>
  certificate({ issuer, key, subject: seq() }, sanOf(dns(name)), ...extensions)

const caOf = (key: KeyObject) =>
  certificate({ issuer: key, key, subject: seq(cn(utf8("CA"))) }, ext("2.5.29.19", seq(hexed("0101ff")), true))

const check = (chain: string, key: KeyObject) =>
  checkChain(chain, {
    spki: spkiOf(key),
    names: [name],
    now: madeAt,
    request: { csr: csrOf({ key, subject: seq(), extensions: [sanOf(dns(name))] }), mayLackServerAuth: false }
  })

describe("a leaf of another CA with a key of ML-DSA", () => {
  const usage = (bits: string) => ext("2.5.29.15", hexed(bits), true)
  const withUsage = (bits: string) => check(leafBy(ecKey, mlDsa, usage(bits)), mlDsa)

  it("is accepted with digitalSignature, with nonRepudiation too, or without a key usage", () => {
    assert.isUndefined(check(leafBy(ecKey, mlDsa), mlDsa))
    for (const bits of ["03020780", "030206c0"]) assert.isUndefined(withUsage(bits), bits)
  })

  it("is refused as usages with any usage of a key that enciphers or agrees on keys, or without digitalSignature", () => {
    const refused = ["030205a0", "03020490", "03020388", "03020081", "0303078080", "03020520", "03020308", "03020640"]
    for (const bits of refused) assert.strictEqual(withUsage(bits), "usages", bits)
  })

  it("is refused as authority if it may sign certificates or lists", () => {
    for (const bits of ["03020284", "03020182"]) assert.strictEqual(withUsage(bits), "authority", bits)
  })

  it("is shown with the name of its key", () => {
    const [leaf] = decodeChain(leafBy(ecKey, mlDsa, usage("03020780")))
    assert.deepInclude(leaf, {
      keyType: "ml-dsa-44",
      signatureAlgorithm: "ecdsa-with-SHA256",
      keyUsage: ["digitalSignature"]
    })
  })
})

describe.each(["ml-dsa-44", "ml-dsa-65", "ml-dsa-87"] as const)("a CA with a key of %s", (type) => {
  const key = generateKeyPairSync(type).privateKey
  const other = generateKeyPairSync(type).privateKey

  it("is verified in a chain above leaves with any key", () => {
    for (const leafKey of [ecKey, mlDsa]) {
      assert.isUndefined(check(`${leafBy(key, leafKey)}${caOf(key)}`, leafKey))
      assert.strictEqual(check(`${leafBy(other, leafKey)}${caOf(key)}`, leafKey), "sequence")
    }
  })

  it("is shown with the names of its key and its signature", () => {
    const found = decodeChain(`${leafBy(key, ecKey)}${caOf(key)}`)
    const algorithm = type.toUpperCase()
    assert.deepStrictEqual(found.map(({ keyType, signatureAlgorithm }) => [keyType, signatureAlgorithm]), [
      ["ecdsa-p256", algorithm],
      [type, algorithm]
    ])
  })

  it("is refused as undecodable if its octets are cut at any of 50 places", () => {
    const chain = `${leafBy(key, mlDsa)}${caOf(key)}`
    const [leaf = ""] = chain.match(/-----BEGIN[^]*?END CERTIFICATE-----\n/) ?? []
    const octets = Buffer.from(leaf.split("\n").slice(1, -2).join(""), "base64")
    for (let at = 1; at <= 50; at++) {
      const cut = pem("CERTIFICATE", octets.subarray(0, Math.floor(octets.length * at / 51)))
      assert.strictEqual(check(`${cut}${caOf(key)}`, mlDsa), "undecodable")
    }
  })
})
