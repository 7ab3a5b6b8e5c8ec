import * as Array from "effect/Array"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { CheckType } from "../domain/policy/CheckType.ts"
import { checkTypes, sharedStages, stagesOf } from "../domain/policy/CheckType.ts"
import { checksOf, parseCondition } from "../domain/policy/Condition.ts"
import type { Compiled } from "../domain/policy/Glob.ts"
import { labelGlob, pathGlob, textGlob } from "../domain/policy/Glob.ts"
import { wholeRegex } from "../domain/policy/Regex.ts"
import type { Stage } from "../domain/policy/Stage.ts"
import { parseCidr } from "../engine/net/Address.ts"
import type { ProfileConfig } from "./AppConfig.ts"
import type { Finding, Subject } from "./Finding.ts"

/** The rules for the policy of one profile, and for the keys that the backend of its inventory requires. */

type Check = ProfileConfig["filter"]["check"][string]

/** The sections that determine a policy. */
type Sections = Pick<ProfileConfig, "filter" | "ipam" | "eab">

/** The sections of one profile or of the operators' listener, with their keys as they were written. */
interface Scope {
  readonly profile: Sections
  /** The stages at which the policy is applied. */
  readonly reached: ReadonlyArray<Stage>
  readonly written: (key: string) => string
  readonly isSet: (key: string) => boolean
}

const scopeOf = ({ isSet, written }: Subject, profile: ProfileConfig): Scope => {
  const full = (key: string) => `profiles.${profile.name}.${key}`
  const ownSections = (key: string) => key.split(".").slice(0, 3).join(".")
  return {
    profile,
    reached: ["connection", "identifiers"],
    isSet: (key) => isSet(full(key)),
    written: (key) => {
      if (isSet(full(key)) || !key.startsWith("filter.check.") && !key.startsWith("filter.rule.")) {
        return written(full(key))
      }
      // A missing key is reported at the place where its entry is written.
      const name = ownSections(key)
      const members = Object.keys(key.startsWith("filter.check.") ? checkMembers : ruleMembers)
      const set = members.map((member) => `${name}.${member}`).filter((member) => isSet(full(member)))
      return set.length > 0 && set.every((member) => written(full(member)) === full(member)) ? full(key) : key
    }
  }
}

type Members<T> = { readonly [K in keyof T]: true }
const checkMembers: Members<Check> = {
  type: true,
  stages: true,
  allow: true,
  deny: true,
  allow_regex: true,
  deny_regex: true,
  require_forward_confirm: true,
  timeout_ms: true,
  allowed_types: true,
  allow_wildcards: true,
  kids: true,
  require_active: true,
  script_path: true,
  args: true,
  pass_stdin: true
}
const ruleMembers: Members<ProfileConfig["filter"]["rule"][string]> = {
  when: true,
  then: true,
  message: true,
  mode: true
}

/** Returns a finding about one key. The finding depends on this key and on the other given keys. */
const finding = ({ written }: Scope, key: string, message: string, others: ReadonlyArray<string> = []): Finding => ({
  key: written(key),
  message,
  involves: [key, ...others].map(written)
})

const compilers = {
  allowed_ip: (entry: string): Compiled =>
    Option.isSome(parseCidr(entry))
      ? { matches: () => false }
      : { fault: "must be an IP address or a CIDR block such as 10.0.0.0/8" },
  path: pathGlob,
  reverse_dns: labelGlob,
  identifiers: labelGlob,
  eab: textGlob,
  kinds: textGlob
} as const

const hasGlobs = (type: CheckType): type is keyof typeof compilers => Object.hasOwn(compilers, type)

/** Returns what is wrong with the first entry that does not compile. */
const listFault = (entries: ReadonlyArray<string>, compile: (entry: string) => Compiled): string | undefined => {
  for (const [index, entry] of entries.entries()) {
    const { fault } = compile(entry)
    if (fault !== undefined) return `entry ${index + 1} ${fault}`
  }
  return undefined
}

const listFindings = (scope: Scope, prefix: string, type: CheckType, check: Check): ReadonlyArray<Finding> => {
  if (!hasGlobs(type)) return []
  const globs = [["allow", check.allow], ["deny", check.deny]] as const
  const regexes = [["allow_regex", check.allow_regex], ["deny_regex", check.deny_regex]] as const
  const takesRegexes = checkTypes[type].keys.includes("allow_regex")
  return [
    ...globs.map(([key, entries]) => [key, listFault(entries, compilers[type])] as const),
    ...takesRegexes ? regexes.map(([key, entries]) => [key, listFault(entries, wholeRegex)] as const) : []
  ].flatMap(([key, message]) => message === undefined ? [] : [finding(scope, `${prefix}.${key}`, message)])
}

/** Returns findings about the keys that a check of this type requires. */
const emptiness = (scope: Scope, prefix: string, type: CheckType, check: Check): ReadonlyArray<Finding> => {
  switch (type) {
    // The other types check something even without lists: whether a confirmed name or a credential exists.
    case "allowed_ip":
    case "kinds":
    case "path":
      return check.allow.length === 0 && check.deny.length === 0
        ? [
          finding(scope, `${prefix}.allow`, "must not be empty while deny is empty", [
            `${prefix}.allow`,
            `${prefix}.deny`
          ])
        ]
        : []
    case "custom":
      return check.script_path === ""
        ? [finding(scope, `${prefix}.script_path`, "must be set for a check of type custom")]
        : []
    default:
      return []
  }
}

const ownersOf = (key: string): string =>
  Object.entries(checkTypes).filter(([, { keys }]) => keys.includes(key)).map(([type]) => type).join(", ")

const checkFindings = (scope: Scope, name: string, check: Check): ReadonlyArray<Finding> => {
  const prefix = `filter.check.${name}`
  const { stages, type } = check
  if (type === "") return [finding(scope, `${prefix}.type`, "must be set")]
  const { keys, possible } = checkTypes[type]
  const foreign = Object.keys(checkMembers).filter((key) =>
    key !== "type" && key !== "stages" && !keys.includes(key) && scope.isSet(`${prefix}.${key}`)
  )
  const impossible = stages.find((stage) => !possible.includes(stage))
  const { backend } = scope.profile.ipam
  return [
    ...foreign.map((key) =>
      finding(scope, `${prefix}.${key}`, `belongs to checks of type ${ownersOf(key)}, and this one is ${type}`, [
        `${prefix}.type`
      ])
    ),
    ...impossible === undefined
      ? []
      : [
        finding(
          scope,
          `${prefix}.stages`,
          `has the stage ${impossible}, at which a check of type ${type} cannot be asked`,
          [
            `${prefix}.type`
          ]
        )
      ],
    ...listFindings(scope, prefix, type, check),
    ...emptiness(scope, prefix, type, check),
    ...type === "eab" && !scope.profile.eab.enabled
      ? [finding(scope, `${prefix}.type`, "is eab, but eab.enabled is false", ["eab.enabled"])]
      : [],
    ...type === "ipam" && backend === ""
      ? [finding(scope, `${prefix}.type`, "is ipam, but ipam.backend is empty", ["ipam.backend"])]
      : []
  ]
}

const conditionFindings = (scope: Scope, name: string): ReadonlyArray<Finding> => {
  const key = `filter.rule.${name}.when`
  const { check, rule } = scope.profile.filter
  const text = rule[name]?.when ?? ""
  if (text === "") return [finding(scope, key, "must be set")]
  const parsed = parseCondition(text)
  if (Result.isFailure(parsed)) {
    const { column, detail } = parsed.failure
    return [
      finding(scope, key, `of rule ${name} cannot be read at column ${column} of ${JSON.stringify(text)}: ${detail}`)
    ]
  }
  const named = checksOf(parsed.success)
  const unknown = named.filter((one) => check[one] === undefined)
  if (unknown.length > 0) {
    return unknown.map((one) => finding(scope, key, `names ${one}, but there is no filter.check.${one}`))
  }
  const asked = Array.getSomes(Array.map(named, (one) => {
    const found = check[one]
    return found === undefined || found.type === ""
      ? Option.none()
      : Option.some({ name: one, stages: stagesOf(found.type, found.stages) })
  }))
  if (asked.length < named.length) return []
  const stages = sharedStages(asked.map((one) => one.stages))
  // A rule that never applies refuses nothing, so the stage would admit every client, whatever the default is.
  if (stages.some((stage) => scope.reached.includes(stage))) return []
  const sides = asked.map((one) => `${one.name} (${one.stages.join(", ")})`).join(" and ")
  const involved = named.flatMap((one) => [`filter.check.${one}.type`, `filter.check.${one}.stages`])
  const fault = stages.length === 0
    ? `names ${sides}, which have no stage in common`
    : `of rule ${name} is never asked: it names ${sides}, and here there is the stage ${scope.reached.join(", ")} alone`
  return [finding(scope, key, fault, involved)]
}

const ruleFindings = (scope: Scope): ReadonlyArray<Finding> => {
  const { rule, rules } = scope.profile.filter
  const names = Object.keys(rule)
  const unknown = rules.filter((name) => rule[name] === undefined)
  const twice = rules.find((name, index) => rules.indexOf(name) < index)
  return [
    ...unknown.map((name) => finding(scope, "filter.rules", `names ${name}, but there is no filter.rule.${name}`)),
    ...twice === undefined ? [] : [finding(scope, "filter.rules", `names ${twice} twice`)],
    ...rules.length === 0 && names.length > 0
      ? [finding(scope, "filter.rules", `must name the rules in force: filter.rule.${names.join(", filter.rule.")}`)]
      : [],
    ...names.flatMap((name) => [
      ...conditionFindings(scope, name),
      ...rule[name]?.then === "" ? [finding(scope, `filter.rule.${name}.then`, "must be set")] : []
    ])
  ]
}

const ipamFindings = (scope: Scope): ReadonlyArray<Finding> => {
  const { ipam } = scope.profile
  const { backend, custom, netbox, phpipam } = ipam
  const needed = (key: string, value: string) =>
    value === ""
      ? [finding(scope, `ipam.${key}`, `must be set with ipam.backend = "${backend}"`, ["ipam.backend"])]
      : []
  if (backend === "custom") return needed("custom.script_path", custom.script_path)
  if (backend === "phpipam") {
    return [...needed("phpipam.url", phpipam.url), ...needed("phpipam.token", Redacted.value(phpipam.token).trim())]
  }
  if (backend !== "netbox") return []
  const token = Redacted.value(netbox.token).trim()
  return [
    ...needed("netbox.url", netbox.url),
    ...needed("netbox.token", token),
    ...token.startsWith("nbt_") && !token.includes(".")
      ? [finding(scope, "ipam.netbox.token", "begins with nbt_ and must hold a dot between key and secret")]
      : [],
    ...netbox.sources.includes("vip") && netbox.vip_roles.length === 0
      ? [finding(scope, "ipam.netbox.vip_roles", "must not be empty while vip is one of the sources", [
        "ipam.netbox.sources"
      ])]
      : []
  ]
}

const secondInventory = (scope: Scope): ReadonlyArray<Finding> => {
  const [first, ...others] = Object.entries(scope.profile.filter.check).filter(([, { type }]) => type === "ipam")
  return others.map(([name]) =>
    finding(
      scope,
      `filter.check.${name}.type`,
      `is ipam, but so is that of filter.check.${first?.[0]}; a profile has at most one`,
      [
        `filter.check.${first?.[0]}.type`
      ]
    )
  )
}

const ofFilter = (scope: Scope): ReadonlyArray<Finding> => [
  ...Object.entries(scope.profile.filter.check).flatMap(([name, check]) => checkFindings(scope, name, check)),
  ...ruleFindings(scope)
]

/** Returns every fault of the operators' filter. This filter inherits nothing. */
export const adminFilterFindings = ({ config, isSet, written }: Subject): ReadonlyArray<Finding> => {
  const { admin: { filter }, eab, ipam } = config
  return ofFilter({
    profile: { filter, eab, ipam },
    reached: ["connection"], // operators' requests have no order
    isSet: (key) => isSet(`admin.${key}`),
    written: (key) => written(`admin.${key}`)
  })
}

/**
 * Returns every fault in the filters and inventories of all profiles. A fault that several profiles inherit is reported
 * once.
 */
export const policyFindings = (subject: Subject): ReadonlyArray<Finding> =>
  subject.config.profiles.flatMap((profile) => {
    const scope = scopeOf(subject, profile)
    return [...ofFilter(scope), ...secondInventory(scope), ...ipamFindings(scope)]
  })
