import { profileObject } from "../../operations/operator/objects/SettingObjects.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { Rendered } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

/** Renders `profile list`: the profiles that the configuration on disk mounts, and the parked profiles. */
export const renderProfiles = (config: Config, json: boolean): string | Rendered => {
  const items = config.profiles.map((profile) => ({ ...profileObject(config, profile), enabled: profile.enabled }))
  if (json) return JSON.stringify({ items, total: items.length, limit: items.length, offset: 0 })
  return renderTable(
    ["name", "directory", "backend", "challenges", "eab", "state"],
    items.map(({ backend, challengeBypass, challenges, directory, eabEnabled, enabled, name }) => [
      name,
      directory,
      backend,
      challengeBypass ? { text: "bypassed", style: "red" } : challenges.join(", "),
      eabEnabled ? "required" : "off",
      enabled ? "served" : "parked"
    ]),
    items.length
  )
}
