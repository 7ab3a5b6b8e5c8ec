import type { Form } from "../engine/config/ValueForm.ts"
import { form, labels } from "../engine/config/ValueForm.ts"

/* Forms of values that occur only in ACME. */

/** A contact of an account. */
export const contactUri: Form = form(
  "`mailto:` URIs",
  (text) => /^mailto:[^@\s,?]+@[^@\s,?]+$/.test(text),
  "must be a mailto: URI of one address"
)

/** A secret of an upstream: base64url, padded or not, or standard base64. */
export const hmacKey: Form = form(
  "base64url or base64",
  (text) => {
    const bare = text.replace(/={1,2}$/, "")
    const octets = Buffer.from(bare, "base64")
    return bare !== "" && [octets.toString("base64url"), octets.toString("base64").replace(/=+$/, "")].includes(bare)
  },
  "must be base64url or base64"
)

/** A DNS name that other names use as their alias. */
export const aliasName: Form = {
  says: "DNS name",
  isTrimmed: true,
  fault: (text) => {
    if (text.startsWith("*.")) return "must not be a wildcard"
    if (/^_acme-challenge\./i.test(text)) return "must not begin with _acme-challenge, which the service adds"
    return labels.test(text) && text.length <= 230 ? undefined : "must be a DNS name"
  }
}
