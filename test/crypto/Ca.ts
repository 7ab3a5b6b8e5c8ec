import { Effect, Result } from "effect"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, randomBytes } from "node:crypto"
import { generateCa } from "../../src/crypto/x509/CaCertificate.ts"
import type { CaKey } from "../../src/crypto/x509/CaKey.ts"
import type { CaMaterial } from "../../src/crypto/x509/CaMaterial.ts"
import { loadCa, readCaKey } from "../../src/crypto/x509/CaMaterial.ts"
import { keyPurposes } from "../../src/crypto/x509/KeyPurpose.ts"
import type { LeafIssuer, LeafRequest } from "../../src/crypto/x509/Leaf.ts"
import { makeLeafIssuer, serialFrom } from "../../src/crypto/x509/Leaf.ts"
import { leafContent } from "../../src/crypto/x509/LeafContent.ts"
import type { LintIssuer } from "../../src/crypto/x509/Lint.ts"
import type { CaKeyType } from "../../src/crypto/x509/SelfSigned.ts"
import { ecKey, spkiOf } from "./Pki.ts"

/** 2026-01-01, which is the current time in these tests. */
export const NOW = Date.UTC(2026, 0, 1) / 1000
export const DAY = 86400

export const CRL_URLS = ["http://ca.example.com/crl", "http://ca2.example.com/crl"]
export const CA_URLS = ["http://ca.example.com/ca.pem"]

/** A CA with everything that is needed to make and check its leaves. */
export interface TestCa {
  readonly material: CaMaterial
  readonly key: CaKey
  readonly privateKey: KeyObject
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly issuer: LeafIssuer
  readonly lint: LintIssuer
}

export const newSerial = (): Uint8Array => serialFrom(randomBytes(16))

/** Loads a CA from its PEM files. */
export const caOf = (
  pair: { readonly certificatePem: string; readonly privateKeyPem: string },
  urls = true
): TestCa => {
  const loaded = Result.flatMap(
    readCaKey(pair.privateKeyPem),
    (key) => Result.map(loadCa(pair.certificatePem, key), (material) => ({ key, material }))
  )
  const { key, material } = Result.getOrThrowWith(loaded, (unusable) => new Error(unusable.detail))
  const [issuerCertDer] = material.certificates
  if (issuerCertDer === undefined) throw new Error("the CA has no certificate")
  const lists = { crlDistributionPoints: urls ? CRL_URLS : [], caIssuerUrls: urls ? CA_URLS : [] }
  return {
    ...pair,
    material,
    key,
    privateKey: createPrivateKey(pair.privateKeyPem),
    issuer: Result.getOrThrow(makeLeafIssuer({ issuerCertDer, ...lists }, key)),
    lint: { ...material, ...lists }
  }
}

export const makeCa = (keyType: CaKeyType, urls = true): Promise<TestCa> =>
  Effect.runPromise(Effect.map(
    generateCa({ keyType, subject: { commonName: "Test CA", country: "CH" }, now: NOW, serial: newSerial() }),
    (pair) => caOf(pair, urls)
  ))

/** What certificates of the kind `default` contain. */
const serverContent = leafContent({ usages: [keyPurposes.server_auth], policies: [], subject: [] })

export const requestOf = (parts: Partial<LeafRequest> = {}): LeafRequest => ({
  spki: spkiOf(ecKey),
  keyType: "ecdsa",
  names: ["a.example.com", "*.b.example.com"],
  commonName: undefined,
  content: serverContent,
  serial: newSerial(),
  notBefore: NOW - 3600,
  notAfter: NOW + 90 * DAY,
  ...parts
})
