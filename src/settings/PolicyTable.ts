import { Schema } from "effect"
import { namePattern, reservedNames } from "../domain/policy/Condition.ts"
import {
  addressOrCidr,
  anyText,
  fieldName,
  form,
  headerName,
  orEmpty,
  path,
  serviceUrl
} from "../kernel/config/Form.ts"
import type { Names } from "../kernel/config/Key.ts"
import {
  choice,
  entries,
  flag,
  milliseconds,
  secret,
  someWords,
  text,
  texts,
  unsetMilliseconds,
  word,
  words
} from "../kernel/config/Key.ts"

/** The sections of the filter and the inventory. What their keys mean together is in docs/policy.md. */

/** The name of a check or rule. */
const entryName = form(
  "names",
  (text) => namePattern.test(text) && !reservedNames.includes(text),
  "must be a name: lower-case letters, digits and hyphens, and no operator of conditions"
)

const names: Names = {
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: (name) => {
    if (reservedNames.includes(name)) return "is an operator of conditions and names neither check nor rule"
    return namePattern.test(name)
      ? undefined
      : "cannot name a check or rule: a name has lower-case letters, digits and hyphens"
  },
  inherits: false
}

const check = Schema.Struct({
  type: choice(
    ["allowed_ip", "path", "reverse_dns", "identifiers", "eab", "ipam", "custom"],
    "What the check looks at. Required."
  ),
  stages: someWords(
    ["connection", "identifiers"],
    "Where the check is asked: at every request, or at newOrder and finalize. Empty: where its type usually is."
  ),
  allow: texts(
    [],
    anyText,
    "What passes; empty is no constraint. Addresses and CIDR blocks for allowed_ip, globs for path, reverse_dns, identifiers and eab."
  ),
  deny: texts([], anyText, "What fails, whatever allow says. Written like allow."),
  allow_regex: texts([], anyText, "Regular expressions that pass beside allow: for reverse_dns, identifiers and eab."),
  deny_regex: texts([], anyText, "Regular expressions that fail beside deny: for reverse_dns, identifiers and eab."),
  require_forward_confirm: flag(true, "A reverse_dns name counts only when it has the client's address itself."),
  timeout_ms: unsetMilliseconds(
    "Time for the queries of reverse_dns (unset: 2000) or one run of custom (unset: 5000)."
  ),
  allowed_types: words(
    ["dns", "cn"],
    { offered: ["dns", "cn"] },
    "For identifiers: names of the order or certificate, and common names of a CSR."
  ),
  allow_wildcards: flag(false, "For identifiers: names that begin with *. may pass."),
  kids: texts([], anyText, "For eab: key identifiers that pass beside allow."),
  require_active: flag(false, "For eab: a revoked credential fails."),
  script_path: text("", orEmpty(path), "For custom: the program to run. Required there."),
  args: texts([], anyText, "For custom: its arguments."),
  pass_stdin: flag(true, "For custom: hand the question over on standard input too, as JSON.")
})

const rule = Schema.Struct({
  when: text("", anyText, "Names of checks joined by and, or, not and parentheses. Required."),
  then: choice(["allow", "deny"], "What happens when the condition is true. Required."),
  message: text("", anyText, "What a refused client is told."),
  mode: word("enforce", { offered: ["enforce", "warn"] }, "warn only logs that the condition was true.")
})

/** `[filter]`. */
export const filter = Schema.Struct({
  rules: texts([], entryName, "Names of the rules in force, in the order they are tried. Empty: nothing is filtered."),
  default: word("deny", { offered: ["allow", "deny"] }, "What happens where rules apply and none decides."),
  trusted_proxies: texts([], addressOrCidr, "Peers whose forwarded_header is believed."),
  forwarded_header: text("x-forwarded-for", headerName, "Header in which such a peer names the client's address."),
  check: entries(names, check),
  rule: entries(names, rule)
})

const sources = ["dns_name", "custom_field", "device"] as const

const tls = {
  ca_cert_path: text("", orEmpty(path), "PEM file of roots to trust beside the public ones."),
  insecure_skip_verify: flag(false, "Accept any certificate of the server. For tests.")
}

/** `[ipam]`. */
export const ipam = Schema.Struct({
  backend: word(
    "",
    { offered: ["", "netbox", "phpipam", "custom"] },
    "Inventory that says which names an address owns; checks of type ipam ask it."
  ),
  timeout_ms: milliseconds(5000, "Time for one whole look-up, however many requests it takes."),
  netbox: Schema.Struct({
    url: text("", orEmpty(serviceUrl), "Where NetBox is. Required with that backend."),
    token: secret("", anyText, "Token of its API. Required with that backend."),
    custom_field: text("acme_domains", fieldName, "Custom field that holds names."),
    sources: words(
      sources,
      { offered: [...sources, "vip", "fhrp"] },
      "Where names are taken from: the address, its device, the device's virtual addresses, its redundancy groups."
    ),
    vip_roles: texts(
      ["vip", "vrrp", "hsrp", "glbp", "carp", "anycast"],
      fieldName,
      "Roles that make an address of the device a virtual one."
    ),
    ...tls
  }),
  phpipam: Schema.Struct({
    url: text("", orEmpty(serviceUrl), "Where phpIPAM is. Required with that backend."),
    token: secret("", anyText, "App code of its API. Required with that backend."),
    app_id: text("acme", fieldName, "Name of the app at phpIPAM."),
    custom_field: text("custom_acme_domains", fieldName, "Custom field that holds names, comma-separated."),
    sources: words(
      sources,
      { offered: sources, unoffered: ["vip", "fhrp"] },
      "Where names are taken from: the address and its device."
    ),
    ...tls
  }),
  custom: Schema.Struct({
    script_path: text("", orEmpty(path), "Program that prints the names of an address. Required with that backend."),
    args: texts([], anyText, "Its arguments.")
  })
})
