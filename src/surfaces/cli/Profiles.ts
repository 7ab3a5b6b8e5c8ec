import type { Config } from "../../settings/AppConfig.ts"
import type { Rendered } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

/** One mounted endpoint as `profile list` shows it. */
const viewOf = (baseUrl: string) => (profile: Config["profiles"][number]) => ({
  name: profile.name,
  directory: `${baseUrl}/profile/${profile.name}/directory`,
  backend: profile.signer.backend,
  challenges: profile.challenge.bypass ? "bypassed" : profile.challenge.enabled.join(", "),
  eabEnabled: profile.eab.enabled,
  enabled: profile.enabled
})

/** `profile list`: what the configuration on disk mounts. */
export const renderProfiles = (config: Config, json: boolean): string | Rendered => {
  const items = config.profiles.map(viewOf(config.server.base_url))
  if (json) return JSON.stringify({ items, total: items.length, limit: items.length, offset: 0 })
  return renderTable(
    ["name", "directory", "backend", "challenges", "eab", "state"],
    items.map((
      { backend, challenges, directory, eabEnabled, enabled, name }
    ) => [name, directory, backend, challenges, eabEnabled ? "required" : "off", enabled ? "served" : "parked"]),
    items.length
  )
}
