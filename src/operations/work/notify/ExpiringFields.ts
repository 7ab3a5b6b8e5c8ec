import { kindName } from "../../../domain/CertificateKind.ts"
import type { ExpiringCertificate } from "../../../domain/Notification.ts"
import type { Expiring } from "../../Expiring.ts"

/** The highest number of octets in a list of certificates, as JSON. One certificate may have a hundred long names. */
const mostOctets = 262_144

const certificateOf = ({ daysRemaining, notAfter, order, supersededBy }: Expiring): ExpiringCertificate => ({
  order_id: order.id,
  account_id: order.accountId,
  ...(order.certSerial === undefined ? {} : { cert_serial: order.certSerial }),
  identifiers: order.identifiers.map(({ value }) => value),
  kind: kindName(order.kind),
  not_after: notAfter,
  days_remaining: daysRemaining,
  ...(supersededBy === undefined ? {} : {
    superseded_by: {
      order_id: supersededBy.order.id,
      ...(supersededBy.order.certSerial === undefined ? {} : { cert_serial: supersededBy.order.certSerial }),
      not_after: supersededBy.order.certNotAfter ?? 0,
      via: supersededBy.via
    }
  })
})

/**
 * Returns the certificates in the form that messages use. If not all of them fit into a message, returns as many of the
 * first ones as fit.
 */
export const certificatesOf = (entries: ReadonlyArray<Expiring>): ReadonlyArray<ExpiringCertificate> => {
  let octets = 0
  const told: Array<ExpiringCertificate> = []
  for (const entry of entries) {
    const certificate = certificateOf(entry)
    octets += Buffer.byteLength(JSON.stringify(certificate))
    if (octets > mostOctets) break
    told.push(certificate)
  }
  return told
}
