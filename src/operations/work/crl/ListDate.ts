import type { CrlEntry } from "../../../crypto/x509/Crl.ts"
import type { RevocationList } from "../../../crypto/x509/RevocationList.ts"

/* The dates in a revocation list (docs/contribute/decisions/revocation-lists.md, "Signing"). */

/**
 * Lists are backdated by this number of seconds, like leaves and CAs. Otherwise a verifier whose clock is behind would
 * refuse a new list, and with it every certificate.
 */
const backdatedSeconds = 3600

/** Returns the date of a list that is signed at `now`. No entry of the list has a later date. */
export const listDate = (now: number): number => now - backdatedSeconds

/**
 * Returns the latest time at which an entry of a list can have been recorded. A revocation after the date of the list
 * has the date of the list.
 */
export const latestRevocation = (
  { revokedAt }: CrlEntry,
  { thisUpdate }: Pick<RevocationList, "thisUpdate">
): number => revokedAt < thisUpdate ? revokedAt : revokedAt + backdatedSeconds
