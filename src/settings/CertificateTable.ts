import * as Schema from "effect/Schema"
import { defaultLeafKeys, leafKeys } from "../crypto/keys/LeafKeys.ts"
import { commonNameSources, kindPattern, unrequestedWords } from "../domain/CertificateKind.ts"
import type { Names } from "../engine/config/Key.ts"
import { choice, distinctTexts, entries, text, word, words } from "../engine/config/Key.ts"
import { country, form, orEmpty } from "../engine/config/ValueForm.ts"
import {
  kindDescription,
  lifetime,
  objectIdentifier,
  organizationName,
  placeName,
  upstreamProfile,
  usage
} from "./CertificateForms.ts"

/* The keys of kinds of certificates. docs/configure/kinds.md explains how these keys work together. */

const rule = "1 to 32 lower-case letters, digits and hyphens"

const kindNames: Names = {
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: (name) => kindPattern.test(name) ? undefined : `cannot name a kind of certificate: a name has ${rule}`
}

const kindName = form(rule, (text) => kindPattern.test(text), `must be the name of a kind: ${rule}`)

const kind = Schema.Struct({
  description: text(
    "",
    kindDescription,
    "Text about the kind that clients see in the directory. Required if there are several kinds."
  ),
  validity: text(
    "",
    orEmpty(lifetime),
    "Lifetime of the certificates. Empty: signer.local_ca.leaf_validity_days."
  ),
  usages: distinctTexts(
    ["server_auth"],
    usage,
    "Purposes in the extendedKeyUsage, in this order, whatever the CSR asks for."
  ),
  keys: words(
    defaultLeafKeys,
    { offered: leafKeys },
    "Keys that can be certified. Keys of ML-DSA (RFC 9881) are accepted only if they are listed here."
  ),
  common_name: word(
    "request",
    { offered: commonNameSources },
    "request: the first common name of the CSR that is one of the names. first: the same, or else the first name of at most 64 characters. never: no common name."
  ),
  policies: distinctTexts([], objectIdentifier, "Policies in the certificatePolicies. Empty: no such extension.", true),
  unrequested: choice(
    unrequestedWords,
    "What happens if the CSR asks only for usages that the kind lacks. ignore: the certificate is issued, and the log and the order name the usages. refuse: the answer is badCSR. refuse_all: also badCSR for any other extension that the certificate would lack. Empty: ignore for the kind default, refuse for every other kind."
  ),
  upstream: text(
    "",
    orEmpty(upstreamProfile),
    "With the backend relay: the profile to request from the upstream. Empty: the upstream chooses."
  ),
  subject: Schema.Struct({
    organization: text(
      "",
      organizationName,
      "Organization in the subject. Here and below, an empty value is left out."
    ),
    organizational_unit: text("", organizationName, "Organizational unit in the subject."),
    country: text("", orEmpty(country), "Country code in the subject."),
    locality: text("", placeName, "Locality in the subject."),
    state: text("", placeName, "State or province in the subject.")
  })
})

/** The `certificates` section, both process-wide and of a profile. */
export const certificates = Schema.Struct({
  default: text("default", kindName, "The kind of an order in which the client names no kind."),
  kinds: entries(kindNames, kind)
})
