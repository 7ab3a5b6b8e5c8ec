import type { Tried } from "../../operations/operator/KindTrial.ts"
import { renderDetail } from "./Detail.ts"
import { escaped } from "./Escaped.ts"
import type { Rendered } from "./Rendered.ts"
import { stacked } from "./Rendered.ts"

const listed = (values: ReadonlyArray<string>) => values.length === 0 ? undefined : values

/** Renders `kinds try`: the certificate that a CSR would become, or the refusal that a client would get. */
export const renderTrial = ({ backend, certificate, kind, notGranted, outcome, profile, refusal }: Tried): Rendered => {
  const head = renderDetail({ profile, kind, outcome })
  if (refusal !== undefined) {
    const { detail, status, subproblems = [], type } = refusal
    return stacked([
      head,
      "",
      `${status}${type === undefined ? "" : ` ${type}`}: ${escaped(detail)}`,
      ...subproblems.map((one) => `  ${escaped(one.identifier.value)}: ${escaped(one.detail)}`)
    ], "\n")
  }
  if (certificate === undefined) {
    return stacked([head, "", `The signer (${backend}) decides what the certificate contains.`], "\n")
  }
  return stacked([
    head,
    "",
    renderDetail({
      subject: certificate.subject === "" ? "empty" : certificate.subject,
      issuer: certificate.issuer,
      notBefore: certificate.notBefore,
      notAfter: certificate.notAfter,
      key: certificate.keyType,
      subjectAltName: certificate.sansCritical ? [...certificate.sans, "(critical)"] : certificate.sans,
      keyUsage: certificate.keyUsage,
      extendedKeyUsage: certificate.extendedKeyUsage,
      policies: listed(certificate.policies),
      crlUrls: listed(certificate.crlUrls),
      caIssuersUrls: listed(certificate.caIssuersUrls),
      notGranted
    })
  ], "\n")
}
