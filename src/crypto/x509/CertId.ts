import * as Result from "effect/Result"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import { splitPem } from "../asn1/Pem.ts"
import { decodeBase64url } from "../Base64url.ts"
import type { Certificate } from "./Certificate.ts"
import { only, readCertificate } from "./Certificate.ts"
import { serialText } from "./Serial.ts"

/** The identifier by which a client names a certificate (RFC 9773 section 4.1). */
export interface CertId {
  readonly keyIdentifier: Uint8Array
  /** The serial in its stored form: lower-case hexadecimal without leading zero octets. */
  readonly serial: string
}

/** Parses `base64url(AKI keyIdentifier).base64url(serial octets)`. Returns undefined for any other text. */
export const parseCertId = (text: string): CertId | undefined => {
  const [identifier = "", serial = "", ...more] = text.split(".")
  const [keyIdentifier, octets] = [decodeBase64url(identifier), decodeBase64url(serial)]
  if (more.length > 0 || keyIdentifier === undefined || octets === undefined) return undefined
  if (keyIdentifier.length === 0 || octets.length === 0) return undefined
  return { keyIdentifier, serial: serialText(octets) }
}

const AUTHORITY_KEY_IDENTIFIER = "2.5.29.35"
const keyIdentifier = 0x80

/** Returns the key identifier of the issuer, as the certificate states it. */
export const keyIdentifierOf = ({ extensions }: Certificate): Uint8Array | undefined => {
  const extension = extensions.find(({ oid }) => oid === AUTHORITY_KEY_IDENTIFIER)
  if (extension === undefined) return undefined
  const read = decode(extension.value, (reader) =>
    only(reader.enter(Tag.sequence), (fields) => {
      const found = fields.next === keyIdentifier ? fields.content(keyIdentifier) : undefined
      while (fields.more) fields.skip()
      return found
    }))
  return Result.getOrUndefined(read)
}

/** A leaf that a {@link CertId} names. Times are epoch seconds. */
export interface NamedLeaf {
  readonly notBefore: number
  readonly notAfter: number
  /** The certID of the leaf, in its canonical form. */
  readonly certId: string
}

const text = (octets: Uint8Array): string => Buffer.from(octets).toString("base64url")

/** Returns the second part of the certID of a certificate whose serial is given in its stored form. */
export const serialPart = (serial: string): string =>
  Buffer.from(/^[89a-f]/.test(serial) ? `00${serial}` : serial, "hex").toString("base64url")

const leafOf = (chainPem: string): Certificate | undefined => {
  const blocks = splitPem(chainPem, "nothing")
  const [first] = Result.isSuccess(blocks) ? blocks.success : []
  return first === undefined ? undefined : Result.getOrUndefined(readCertificate(first.der))
}

const named = (leaf: Certificate, own: Uint8Array | undefined): NamedLeaf => {
  const { notAfter, notBefore, serial } = leaf
  return { notBefore, notAfter, certId: `${text(own ?? new Uint8Array())}.${text(serial)}` }
}

/**
 * Returns the leaf of a stored chain if the certID names this leaf. If the leaf has no AKI, only the serial is
 * compared.
 */
export const namedLeaf = (chainPem: string, { keyIdentifier, serial }: CertId): NamedLeaf | undefined => {
  const leaf = leafOf(chainPem)
  if (leaf === undefined || serialText(leaf.serial) !== serial) return undefined
  const own = keyIdentifierOf(leaf)
  return own !== undefined && !sameBytes(own, keyIdentifier) ? undefined : named(leaf, own)
}

/** Returns the leaf of a stored chain, with its certID, or undefined if the chain cannot be read. */
export const namedLeafOf = (chainPem: string): NamedLeaf | undefined => {
  const leaf = leafOf(chainPem)
  return leaf === undefined ? undefined : named(leaf, keyIdentifierOf(leaf))
}
