import { keyPurposes } from "../crypto/x509/KeyPurpose.ts"
import type { Form } from "../engine/config/ValueForm.ts"
import { form } from "../engine/config/ValueForm.ts"

/** The forms of the keys of `[certificates]`. */

const daySeconds = 86_400
const hourSeconds = 3600

/** The longest lifetime of a certificate, in days: the highest value of `signer.local_ca.leaf_validity_days`. */
const mostDays = 3653

/** Returns the seconds of a lifetime such as `6h` or `90d`. Returns undefined if the text is not a lifetime. */
export const lifetimeSeconds = (text: string): number | undefined => {
  const [, count, unit] = /^([1-9][0-9]{0,5})([hd])$/.exec(text) ?? []
  if (count === undefined) return undefined
  const seconds = Number(count) * (unit === "d" ? daySeconds : hourSeconds)
  return seconds > mostDays * daySeconds ? undefined : seconds
}

/** Returns a lifetime of whole hours in the form that {@link lifetimeSeconds} reads. */
export const lifetimeText = (seconds: number): string =>
  seconds % daySeconds === 0 ? `${seconds / daySeconds}d` : `${seconds / hourSeconds}h`

/** The lifetime of a certificate. */
export const lifetime: Form = form(
  `number with h or d, \`1h\` to \`${mostDays}d\``,
  (text) => lifetimeSeconds(text) !== undefined,
  `must be a number of hours or days, such as "6h" or "90d", of at least "1h" and at most "${mostDays}d"`
)

const mostArc = 2 ** 45

/** Returns whether a text is an OID in dotted form whose numbers the encoder can represent. */
const isOid = (text: string): boolean => {
  if (text.length > 128 || !/^[0-2](?:\.(?:0|[1-9][0-9]{0,14}))+$/.test(text)) return false
  const [root = 0, second = 0, ...rest] = text.split(".").map(Number)
  return (root === 2 || second < 40) && [second, ...rest].every((arc) => arc < mostArc)
}

/** An object identifier. */
export const objectIdentifier: Form = form(
  "OIDs such as `1.3.6.1.4.1.99999.1`",
  isOid,
  "must be an OID: numbers with dots between them, such as 1.3.6.1.4.1.99999.1"
)

const purposes: ReadonlyArray<string> = Object.keys(keyPurposes)

/** A purpose of an extendedKeyUsage. */
export const usage: Form = form(
  `at least one of ${purposes.map((word) => `\`${word}\``).join(", ")}, or OIDs`,
  (text) => purposes.includes(text) || isOid(text),
  `must be one of ${purposes.map((word) => `"${word}"`).join(", ")}, or an OID with dots`
)

// Control characters would be invisible in a certificate, and unassigned ones could not be shown.
const isPlainText = (most: number) => (text: string): boolean =>
  !/[\p{C}\p{Zl}\p{Zp}]/u.test(text) && [...text].length <= most && text === text.trim()

const plainText = (most: number): Form =>
  form(
    `at most ${most} characters`,
    isPlainText(most),
    `must have at most ${most} characters, no control characters, and no blanks around them`
  )

/** An organization or a unit in a subject (RFC 5280 appendix A.1 bounds it to 64 characters). */
export const organizationName: Form = plainText(64)

/** A state or a locality in a subject (RFC 5280 appendix A.1 bounds it to 128 characters). */
export const placeName: Form = plainText(128)

/** What clients are shown about a kind. */
export const kindDescription: Form = plainText(200)

/** The name of a profile at an upstream. */
export const upstreamProfile: Form = form(
  "1 to 128 printable ASCII characters",
  (text) => /^[\x21-\x7e]{1,128}$/.test(text),
  "must have 1 to 128 printable ASCII characters"
)
