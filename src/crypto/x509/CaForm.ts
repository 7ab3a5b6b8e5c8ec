import * as Result from "effect/Result"
import { decode, Tag } from "../asn1/DerReader.ts"
import type { Certificate } from "./Certificate.ts"
import { issued, readCertificate, SUBJECT_KEY_IDENTIFIER } from "./Certificate.ts"

/**
 * Finds the parts that a CA certificate lacks although RFC 5280 requires them. Most verifiers accept such a CA. Strict
 * verifiers (`openssl verify -x509_strict`, and Python from 3.13 on) refuse every leaf below it. This is done rarely,
 * so its speed does not matter.
 */

/** A part that a certificate may lack (RFC 5280 sections 4.2.1.3, 4.2.1.2, 4.2.1.1 and 4.2.1.9). */
export type CaLack =
  | "key_usage_missing"
  | "subject_key_identifier_missing"
  | "authority_key_identifier_missing"
  | "basic_constraints_not_critical"

/** Returns whether an authorityKeyIdentifier contains a keyIdentifier. */
const hasKeyIdentifier = (value: Uint8Array | undefined): boolean =>
  value !== undefined &&
  Result.getOrElse(decode(value, (reader) => reader.enter(Tag.sequence).next === 0x80), () => false)

/** Returns the parts that a CA certificate (DER) lacks. A self-signed root needs no authorityKeyIdentifier. */
export const caLacks = (der: Uint8Array): ReadonlyArray<CaLack> => {
  const read = readCertificate(der)
  if (Result.isFailure(read)) return []
  const of = (oid: string) => read.success.extensions.find((one) => one.oid === oid)
  const lacks: ReadonlyArray<readonly [CaLack, boolean]> = [
    ["key_usage_missing", of("2.5.29.15") === undefined],
    ["subject_key_identifier_missing", of(SUBJECT_KEY_IDENTIFIER) === undefined],
    ["authority_key_identifier_missing", !hasKeyIdentifier(of("2.5.29.35")?.value) && !issued(der, der)],
    ["basic_constraints_not_critical", of("2.5.29.19")?.critical === false]
  ]
  return lacks.flatMap(([lack, isSo]) => isSo ? [lack] : [])
}

/** What the basicConstraints of a certificate say. Without this extension, the certificate is not that of a CA. */
export interface BasicConstraints {
  readonly isCa: boolean
  /** The pathLenConstraint. Undefined if there is none. */
  readonly pathLength: number | undefined
}

/** Reads the basicConstraints of a certificate. If they cannot be read, the certificate is not that of a CA. */
export const basicConstraintsOf = ({ extensions }: Pick<Certificate, "extensions">): BasicConstraints => {
  const constraints = extensions.find(({ oid }) => oid === "2.5.29.19")
  return Result.getOrElse(
    decode(constraints?.value ?? new Uint8Array(), (reader) => {
      const fields = reader.enter(Tag.sequence)
      const isCa = fields.next === Tag.boolean && fields.boolean()
      const pathLength = fields.more ? fields.small() : undefined
      fields.end()
      return { isCa, pathLength }
    }),
    () => ({ isCa: false, pathLength: undefined })
  )
}
