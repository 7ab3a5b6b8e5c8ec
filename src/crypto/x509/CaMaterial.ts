import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, X509Certificate } from "node:crypto"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import type { PemBlock } from "../asn1/Pem.ts"
import { encodePem, splitPem } from "../asn1/Pem.ts"
import { sha256 } from "../Digest.ts"
import { keyName } from "../keys/KeyName.ts"
import { lackedMlDsa, mlDsaOf } from "../keys/MlDsa.ts"
import { basicConstraintsOf } from "./CaForm.ts"
import type { CaKey } from "./CaKey.ts"
import { makeCaKey } from "./CaKey.ts"
import type { Certificate } from "./Certificate.ts"
import { issued, readCertificate } from "./Certificate.ts"
import { keyIdentifier } from "./Leaf.ts"
import type { NameConstraints } from "./NameConstraints.ts"
import { readNameConstraints } from "./NameConstraints.ts"

/**
 * Reads a CA from its files (docs/contribute/decisions/local-ca.md, "Loading"). This is done rarely, so its speed does
 * not matter.
 */

/** The CA cannot be used. `detail` is a clause without a full stop that says exactly why. It quotes no key. */
export class CaUnusable extends Data.TaggedError("CaUnusable")<{ readonly detail: string }> {}

/**
 * The certificate that expires first in a chain: its expiry in epoch seconds, and its subject in readable form, with
 * one attribute on each line.
 */
export interface FirstToEnd {
  readonly notAfter: number
  readonly subjectText: string
}

/** A CA that is ready for use. Every field of bytes is DER or raw octets, and every time is in epoch seconds. */
export interface CaMaterial {
  /** The certificates of the file. The certificate that issues leaves comes first. */
  readonly certificates: ReadonlyArray<Uint8Array>
  /** The same certificates, encoded again as PEM. They follow the leaf in every chain. */
  readonly chainPem: string
  /** The last certificate of the file, which /ca.pem serves. */
  readonly anchorPem: string
  /** The SHA-256 of the issuer's SubjectPublicKeyInfo, in lower-case hexadecimal. */
  readonly issuerId: string
  /** The SHA-256 of the issuer's certificate, in lower-case hexadecimal. */
  readonly fingerprint: string
  readonly notBefore: number
  readonly notAfter: number
  /**
   * The certificate that expires first among those in the file. After its expiry, verifiers accept nothing that the CA
   * has signed.
   */
  readonly firstToEnd: FirstToEnd
  readonly selfSigned: boolean
  readonly keyType: KeyForm
  /** The name of the issuer, as a DER Name. */
  readonly subject: Uint8Array
  /** The same name in readable form, with one attribute on each line. */
  readonly subjectText: string
  /**
   * The key identifier in the AKI of leaves: the issuer's own SKI or, if it has none, RFC 7093 method 1 applied to its
   * key.
   */
  readonly keyIdentifier: Uint8Array
  /** The name constraints of the certificates in the file. A leaf must satisfy all of them. */
  readonly nameConstraints: ReadonlyArray<NameConstraints>
  readonly publicKey: KeyObject
}

/** The kinds of keys with which a CA signs. */
type KeyForm = "ecdsa-p256" | "ecdsa-p384" | "rsa" | "ml-dsa-65" | "ml-dsa-87"

/**
 * Reads a CA from the text of its certificates. {@link datesFault}, not this function, checks whether the CA is valid
 * now. A process that only publishes the certificate passes no key. The checks that concern signing (whether the key
 * fits, cA, keyUsage) are then skipped, because the worker that signs makes them.
 */
export const loadCa = (
  certificatePem: string,
  key: Pick<CaKey, "spki"> | undefined
): Result.Result<CaMaterial, CaUnusable> =>
  Result.gen(function*() {
    const certificates = yield* readCertificates(certificatePem)
    const [issuer] = certificates
    if (issuer === undefined) return yield* unusable("the certificate file holds no certificate")
    for (const [i, { der }] of certificates.entries()) {
      const above = certificates[i + 1]
      if (above !== undefined && !issued(above.der, der)) {
        return yield* unusable(`certificate ${i + 2} of the certificate file did not issue certificate ${i + 1}`)
      }
    }
    const keyType = yield* readKeyType(issuer.x509.publicKey, "the CA certificate's")
    const nameConstraints = yield* readAllConstraints(certificates)
    if (key !== undefined) {
      const certified = issuer.x509.publicKey.export({ type: "spki", format: "der" })
      if (!sameBytes(certified, key.spki)) return yield* unusable("the CA key and certificate do not match")
      yield* checkIssuer(issuer.fields)
    }
    const { fields } = issuer
    return {
      certificates: certificates.map(({ der }) => der),
      chainPem: certificates.map(({ der }) => encodePem("CERTIFICATE", der)).join(""),
      anchorPem: certificates.slice(-1).map(({ der }) => encodePem("CERTIFICATE", der)).join(""),
      issuerId: sha256(fields.spki),
      fingerprint: sha256(issuer.der),
      notBefore: fields.notBefore,
      notAfter: fields.notAfter,
      firstToEnd: certificates
        .map((one): FirstToEnd => ({ notAfter: one.fields.notAfter, subjectText: one.x509.subject }))
        .reduce((first, next) => next.notAfter < first.notAfter ? next : first),
      selfSigned: issued(issuer.der, issuer.der),
      keyType,
      subject: fields.subject,
      subjectText: issuer.x509.subject,
      keyIdentifier: fields.subjectKeyIdentifier ?? keyIdentifier(fields.spki),
      nameConstraints,
      publicKey: issuer.x509.publicKey
    }
  })

/**
 * Returns undefined if certificates can be signed at an epoch second. Otherwise returns a clause that says why not: the
 * certificate of the CA is not valid yet, or a certificate of its chain has expired. An expired CA still signs its
 * revocation lists.
 */
export const datesFault = (
  { firstToEnd, notBefore }: Pick<CaMaterial, "firstToEnd" | "notBefore">,
  now: number
): string | undefined =>
  now < notBefore
    ? `the CA certificate is valid from ${new Date(notBefore * 1000).toISOString()} on`
    : now > firstToEnd.notAfter
    ? `the certificate ${firstToEnd.subjectText.split("\n").join(", ")} ended at ${
      new Date(firstToEnd.notAfter * 1000).toISOString()
    }`
    : undefined

const lackedText = (lacked: string): string => `an ${lacked} key, which this Node.js does not have (Node.js 24 has it)`

const unusable = (detail: string) => Result.fail(new CaUnusable({ detail }))

interface Loaded {
  readonly der: Uint8Array
  readonly fields: Certificate
  readonly x509: X509Certificate
}

const readCertificates = (pem: string): Result.Result<ReadonlyArray<Loaded>, CaUnusable> => {
  const blocks = splitPem(pem, "before")
  if (Result.isFailure(blocks)) return unusable(`the certificate file is not readable PEM: ${blocks.failure.detail}`)
  const loaded: Array<Loaded> = []
  for (const [i, { der, label }] of blocks.success.entries()) {
    if (label !== "CERTIFICATE") return unusable(`block ${i + 1} of the certificate file is a ${label}`)
    const fields = readCertificate(der)
    if (Result.isFailure(fields)) {
      return unusable(`certificate ${i + 1} of the certificate file is not decodable: ${fields.failure.detail}`)
    }
    // OpenSSL must also accept the certificate, because OpenSSL does not support every kind of key.
    const x509 = Result.try(() => {
      const certificate = new X509Certificate(der)
      return { certificate, publicKey: certificate.publicKey }
    })
    const lacked = lackedMlDsa(keyName(fields.success.spki))
    if (lacked !== undefined) return unusable(`certificate ${i + 1} of the certificate file has ${lackedText(lacked)}`)
    if (Result.isFailure(x509)) return unusable(`certificate ${i + 1} of the certificate file is not decodable`)
    loaded.push({ der, fields: fields.success, x509: x509.success.certificate })
  }
  return Result.succeed(loaded)
}

const readKeyType = (key: KeyObject, whose: string): Result.Result<KeyForm, CaUnusable> => {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {}
  const family = key.asymmetricKeyType
  if (family === "ec" && namedCurve === "prime256v1") return Result.succeed("ecdsa-p256")
  if (family === "ec" && namedCurve === "secp384r1") return Result.succeed("ecdsa-p384")
  if (family === "ec") {
    return unusable(`${whose} key is on the unsupported curve ${namedCurve ?? "given by parameters"}`)
  }
  if (family === "ml-dsa-65" || family === "ml-dsa-87") return Result.succeed(family)
  // An older Node.js with a newer OpenSSL reads such a key, for example from an encrypted file, but gives it no type.
  if (family === undefined) return unusable(`${whose} key is of a type that this Node.js does not have`)
  if (family !== "rsa") return unusable(`${whose} key is of the unsupported type ${family}`)
  return modulusLength !== undefined && modulusLength >= 2048 && modulusLength <= 8192
    ? Result.succeed("rsa")
    : unusable(`${whose} RSA key has ${modulusLength ?? "unknown"} bits; 2048 to 8192 are supported`)
}

const readAllConstraints = (
  certificates: ReadonlyArray<Loaded>
): Result.Result<ReadonlyArray<NameConstraints>, CaUnusable> =>
  Result.all(
    certificates.flatMap(({ fields }) => fields.extensions.filter((one) => one.oid === "2.5.29.30")).map(({ value }) =>
      Result.mapError(
        readNameConstraints(value),
        (fault) => new CaUnusable({ detail: `the name constraints of the CA are not decodable: ${fault.detail}` })
      )
    )
  )

/** The form that the runtime's key reader expects for each PEM label. */
const keyForms: { readonly [label: string]: "pkcs8" | "sec1" | "pkcs1" } = {
  "PRIVATE KEY": "pkcs8",
  "EC PRIVATE KEY": "sec1",
  "RSA PRIVATE KEY": "pkcs1"
}

const isEncrypted = ({ headers, label }: PemBlock): boolean =>
  label === "ENCRYPTED PRIVATE KEY" || headers.some((header) => /^Proc-Type:.*ENCRYPTED/.test(header))

/**
 * Reads the key of a CA from the text of its file. An encrypted key needs a passphrase (PKCS#8 with PBES2, RFC 8018).
 * Without one, a passphrase must not be given, because then somebody believes that the key is encrypted.
 */
export const readCaKey = (pem: string, passphrase?: string): Result.Result<CaKey, CaUnusable> =>
  Result.gen(function*() {
    const key = yield* readPrivateKey(pem, passphrase)
    yield* readKeyType(key, "the CA")
    return yield* Result.mapError(makeCaKey(key), ({ detail }) => new CaUnusable({ detail: `the CA key is ${detail}` }))
  })

const readPrivateKey = (pem: string, passphrase: string | undefined): Result.Result<KeyObject, CaUnusable> => {
  const blocks = splitPem(pem, "before")
  if (Result.isFailure(blocks)) return unusable(`the CA key file is not readable PEM: ${blocks.failure.detail}`)
  // Some tools write the name of the curve into a separate block before the key.
  const [block, another] = blocks.success.filter(({ label }) => label !== "EC PARAMETERS")
  if (block === undefined) return unusable("the CA key file holds no key")
  if (another !== undefined) return unusable("the CA key file holds more than one block")
  if (block.label === "ENCRYPTED PRIVATE KEY" && passphrase !== undefined) return decrypt(block.der, passphrase)
  if (isEncrypted(block)) {
    return unusable(
      passphrase === undefined
        ? "the CA key is encrypted; signer.local_ca.key_passphrase_file names the file of its passphrase"
        : "the CA key is encrypted in an old form; write it as PKCS#8 (openssl pkcs8 -topk8 -v2 aes-256-cbc)"
    )
  }
  if (passphrase !== undefined) {
    return unusable("the CA key is not encrypted, but signer.local_ca.key_passphrase_file is set")
  }
  const form = keyForms[block.label]
  if (form === undefined) return unusable(`the CA key file holds a ${block.label}, not a private key`)
  if (Result.isFailure(decode(block.der, (reader) => reader.skip(Tag.sequence)))) {
    return unusable("the CA key is not decodable or has trailing data")
  }
  const lacked = form === "pkcs8" ? lackedMlDsa(mlDsaOf(algorithmIn(block.der))?.name ?? "") : undefined
  if (lacked !== undefined) return unusable(`the CA key is ${lackedText(lacked)}`)
  return Result.try({
    try: () => createPrivateKey({ key: Buffer.from(block.der), format: "der", type: form }),
    catch: () => new CaUnusable({ detail: "the CA key is not decodable" })
  })
}

/** Returns the OID of the algorithm of a PKCS#8 key (RFC 5958 section 2), or an empty text. */
const algorithmIn = (der: Uint8Array): string =>
  Result.getOrElse(
    decode(der, (reader) => {
      const key = reader.enter(Tag.sequence)
      key.skip(Tag.integer)
      return key.enter(Tag.sequence).oid()
    }),
    () => ""
  )

const decrypt = (der: Uint8Array, passphrase: string): Result.Result<KeyObject, CaUnusable> =>
  Result.try({
    try: () => createPrivateKey({ key: Buffer.from(der), format: "der", type: "pkcs8", passphrase }),
    catch: () => new CaUnusable({ detail: "the passphrase does not open the CA key, or the key is not decodable" })
  })

const checkIssuer = (issuer: Certificate): Result.Result<void, CaUnusable> => {
  const value = (wanted: string) => issuer.extensions.find((one) => one.oid === wanted)?.value
  if (!basicConstraintsOf(issuer).isCa) return unusable("the CA certificate does not have cA TRUE")
  const usage = value("2.5.29.15")
  if (usage !== undefined) {
    const octets = Result.getOrElse(
      decode(usage, (reader) => reader.content(Tag.bitString)),
      () => new Uint8Array()
    )
    const bits = octets[1] ?? 0
    if ((bits & 0x04) === 0) return unusable("the keyUsage of the CA certificate lacks keyCertSign")
    if ((bits & 0x02) === 0) return unusable("the keyUsage of the CA certificate lacks cRLSign")
  }
  return Result.void
}
