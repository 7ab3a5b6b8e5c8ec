import * as Schema from "effect/Schema"
import { namePattern, reservedNames } from "../domain/policy/Condition.ts"
import type { Names } from "../engine/config/Key.ts"
import {
  choice,
  entries,
  flag,
  milliseconds,
  secret,
  secrets,
  someWords,
  text,
  texts,
  unsetMilliseconds,
  word,
  words
} from "../engine/config/Key.ts"
import {
  addressOrCidr,
  anyText,
  fieldName,
  form,
  headerName,
  orEmpty,
  path,
  serviceUrl
} from "../engine/config/ValueForm.ts"

/** The sections of the filter and the inventory. docs/configure/policy.md explains how their keys work together. */

/** The name of a check or rule. */
const entryName = form(
  "names",
  (text) => namePattern.test(text) && !reservedNames.includes(text),
  "must be a name: lower-case letters, digits and hyphens, and no operator of conditions"
)

const names: Names = {
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: (name) => {
    if (reservedNames.includes(name)) return "is an operator of conditions and cannot name a check or rule"
    return namePattern.test(name)
      ? undefined
      : "cannot name a check or rule: a name has lower-case letters, digits and hyphens"
  }
}

const check = Schema.Struct({
  type: choice(
    ["allowed_ip", "path", "reverse_dns", "identifiers", "eab", "kinds", "ipam", "custom"],
    "Type of the check: what it looks at. Required."
  ),
  stages: someWords(
    ["connection", "identifiers"],
    "When the check runs: connection is every request, identifiers is newOrder and finalize. Empty: the usual stages of its type."
  ),
  allow: texts(
    [],
    anyText,
    "Values that pass. Empty: every value passes. For allowed_ip these are addresses and CIDR blocks; for path, reverse_dns, identifiers, eab and kinds they are globs."
  ),
  deny: texts([], anyText, "Values that fail, even if allow lists them. The syntax is that of allow."),
  allow_regex: texts([], anyText, "Regular expressions of values that pass too. For reverse_dns, identifiers and eab."),
  deny_regex: texts([], anyText, "Regular expressions of values that fail too. For reverse_dns, identifiers and eab."),
  require_forward_confirm: flag(true, "For reverse_dns: a name counts only if it resolves to the client's address."),
  timeout_ms: unsetMilliseconds(
    "Time limit of the queries of reverse_dns (unset: 2000) or of one run of custom (unset: 5000)."
  ),
  allowed_types: words(
    ["dns", "cn"],
    { offered: ["dns", "cn"] },
    "For identifiers: names of the order or certificate, and common names of a CSR."
  ),
  allow_wildcards: flag(false, "For identifiers: names that begin with *. may pass."),
  kids: texts([], anyText, "For eab: key identifiers that pass in addition to allow."),
  require_active: flag(false, "For eab: a revoked credential fails."),
  script_path: text("", orEmpty(path), "For custom: the program to run. Required for this type."),
  args: secrets([], anyText, "For custom: arguments of the program."),
  pass_stdin: flag(
    true,
    "For custom: pass the request also as one JSON object on standard input, in addition to the environment variables."
  )
})

const rule = Schema.Struct({
  when: text("", anyText, "Names of checks joined by and, or, not and parentheses. Required."),
  then: choice(["allow", "deny"], "The verdict if the condition is true. Required."),
  message: text("", anyText, "The message that a refused client gets."),
  mode: word(
    "enforce",
    { offered: ["enforce", "warn"] },
    "enforce applies the rule. warn only logs that its condition was true."
  )
})

/** The keys of `[filter]`. */
export const filter = Schema.Struct({
  rules: texts(
    [],
    entryName,
    "Names of the rules in force, in the order in which they are tried. Empty: nothing is filtered."
  ),
  default: word("deny", { offered: ["allow", "deny"] }, "The verdict if rules apply but none of them decides."),
  trusted_proxies: texts([], addressOrCidr, "Peers whose forwarded_header is trusted."),
  forwarded_header: text("x-forwarded-for", headerName, "Header in which such a peer names the client's address."),
  check: entries(names, check),
  rule: entries(names, rule)
})

const sources = ["dns_name", "custom_field", "device"] as const

const tls = {
  ca_cert_path: text("", orEmpty(path), "PEM file of root certificates to trust in addition to the public ones."),
  insecure_skip_verify: flag(false, "Accept any certificate of the server. For tests.")
}

/** The keys of `[ipam]`. */
export const ipam = Schema.Struct({
  backend: word(
    "",
    { offered: ["", "netbox", "phpipam", "custom"] },
    "Inventory that says which names an address owns. Checks of type ipam use it."
  ),
  timeout_ms: milliseconds(5000, "Time limit of one whole look-up, including all its requests."),
  netbox: Schema.Struct({
    url: text("", orEmpty(serviceUrl), "URL of NetBox. Required with backend netbox."),
    token: secret("", anyText, "Token for its API. Required with backend netbox."),
    custom_field: text("acme_domains", fieldName, "Custom field that holds names."),
    sources: words(
      sources,
      { offered: [...sources, "vip", "fhrp"] },
      "Where names are taken from: the address (dns_name, custom_field), its device (device), the device's virtual addresses (vip), or its redundancy groups (fhrp)."
    ),
    vip_roles: texts(
      ["vip", "vrrp", "hsrp", "glbp", "carp", "anycast"],
      fieldName,
      "Roles that mark an address of the device as a virtual one."
    ),
    ...tls
  }),
  phpipam: Schema.Struct({
    url: text("", orEmpty(serviceUrl), "URL of phpIPAM. Required with backend phpipam."),
    token: secret("", anyText, "App code for its API. Required with backend phpipam."),
    app_id: text("acme", fieldName, "Name of the app in phpIPAM."),
    custom_field: text("custom_acme_domains", fieldName, "Custom field that holds names, comma-separated."),
    sources: words(
      sources,
      { offered: sources, unoffered: ["vip", "fhrp"] },
      "Where names are taken from: the address (dns_name, custom_field) or its device (device)."
    ),
    ...tls
  }),
  custom: Schema.Struct({
    script_path: text("", orEmpty(path), "Program that prints the names of an address. Required with backend custom."),
    args: secrets([], anyText, "Arguments of the program.")
  })
})
