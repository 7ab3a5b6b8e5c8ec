import { Tag } from "../asn1/DerReader.ts"
import { element, sequence } from "../asn1/DerWriter.ts"

/* The parts of certificates and of revocation lists that several files make. */

const CRITICAL = element(Tag.boolean, Uint8Array.of(0xff))

/**
 * Returns one extension. `type` is encoded by `oid`, and `value` is the encoded inner value. If `critical` is false,
 * the BOOLEAN is left out, as DER requires for default values.
 */
export const extension = (type: Uint8Array, critical: boolean, value: Uint8Array): Uint8Array =>
  critical
    ? sequence(type, CRITICAL, element(Tag.octetString, value))
    : sequence(type, element(Tag.octetString, value))

/** Returns one relative name of a Name. `type` is encoded by `oid`, and `value` is the encoded string. */
export const relativeName = (type: Uint8Array, value: Uint8Array): Uint8Array => element(Tag.set, sequence(type, value))
