import { Tag } from "../asn1/DerReader.ts"
import { oid, sequence, text } from "../asn1/DerWriter.ts"
import { extension, relativeName } from "./Part.ts"

/** An attribute of a subject with a fixed text. `type` is an OID. */
export interface SubjectAttribute {
  readonly type: string
  readonly value: string
}

/** The facts of a {@link LeafContent}. */
export interface LeafFacts {
  /** The OIDs of the extendedKeyUsage, in the order of the extension. There is at least one. */
  readonly usages: ReadonlyArray<string>
  /** The OIDs of the certificatePolicies. If there are none, the leaf has no such extension. */
  readonly policies: ReadonlyArray<string>
  /** The attributes of the subject before the common name, in their order. */
  readonly subject: ReadonlyArray<SubjectAttribute>
}

/** The parts of a leaf that do not depend on the request: the same for all leaves of a kind, and encoded only once. */
export interface LeafContent extends LeafFacts {
  /** The same facts in DER: whole extensions, and relative names of the subject. */
  readonly encoded: {
    /**
     * Whether the keyUsage of an RSA key has keyEncipherment. It does not if all purposes only sign (RFC 5280 section
     * 4.2.1.12).
     */
    readonly mayEncipher: boolean
    readonly usages: Uint8Array
    readonly policies: ReadonlyArray<Uint8Array>
    readonly subject: ReadonlyArray<Uint8Array>
  }
}

const COUNTRY = "2.5.4.6"
const TIME_STAMPING = "1.3.6.1.5.5.7.3.8"
const CODE_SIGNING = "1.3.6.1.5.5.7.3.3"

/**
 * Returns the extendedKeyUsage extension. For time stamping alone it is critical, as RFC 3161 section 2.3 requires.
 */
export const extendedKeyUsage = (usages: ReadonlyArray<string>): Uint8Array =>
  extension(oid("2.5.29.37"), usages.length === 1 && usages[0] === TIME_STAMPING, sequence(...usages.map(oid)))

/** Encodes the facts of a kind. A country has two letters; every other text may have any characters. */
export const leafContent = ({ policies, subject, usages }: LeafFacts): LeafContent => ({
  policies,
  subject,
  usages,
  encoded: {
    mayEncipher: !usages.every((usage) => usage === TIME_STAMPING || usage === CODE_SIGNING),
    usages: extendedKeyUsage(usages),
    policies: policies.length === 0
      ? []
      : [extension(oid("2.5.29.32"), false, sequence(...policies.map((policy) => sequence(oid(policy)))))],
    subject: subject.map(({ type, value }) =>
      relativeName(oid(type), text(type === COUNTRY ? Tag.printableString : Tag.utf8String, value))
    )
  }
})
