import type { Roles } from "../domain/Role.ts"
import type { Assembled } from "../engine/config/Assemble.ts"
import type { Config, ProfileConfig } from "./AppConfig.ts"

/*
 * Decides which keys a process uses. It uses neither the keys of a section that is off nor the keys of a role that it
 * does not have.
 */

/** Returns whether a switch is on. A switch with a fault counts as on, because its intended value is unknown. */
type IsOn = (key: string, isSet: boolean) => boolean

/**
 * Prefixes of keys, and whether the process uses the keys that begin with each prefix. The first prefix that fits a key
 * decides. A prefix does not fit the switch `enabled` of its own section, because a process reads the switch even if
 * the section is off.
 */
type Sections = ReadonlyArray<readonly [prefix: string, isUsed: boolean]>

const wideSections = ({ admin, metrics, publish, server }: Config, roles: Roles, isOn: IsOn): Sections => {
  const [servesAcme, hasPanel] = [roles.has("acme"), isOn("admin.enabled", admin.enabled)]
  const servesOperators = hasPanel && roles.has("admin")
  const tellsOperators = hasPanel && (roles.has("admin") || roles.has("worker"))
  const isTold = isOn("admin.notify.enabled", admin.notify.enabled.length > 0)
  return [
    ["server.tls", servesAcme && isOn("server.tls.enabled", server.tls.enabled)],
    ["admin.tls", servesOperators && isOn("admin.tls.enabled", admin.tls.enabled)],
    ["admin.notify.enabled", tellsOperators],
    ["admin.notify", tellsOperators && isTold],
    ["admin", servesOperators],
    ["metrics", isOn("metrics.enabled", metrics.enabled)],
    ["publish", servesAcme && isOn("publish.enabled", publish.enabled)]
  ]
}

/**
 * Matches the notification keys that decide whether there is anything to report. The other keys say how a report is
 * delivered.
 */
const decides = /^notify\.(?:\w+_enabled|expiry\.\w+|(?:email|webhook\.[^.]+|custom\.[^.]+)\.events)$/

const profileSections = ({ notify, signer }: ProfileConfig, roles: Roles, isOn: IsOn): Sections => {
  const [servesAcme, works] = [roles.has("acme"), roles.has("worker")]
  const hasHooks = signer.custom.supports_crl || signer.custom.supports_renewal_info
  const tells = notify.expiry.to_contacts || isOn("notify.enabled", notify.enabled.length > 0)
  return [
    ["signer.relay", works],
    ["signer.custom", works || (servesAcme && hasHooks)],
    ["challenge", servesAcme || works],
    ["filter", servesAcme || roles.has("admin")],
    ["ipam", servesAcme],
    ["notify", tells && (works || roles.has("admin"))]
  ]
}

const isWithin = (sections: Sections, key: string): boolean =>
  sections.find(([prefix]) => key === prefix || (key.startsWith(`${prefix}.`) && key !== `${prefix}.enabled`))?.[1] ??
    true

const ofProfile = /^profiles\.(?<name>[^.]+)\.(?<key>.+)$/

/**
 * Returns a function that says whether a process with these roles uses a key, named as it was written
 * (docs/contribute/decisions/configuration.md, "What is off"). A process-wide key is used if any profile that inherits
 * the key uses it.
 */
export const makeInUse = (
  config: Config,
  roles: Roles,
  { origins }: Assembled,
  unusable: ReadonlySet<string>
): (written: string) => boolean => {
  const isFaulty = (full: string) => unusable.has(origins.get(full)?.key ?? full)
  const wide = wideSections(config, roles, (key, isSet) => isSet || isFaulty(key))
  // If no profile is enabled, an operator probably meant to enable one of them.
  const isAnyServed = config.profiles.some(({ enabled }) => enabled)
  const profiles = new Map(config.profiles.map((profile) => [profile.name, profile]))
  const isUsed = (full: string): boolean => {
    const { key = "", name = "" } = ofProfile.exec(full)?.groups ?? {}
    const profile = profiles.get(name)
    if (profile === undefined) return isWithin(wide, full)
    const at = `profiles.${name}.`
    if (key === "enabled") return true
    if (isAnyServed && !profile.enabled && !isFaulty(`${at}enabled`)) return false
    const isOn: IsOn = (key, isSet) => isSet || isFaulty(at + key)
    if (decides.test(key) && roles.has("acme")) {
      return isWithin(profileSections(profile, new Set([...roles, "worker"]), isOn), key)
    }
    return isWithin(profileSections(profile, roles, isOn), key)
  }
  const heirs = new Map<string, Array<string>>()
  for (const [full, { key }] of origins) {
    if (full !== key) heirs.set(key, [...heirs.get(key) ?? [], full])
  }
  // A process that serves clients also uses the process-wide policy, because this policy decides whether a forwarding
  // header is believed.
  const isOfListener = (written: string) => roles.has("acme") && written.startsWith("filter.")
  return (written) => isOfListener(written) || (heirs.get(written) ?? [written]).some(isUsed)
}
