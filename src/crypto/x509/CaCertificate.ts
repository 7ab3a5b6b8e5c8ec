import type * as Effect from "effect/Effect"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, text, unsigned } from "../asn1/DerWriter.ts"
import type { CaKey, NotSigned, UnsupportedIssuer } from "./CaKey.ts"
import { signCertificate, subjectKeyIdentifier } from "./Leaf.ts"
import { permittedNames } from "./NameConstraints.ts"
import { extension, relativeName } from "./Part.ts"
import type { CaKeyType, CertificatePair, KeyEncryption } from "./SelfSigned.ts"
import { generateSelfSigned } from "./SelfSigned.ts"

/**
 * Generates a CA (docs/contribute/decisions/local-ca.md, "Files"). This is done rarely, so its speed does not matter.
 */

/** The keys of `signer.local_ca.subject`. A part that is empty or absent is left out. `country` has two letters. */
export interface CaSubject {
  readonly commonName: string
  readonly organization?: string | undefined
  readonly organizationalUnit?: string | undefined
  readonly country?: string | undefined
  readonly state?: string | undefined
  readonly locality?: string | undefined
}

/** The critical keyUsage extension with keyCertSign and cRLSign. */
export const CA_USAGE = extension(oid("2.5.29.15"), true, element(Tag.bitString, Uint8Array.of(1, 0x06)))
const caConstraints = (...pathLength: ReadonlyArray<Uint8Array>): Uint8Array =>
  extension(oid("2.5.29.19"), true, sequence(element(Tag.boolean, Uint8Array.of(0xff)), ...pathLength))

/** The critical basicConstraints extension with cA TRUE and pathLenConstraint 0: the CA issues leaves only. */
export const ISSUING_CONSTRAINTS = caConstraints(unsigned(Uint8Array.of(0)))
/** The critical basicConstraints extension with cA TRUE and no pathLenConstraint. */
const ROOT_CONSTRAINTS = caConstraints()

const VALIDITY_DAYS = 3653

/**
 * Returns a new self-signed CA. `now` is in epoch seconds, and `serial` comes from `serialFrom`. If there is a
 * passphrase, the key is encrypted with it.
 */
export const generateCa = ({ encryption, keyType, now, serial, subject }: {
  readonly keyType: CaKeyType
  readonly encryption?: KeyEncryption | undefined
  readonly subject: CaSubject
  readonly now: number
  readonly serial: Uint8Array
}): Effect.Effect<CertificatePair, NotSigned | UnsupportedIssuer> =>
  generateSelfSigned({
    keyType,
    encryption,
    now,
    serial,
    validityDays: VALIDITY_DAYS,
    name: encodeSubject(subject),
    extensions: (spki) => [ISSUING_CONSTRAINTS, CA_USAGE, subjectKeyIdentifier(spki)]
  })

/**
 * Returns the DER Name of a subject: country, state, locality, organization, unit, common name. Empty parts are left
 * out.
 */
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

/** The contents of a CA certificate. Names are DER, and both ends of the validity are epoch seconds. */
export interface CaFields {
  readonly subject: Uint8Array
  readonly spki: Uint8Array
  /** The serial, from `serialFrom`. */
  readonly serial: Uint8Array
  readonly notBefore: number
  readonly notAfter: number
}

/** Signs the certificate of a root with its own key, and returns it as DER. */
export const signRoot = (key: CaKey, fields: Omit<CaFields, "spki">): Effect.Effect<Uint8Array, NotSigned> =>
  signCertificate(key, {
    ...fields,
    issuer: fields.subject,
    spki: key.spki,
    extensions: [ROOT_CONSTRAINTS, CA_USAGE, subjectKeyIdentifier(key.spki)]
  })

/** The CA that signs the certificate of another CA: a `CaMaterial` and its key. */
export interface SuperiorCa {
  readonly key: CaKey
  readonly subject: Uint8Array
  readonly keyIdentifier: Uint8Array
}

/**
 * Signs the certificate of a CA below another one, and returns it as DER. The CA may issue leaves only. If there are
 * permitted names, it may issue for these and the names below them, and for no IP address.
 */
export const signIssuing = (
  above: SuperiorCa,
  { permitted, ...fields }: CaFields & { readonly permitted: ReadonlyArray<string> }
): Effect.Effect<Uint8Array, NotSigned> =>
  signCertificate(above.key, {
    ...fields,
    issuer: above.subject,
    extensions: [
      ISSUING_CONSTRAINTS,
      CA_USAGE,
      ...permitted.length === 0 ? [] : [permittedNames(permitted)],
      subjectKeyIdentifier(fields.spki),
      extension(oid("2.5.29.35"), false, sequence(element(0x80, above.keyIdentifier)))
    ]
  })
