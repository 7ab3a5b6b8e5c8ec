import { Effect } from "effect"
import type { KeyObject } from "node:crypto"
import { generateKeyPair } from "node:crypto"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, text, unsigned } from "../asn1/DerWriter.ts"
import { encodePem } from "../asn1/Pem.ts"
import {
  extension,
  type LeafNotSigned,
  makeCaKey,
  relativeName,
  signCertificate,
  subjectKeyIdentifier,
  type UnsupportedIssuer
} from "./Leaf.ts"

/** Generates a CA (docs/decisions/local-ca.md, "Files"). Not on the hot path. */

/** `signer.local_ca.key_type`: the type of a generated key. */
export type CaKeyType = "ecdsa-p256" | "ecdsa-p384" | "rsa-2048" | "rsa-3072" | "rsa-4096"

/** `signer.local_ca.subject`. An empty or absent part is left out; `country` is two letters. */
export interface CaSubject {
  readonly commonName: string
  readonly organization?: string | undefined
  readonly organizationalUnit?: string | undefined
  readonly country?: string | undefined
  readonly state?: string | undefined
  readonly locality?: string | undefined
}

/** A certificate and its key in the form of their files: one CERTIFICATE block, one unencrypted PKCS#8 block. */
export interface CertificatePair {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** A fresh key pair of a type; RSA exponents are 65537. Runs on the thread pool: RSA 4096 may take seconds. */
export const generateKey = (
  type: CaKeyType
): Effect.Effect<{ readonly privateKey: KeyObject; readonly spki: Uint8Array }> =>
  Effect.async((resume) => {
    // If the generator fails, the runtime is broken, and no caller can handle that.
    const done = (cause: Error | null, publicKey: KeyObject, privateKey: KeyObject) =>
      resume(
        cause === null
          ? Effect.succeed({ privateKey, spki: publicKey.export({ type: "spki", format: "der" }) })
          : Effect.die(cause)
      )
    if (type === "ecdsa-p256") generateKeyPair("ec", { namedCurve: "P-256" }, done)
    else if (type === "ecdsa-p384") generateKeyPair("ec", { namedCurve: "P-384" }, done)
    else generateKeyPair("rsa", { modulusLength: Number(type.slice(4)), publicExponent: 65537 }, done)
  })

/** The private key as unencrypted PKCS#8 PEM. */
export const privateKeyPem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString()

const VALIDITY_SECONDS = 3653 * 86400
const BACKDATE_SECONDS = 3600

/** keyUsage keyCertSign and cRLSign, critical. */
const CA_USAGE = extension(oid("2.5.29.15"), true, element(Tag.bitString, Uint8Array.of(1, 0x06)))
/** basicConstraints cA TRUE, pathLenConstraint 0, critical. */
const CA_CONSTRAINTS = extension(
  oid("2.5.29.19"),
  true,
  sequence(element(Tag.boolean, Uint8Array.of(0xff)), unsigned(Uint8Array.of(0)))
)

/** A new self-signed CA. `now` is epoch seconds, `serial` comes from `serialFrom`. */
export const generateCa = Effect.fnUntraced(function*(options: {
  readonly keyType: CaKeyType
  readonly subject: CaSubject
  readonly now: number
  readonly serial: Uint8Array
}): Effect.fn.Return<CertificatePair, LeafNotSigned | UnsupportedIssuer> {
  const { privateKey, spki } = yield* generateKey(options.keyType)
  const signer = yield* makeCaKey(privateKey)
  const name = encodeSubject(options.subject)
  const notBefore = Math.floor(options.now) - BACKDATE_SECONDS
  const der = yield* signCertificate(signer, {
    serial: options.serial,
    issuer: name,
    notBefore,
    notAfter: notBefore + VALIDITY_SECONDS,
    subject: name,
    spki,
    extensions: [CA_CONSTRAINTS, CA_USAGE, subjectKeyIdentifier(spki)]
  })
  return { certificatePem: encodePem("CERTIFICATE", der), privateKeyPem: privateKeyPem(privateKey) }
})

/** The DER Name of a subject: country, state, locality, organization, unit, common name. Empty parts are left out. */
export const encodeSubject = (subject: CaSubject): Uint8Array => {
  const parts: ReadonlyArray<readonly [type: string, tag: number, value: string | undefined]> = [
    ["2.5.4.6", Tag.printableString, subject.country],
    ["2.5.4.8", Tag.utf8String, subject.state],
    ["2.5.4.7", Tag.utf8String, subject.locality],
    ["2.5.4.10", Tag.utf8String, subject.organization],
    ["2.5.4.11", Tag.utf8String, subject.organizationalUnit],
    ["2.5.4.3", Tag.utf8String, subject.commonName]
  ]
  const names: Array<Uint8Array> = []
  for (const [type, tag, value] of parts) {
    if (value !== undefined && value !== "") names.push(relativeName(oid(type), text(tag, value)))
  }
  return sequence(...names)
}
