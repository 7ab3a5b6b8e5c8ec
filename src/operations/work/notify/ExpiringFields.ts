import type { ExpiringCertificate } from "../../../domain/Notification.ts"
import type { Expiring } from "../../Expiring.ts"

/** The most octets of a list of certificates, as JSON: one certificate may have a hundred long names. */
const mostOctets = 262_144

const certificateOf = ({ daysRemaining, notAfter, order, supersededBy }: Expiring): ExpiringCertificate => ({
  order_id: order.id,
  account_id: order.accountId,
  ...(order.certSerial === undefined ? {} : { cert_serial: order.certSerial }),
  identifiers: order.identifiers.map(({ value }) => value),
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
 * Returns the certificates in the form for messages. It takes as many of the first certificates as fit into a message.
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
