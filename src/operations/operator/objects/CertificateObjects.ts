import type { DecodedCertificate } from "../../../crypto/x509/Decoded.ts"
import { member } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type { DecodedChain } from "../CertificateView.ts"

const certificateObject = (one: DecodedCertificate) => ({
  subject: one.subject,
  issuer: one.issuer,
  serial: one.serial,
  notBefore: rfc3339(one.notBefore),
  notAfter: rfc3339(one.notAfter),
  keyType: one.keyType,
  signatureAlgorithm: one.signatureAlgorithm,
  sans: one.sans,
  sha256: one.sha256,
  ...member("ski", one.ski),
  ...member("aki", one.aki),
  keyUsage: one.keyUsage,
  extendedKeyUsage: one.extendedKeyUsage,
  crlUrls: one.crlUrls,
  caIssuersUrls: one.caIssuersUrls,
  isCa: one.isCa
})

/** The decoded chain of an order. */
export const decodedChainObject = ({ certId, certificates, renewalWindow }: DecodedChain) => ({
  certificates: certificates.map(certificateObject),
  ...member("certId", certId),
  ...member(
    "renewalWindow",
    renewalWindow === undefined
      ? undefined
      : { start: rfc3339(renewalWindow.start), end: rfc3339(renewalWindow.end) }
  )
})
