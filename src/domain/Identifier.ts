import * as Brand from "effect/Brand"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import tr46 from "tr46"
import { shownCharacter } from "../crypto/Character.ts"

/**
 * A DNS name in the form that all records and comparisons use: lower-case ASCII without a trailing dot, at most 253
 * octets, possibly with a leading `*.`. The schema is for values that are read back from storage. A client's text must
 * go through {@link normalizeIdentifier}, which applies more rules than the pattern (docs/reference/protocol.md,
 * "Orders and authorizations").
 */
export const DnsName = Schema.String.pipe(
  Schema.check(Schema.isMaxLength(253), Schema.isPattern(/^(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?$/)),
  Schema.brand("DnsName")
)
export type DnsName = typeof DnsName.Type

const named = Brand.nominal<DnsName>()

/**
 * A name that the service does not accept. `kind` is the problem type (RFC 8555 section 6.7): `malformed` if the text
 * is not a name, `rejectedIdentifier` if the policy refuses the name. `detail` is a sentence that quotes at most one
 * character of the client's text.
 */
export class NameRefused extends Data.TaggedError("NameRefused")<{
  readonly kind: "malformed" | "rejectedIdentifier"
  readonly detail: string
}> {}

const malformed = (detail: string) => Result.fail(new NameRefused({ kind: "malformed", detail }))

const nonAscii = /[^\0-\u007f]/u
const plainLabel = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const numberLabel = /^(?:[0-9]+|0x[0-9a-f]*)$/
/** The base name, with `_acme-challenge.` before it, must fit into 253 octets (RFC 8555 section 8.4). */
const longestForTxt = 253 - "_acme-challenge.".length

const strict = { checkBidi: true, checkHyphens: true, checkJoiners: true, useSTD3ASCIIRules: true }

// UTS #46 allows symbols, so RFC 5892 is applied too: the letter and digit classes of section 2.1 and the exceptions of
// section 2.6, but not the classes that sections 2.4, 2.6 and 2.9 exclude.
const allowed =
  /^(?:[\p{Ll}\p{Lo}\p{Lm}\p{Nd}\p{Mn}\p{Mc}\u00b7\u0375\u05f3\u05f4\u06fd\u06fe\u0f0b\u3007\u30fb-]|\u200c|\u200d)+$/u
const disallowed =
  /[\u0640\u07fa\u1100-\u11ff\u3031-\u3035\u303b\ua960-\ua97c\ud7b0-\ud7fb]|[\u20d0-\u20ff]|[\u302e\u302f]|[\u{1d100}-\u{1d24f}]/u
// RFC 5892 appendix A.3 to A.9. Each pattern finds a character that lacks the context it needs.
const outOfContext = [
  /(?<!l)\u00b7|\u00b7(?!l)/u,
  /\u0375(?!\p{Script=Greek})/u,
  /(?<!\p{Script=Hebrew})[\u05f3\u05f4]/u,
  /^(?=.*\u30fb)(?!.*[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}])/u,
  /^(?=.*[\u0660-\u0669])(?=.*[\u06f0-\u06f9])/u
]

/**
 * Returns whether an `xn--` label is the one valid spelling of a label that IDNA2008 allows (RFC 5891 section 5.4, RFC
 * 5892, RFC 5893).
 */
const isIdna2008 = (label: string): boolean => {
  const { domain, error } = tr46.toUnicode(label, strict)
  return !error && allowed.test(domain) && !disallowed.test(domain) &&
    !outOfContext.some((rule) => rule.test(domain)) &&
    tr46.toASCII(domain, strict) === label
}

/**
 * The highest number of different xn-- labels that are checked for one request. Each check takes as long as the
 * verification of a signature.
 */
const mostLabels = 256
const mostRemembered = 4096
const remembered = new Map<string, boolean>()

/** The xn-- labels that were already checked for a request, and whether each of them is valid. */
export type KnownLabels = Map<string, boolean>

/**
 * Returns whether a label is valid. Returns `undefined` if too many labels have already been checked for this request.
 */
const judged = (label: string, known: KnownLabels): boolean | undefined => {
  const before = known.get(label)
  if (before !== undefined) return before
  // Remembered labels count too, so that the same request always gets the same answer.
  if (known.size >= mostLabels) return undefined
  const verdict = remembered.get(label) ?? isIdna2008(label)
  known.set(label, verdict)
  remembered.delete(label)
  remembered.set(label, verdict)
  const [oldest] = remembered.keys()
  if (oldest !== undefined && remembered.size > mostRemembered) remembered.delete(oldest)
  return verdict
}

const characterFault = (label: string): string => {
  if (label.includes("*")) return "The name has an asterisk that is not its whole first label."
  const foreign = /[^a-z0-9_-]/u.exec(label)?.[0]
  return foreign === undefined
    ? "A label of the name begins or ends with a hyphen."
    : `The name holds ${shownCharacter(foreign)}, which no DNS name has.`
}

const labelFault = (label: string, known: KnownLabels): string | undefined => {
  if (label === "") return "The name has an empty label."
  if (label.length > 63) return "A label of the name is longer than 63 octets."
  if (!plainLabel.test(label)) return characterFault(label)
  if (label.startsWith("xn--")) {
    const verdict = judged(label, known)
    if (verdict === undefined) return `The request has more than ${mostLabels} different xn-- labels.`
    return verdict ? undefined : "An xn-- label of the name is not valid IDNA2008."
  }
  return label.slice(2, 4) === "--" ? "A label of the name has hyphens in its third and fourth places." : undefined
}

/**
 * Normalizes a `dns` identifier to lower-case ASCII without its trailing dot. A normalized name does not change if it
 * is normalized again. The rules are in docs/reference/protocol.md, "Orders and authorizations". Wildcards are
 * accepted, whether or not the profile offers them; see {@link isWildcard}. All names of a request share one `known`,
 * which limits their total cost.
 */
export const normalizeIdentifier = (
  value: string,
  options: { readonly dns01Enabled: boolean },
  known: KnownLabels = new Map()
): Result.Result<DnsName, NameRefused> => {
  const foreign = nonAscii.exec(value)?.[0]
  if (foreign !== undefined) {
    return malformed(`The name holds ${shownCharacter(foreign)}, which is not ASCII; write it with xn-- labels.`)
  }
  const name = value.toLowerCase().replace(/\.$/, "")
  if (name.length > 253) return malformed("The name is longer than 253 octets.")
  const base = name.startsWith("*.") ? name.slice(2) : name
  const labels = base.split(".")
  for (const label of labels) {
    const fault = labelFault(label, known)
    if (fault !== undefined) return malformed(fault)
  }
  if (options.dns01Enabled && base.length > longestForTxt) {
    return malformed(`The name is longer than ${longestForTxt} octets, so that its TXT name does not fit.`)
  }
  if (numberLabel.test(labels[labels.length - 1] ?? "")) {
    return Result.fail(
      new NameRefused({ kind: "rejectedIdentifier", detail: "The last label is a number, as in an IP address." })
    )
  }
  return Result.succeed(named(name))
}

/** Returns whether the name is a wildcard, which covers every name one label below its base. */
export const isWildcard = (name: DnsName): boolean => name.startsWith("*.")

/**
 * Returns the name whose control the client proves. For a wildcard, this is the name without `*.`; for any other name,
 * it is the name itself (RFC 8555 section 7.1.3).
 */
export const baseName = (name: DnsName): DnsName => isWildcard(name) ? named(name.slice(2)) : name

/**
 * Returns the name with its characters in reverse order, so that names with the same suffix begin with the same text,
 * which an index can find.
 */
export const reverseName = (name: DnsName): string => Array.from(name).toReversed().join("")
