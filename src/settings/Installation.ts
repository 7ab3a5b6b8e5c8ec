import type { Config } from "./AppConfig.ts"

/** The host of a base URL, which is checked: what tells one installation from another where people have several. */
export const hostOf = (baseUrl: string): string => new URL(baseUrl).hostname

/** The host by which people know this installation: that of the panel, or of the ACME endpoints where there is no panel. */
export const installationOf = (
  { admin, server }: {
    readonly admin: Pick<Config["admin"], "base_url" | "enabled">
    readonly server: Pick<Config["server"], "base_url">
  }
): string => hostOf(admin.enabled ? admin.base_url : server.base_url)
