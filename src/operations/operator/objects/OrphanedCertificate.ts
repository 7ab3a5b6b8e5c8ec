import { readLeaf } from "../../../crypto/x509/FoundLeaf.ts"
import { member } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type { OrphanRecord } from "../../../store/orders/OrphanedCertificateRows.ts"

/** A certificate whose order ended without that certificate, as the API and the commands show it. */
export const orphanObject = (
  { cause, error, foundAt, leaf, notAfter, orderId, profile, serial, status, updatedAt }: OrphanRecord
) => ({
  orderId,
  profile,
  serial,
  names: readLeaf(leaf)?.names ?? [],
  cause,
  status,
  ...member("error", error),
  notAfter: rfc3339(notAfter),
  foundAt: rfc3339(foundAt),
  updatedAt: rfc3339(updatedAt)
})
